"""One model per role behind one name: the call's purpose chooses. Knows roles, not what is behind a model."""

from __future__ import annotations

from collections.abc import Mapping

from engine.llm import Completion, LanguageModel, Message, OnText, Purpose, Terms
from storage.models import ModelRole

PLAYED_BY: Mapping[str, ModelRole] = {
    "synthesise": ModelRole.WRITER,
    "optimise": ModelRole.WRITER,
    "diagnose": ModelRole.DIAGNOSER,
    "repair": ModelRole.REPAIRER,
    "judge": ModelRole.JUDGE,
}


class ModelsByRole:
    """Sends each call to the model of its role."""

    def __init__(self, models: Mapping[ModelRole, LanguageModel]) -> None:
        self._models = models
        self.name = models[ModelRole.WRITER].name

    def terms(self, purpose: Purpose) -> Terms | None:
        """The terms of the model that would answer."""
        return self._models[PLAYED_BY.get(purpose.role, ModelRole.WRITER)].terms(purpose)

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """Answer the conversation."""
        return self._models[PLAYED_BY.get(purpose.role, ModelRole.WRITER)].complete(messages, purpose, on_text)
