"""A person as the language model. Knows that an answer is there or not, not how it was brought."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import AnswerNeeded
from engine.search.llm import Completion, Message, OnText, Purpose, Terms


def nobody(purpose: Purpose) -> str | None:
    """No answer is there."""
    return None


class ManualModel:
    """Gives back what a person wrote; a call without an answer yet raises, and the run waits."""

    name = "manual"

    def __init__(self, answer: Callable[[Purpose], str | None] = nobody) -> None:
        self._answer = answer

    def terms(self, purpose: Purpose) -> Terms | None:
        """A person costs nothing here."""
        return None

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """The answer. It costs nothing, and nobody counts a person's tokens.

        Raises:
            AnswerNeeded: nobody has answered yet.
        """
        text = self._answer(purpose)
        if text is None:
            raise AnswerNeeded(f"Your reply is needed: {purpose.task or purpose.role}.")
        on_text(text)
        return Completion(text, self.name, "stop", 0.0, cost_usd=0.0)
