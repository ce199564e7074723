"""What a search method calls its step index, and when it has profiles taken and shown. Knows no method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MethodWords:
    """The words of one method, as people read them beside a run of it.

    `step` and `steps` name a step index: "depth", "round". `counts` says beside an axis what it counts, `about` what
    one is, in whole sentences. `collected` and `shown` end "on auto, profiles are collected …" and "… are shown …";
    empty where the method has nothing fixed to say.
    """

    step: str = "step"
    steps: str = "steps"
    counts: str = "completed steps of the search"
    about: str = ""
    collected: str = ""
    shown: str = ""

    @property
    def title(self) -> str:
        """At the beginning of a line."""
        return f"{self.step[:1].upper()}{self.step[1:]}"

    @property
    def titles(self) -> str:
        """Several, at the beginning of a line."""
        return f"{self.steps[:1].upper()}{self.steps[1:]}"

    @property
    def distinct(self) -> str:
        """Beside the number of an engine's step, which is a call, a compile or a check: never the same word."""
        return self.step if self.step != "step" else "search step"

    def counted(self, number: int) -> str:
        """How many: "1 depth", "1,204 rounds"."""
        return f"{number:,} {self.step if number == 1 else self.steps}"


PLAIN = MethodWords()
# What tables, events and wire forms call it, whatever the method.
AS_STORED = MethodWords("depth", "depths", "completed optimisation steps")
