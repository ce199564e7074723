"""Two timings of one kernel, the second because the first was hard to believe: whether they agree, and the sentence
that a check keeps of them. The evaluator writes it with the words that are read here. Knows no check."""

from __future__ import annotations

import re
from dataclasses import dataclass

AGREE = 1.25
"""How many times as large one of two speed-ups of a kernel may be as the other and still confirm it; beyond that their
intervals meet because one is very wide."""
CONFIRMED, MEET, NOT_MET = "confirmed", "their intervals meet", "not confirmed, the lower one is kept"
"""How the sentence ends: the two agree; they do not, though their intervals meet; nor do those. Behind it and `BUT`
stands what speaks against the lower one, which is kept."""
BUT = ", but "
BEYOND = "faster than the limit of "
DISJOINT = "their intervals do not meet"

_SENTENCE = re.compile(
    r"(?:(?P<workload>.*?): )?because (?P<reason>.*?): "
    r"first (?P<first>\S+)x \((?P<first_range>.*?)\) at (?P<first_ms>\S+) ms, "
    r"then (?P<second>\S+)x \((?P<second_range>.*?)\) at (?P<second_ms>\S+) ms; (?P<end>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TimedTwice:
    """`reason` says why it was timed again. `first` and `second` are speed-ups, each with its 95 % interval in words,
    "17.7 to 38.4", and its latency in milliseconds; `workload` is that of several, else empty."""

    workload: str
    reason: str
    first: float
    first_range: str
    first_ms: float
    second: float
    second_range: str
    second_ms: float
    end: str

    @property
    def times_apart(self) -> float:
        """How many times as large as the smaller the larger speed-up is."""
        return times_apart(self.first, self.second)

    @property
    def agree(self) -> bool:
        """Whether one speed-up confirms the other."""
        return self.times_apart <= AGREE

    @property
    def lower_range(self) -> str:
        """The interval of the one that is kept."""
        return self.first_range if self.first < self.second else self.second_range

    @property
    def lower_ms(self) -> float:
        """The latency of the one that is kept."""
        return self.first_ms if self.first < self.second else self.second_ms

    @property
    def kept_and_not(self) -> tuple[str, str]:
        """The timing that is kept and the other one, each with which it was where the figures tell them apart."""
        which = ("first", "second") if self.first < self.second else ("second", "first")
        kept, other = (f" (the {name})" if self.first != self.second else "" for name in which)
        return f"the timing that is kept{kept}", f"the timing that is not kept{other}"

    @property
    def is_beyond(self) -> bool:
        """Whether the one that is kept is faster than the hardware limit."""
        return self.against.startswith(BEYOND)

    @property
    def against(self) -> str:
        """What speaks against the one that is kept; empty where nothing does, or an older engine did not write it."""
        return self.end.partition(BUT)[2]

    @property
    def is_confirmed(self) -> bool:
        """Whether the speed-up stands, be it less well known than usual: the two agree, and it is not beyond the
        hardware limit."""
        return self.agree and self.end.startswith((CONFIRMED, MEET)) and not self.is_beyond


def read(detail: str) -> TimedTwice | None:
    """The two timings that a check tells of; None where it tells of none."""
    said = _SENTENCE.fullmatch(detail)
    if said is None:
        return None
    workload, reason, first, first_range, first_ms, second, second_range, second_ms, end = said.groups("")
    return TimedTwice(
        workload, reason, float(first), first_range, float(first_ms), float(second), second_range, float(second_ms), end
    )


def times_apart(first: float, second: float) -> float:
    """How many times as large as the smaller the larger of two speed-ups is, by the three digits that a check has."""
    low, high = sorted(float(f"{speedup:.3g}") for speedup in (first, second))
    return high / low
