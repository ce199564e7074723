"""What a search method calls its step index, and when it has profiles taken and shown. Knows no method."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MethodWords:
    """The words of one method, as people read them beside a run of it.

    `step` and `steps` name a step index: "depth", "round". `counts` says beside an axis what it counts, `about` what
    one is, in whole sentences. `collected` and `shown` end "on auto, profiles are collected …" and "… are shown …";
    empty where the method has nothing fixed to say. `counts_first`: the step index 0 is one of those counted, as the
    first sample is; without it, it makes the first kernel, and the limit counts what follows.
    """

    step: str = "step"
    steps: str = "steps"
    counts: str = "completed steps of the search"
    about: str = ""
    collected: str = ""
    shown: str = ""
    counts_first: bool = False

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

    def begun(self, index: int | None, last: int) -> tuple[int, int]:
        """How many are begun and how many there may be, by the last step index begun (None: none) and the limit."""
        more = int(self.counts_first)
        return (0 if index is None else index + more), last + more

    def place(self, index: int | None, last: int) -> str:
        """Where a run stands: "depth 3 of 8"; "1 of 8 samples", since the first sample has the number 0."""
        done, most = self.begun(index, last)
        return f"{done} of {self.counted(most)}" if self.counts_first else f"{self.distinct} {done} of {most}"


PLAIN = MethodWords()
# What tables, events and wire forms call it, whatever the method.
AS_STORED = MethodWords("depth", "depths", "completed optimisation steps")
