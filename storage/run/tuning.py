"""Which variants of a kernel a sweep over its tunables tries, in which order, and which one is kept. Pure: knows
results, not how they are had.

Build all of a wave and time each briefly, then check and time fully the few that look fastest: successive halving. The
kernel as it was written is timed once more beside them, and the better of its two timings is the one to beat: of many
variants one always looks fast, and the machine may have been busier before.
Where not all combinations fit, the first wave changes one number at a time and the second combines what brought most.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from storage.results.evaluation_results import (
    CheckResult,
    CompileResult,
    TimingResult,
    Tunable,
    headline,
    is_improvement,
)
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import StepKind

FINALISTS = 3
COMBINED = 4  # numbers of one tunable that are combined with those of others
MOST_COMBINATIONS = 20_000
AS_WRITTEN = 0  # in the place of a variant's number
Values = Mapping[str, int]
VariantEvent = ev.VariantCompiled | ev.VariantChecked | ev.VariantTimed


@dataclass(frozen=True, slots=True)
class Variant:
    """One set of numbers and what is known of it. `brief` is a short timing, `timed` one as of any kernel."""

    number: int
    values: Values
    compiled: CompileResult
    checked: CheckResult | None = None
    brief: TimingResult | None = None
    timed: TimingResult | None = None

    @property
    def verdict(self) -> Verdict:
        """How far it has come: passed unless something is wrong with it."""
        return self.checked.verdict if self.compiled.is_ok and self.checked else self.compiled.verdict

    @property
    def has_failed(self) -> bool:
        """Whether nothing more is done with it."""
        return self.verdict is not Verdict.PASSED

    @property
    def last_timing(self) -> TimingResult | None:
        """The best timing that there is of it; None where it failed."""
        return None if self.has_failed else self.timed or self.brief

    @property
    def failure(self) -> str:
        """Why it failed, in one line; empty unless it has."""
        result = self.checked if self.compiled.is_ok and self.checked else self.compiled
        return headline(result) if self.has_failed else ""


@dataclass(frozen=True, slots=True)
class Build:
    """Build these variants: number and values."""

    wave: tuple[tuple[int, Values], ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Check or time a variant that is built; briefly where `is_brief` says so."""

    number: int
    stage: StepKind
    is_brief: bool = False


@dataclass(slots=True)
class Sweep:
    """A sweep as far as it has come. `written` is the timing of the kernel as it was written and `again` another one,
    made beside those of variants, or what it failed with there. At most `most` variants are built."""

    tunables: tuple[Tunable, ...]
    most: int
    written: TimingResult
    variants: dict[int, Variant] = field(default_factory=dict)
    again: TimingResult | CheckResult | None = None

    def apply(self, event: VariantEvent) -> None:
        """Take what became of a variant into account."""
        name = event.number
        if name == AS_WRITTEN and not isinstance(event, ev.VariantCompiled):
            self.again = event.result
            return
        match event:
            case ev.VariantCompiled(values=values, result=compiled):
                self.variants[name] = Variant(name, dict(values), compiled)
            case ev.VariantChecked(result=checked) if name in self.variants:
                self.variants[name] = replace(self.variants[name], checked=checked)
            case ev.VariantTimed(result=timed) if name in self.variants:
                variant = self.variants[name]
                self.variants[name] = replace(variant, brief=timed) if event.is_brief else replace(variant, timed=timed)
            case _:
                pass

    @property
    def failed_again(self) -> CheckResult | None:
        """What the kernel as it was written failed with when it was timed once more; None unless it did."""
        return self.again if isinstance(self.again, CheckResult) else None

    @property
    def to_beat(self) -> TimingResult:
        """The better timing of the kernel as it was written."""
        others = [self.again] if isinstance(self.again, TimingResult) else []
        return max(self.written, *others, key=lambda timing: timing.speedup) if others else self.written

    def values(self, number: int) -> Values:
        """The numbers of a variant."""
        return self.as_written if number == AS_WRITTEN else self.variants[number].values

    @property
    def as_written(self) -> Values:
        """The numbers that the kernel has."""
        return {tunable.name: tunable.value for tunable in self.tunables}

    @property
    def count(self) -> int:
        """How many variants it builds where nothing cuts it short."""
        return min(self.most, math.prod(len(tunable.candidates) for tunable in self.tunables) - 1)

    def next(self, width: int) -> Build | Judge | None:
        """What is done next, None when all is; at most `width` variants are built together."""
        first = first_wave(self.tunables, self.most)
        if (act := self._of_wave(first, 1, width)) is not None:
            return act
        if len(first) < self.count:
            second = second_wave(self.tunables, [self.variants[n] for n in range(1, len(first) + 1)], self.written)
            if (act := self._of_wave(second[: self.count - len(first)], len(first) + 1, width)) is not None:
                return act
        return next(self._final(), None)

    def _of_wave(self, wave: Sequence[Values], start: int, width: int) -> Build | Judge | None:
        """Builds first, since they need no device; then a short timing of each that compiles."""
        unbuilt = [(n, values) for n, values in enumerate(wave, start) if n not in self.variants]
        if unbuilt:
            return Build(tuple(unbuilt[:width]))
        for variant in (self.variants[n] for n in range(start, start + len(wave))):
            if not variant.has_failed and variant.brief is None:
                return Judge(variant.number, StepKind.TIME, is_brief=True)
        return None

    def _final(self) -> Iterator[Judge]:
        is_any_timed = any(variant.timed and not variant.has_failed for variant in self.variants.values())
        if is_any_timed and self.again is None:
            yield Judge(AS_WRITTEN, StepKind.TIME)
        if self.failed_again is not None:
            return
        for variant in self.finalists():
            if variant.checked is None:
                yield Judge(variant.number, StepKind.CHECK)
            elif variant.timed is None:
                yield Judge(variant.number, StepKind.TIME)

    def finalists(self) -> list[Variant]:
        """The few that are checked and timed as any kernel is: the fastest, if faster than the kernel as written. One
        that fails makes room for the next."""
        fast = [
            variant
            for variant in self.variants.values()
            if variant.brief and not variant.has_failed and variant.brief.speedup > self.written.speedup
        ]
        fast.sort(key=lambda variant: (-(variant.brief.speedup if variant.brief else 0.0), variant.number))
        return fast[:FINALISTS]

    @property
    def kept(self) -> Variant | None:
        """The fastest that is correct and fully timed, where it beats the kernel as written beyond the noise.

        None also where that kernel failed when it was timed again, and until it was.
        """
        if not isinstance(self.again, TimingResult):
            return None
        timed = [
            variant
            for variant in self.variants.values()
            if variant.checked and variant.timed and not variant.has_failed
        ]
        best = max(timed, key=lambda variant: variant.timed.speedup if variant.timed else 0.0, default=None)
        return best if best and best.timed and is_improvement(best.timed, self.to_beat) else None


def in_words(values: Values) -> str:
    """A set of numbers as people read it: `kTile=64, kStages=2`."""
    return ", ".join(f"{name}={number}" for name, number in values.items())


def changed(before: Values, after: Values) -> str:
    """What differs between two sets of numbers: `kTile 64 → 128`."""
    return ", ".join(f"{name} {before[name]} → {after[name]}" for name in before if before[name] != after[name])


def first_wave(tunables: Sequence[Tunable], most: int) -> list[Values]:
    """All combinations where they fit; else one number changed at a time, near ones first and tunable by tunable in
    turn, with a third of the room left for combinations."""
    written = {tunable.name: tunable.value for tunable in tunables}
    if math.prod(len(tunable.candidates) for tunable in tunables) - 1 <= most:
        names = [tunable.name for tunable in tunables]
        product = itertools.product(*(tunable.candidates for tunable in tunables))
        return [values for numbers in product if (values := dict(zip(names, numbers, strict=True))) != written]
    singles = [[written | {tunable.name: number} for number in _near(tunable)] for tunable in tunables]
    in_turn = [values for row in itertools.zip_longest(*singles) for values in row if values is not None]
    return in_turn[: max(1, most - most // 3)]


def _near(tunable: Tunable) -> list[int]:
    index = tunable.candidates.index(tunable.value)
    others = [number for number in tunable.candidates if number != tunable.value]
    return sorted(others, key=lambda number: abs(tunable.candidates.index(number) - index))


def second_wave(tunables: Sequence[Tunable], first: Sequence[Variant], written: TimingResult) -> list[Values]:
    """Combinations that were not tried, those first that promise most if each number brings by itself what it brought
    alone. Numbers with which the kernel failed are left out. Judged by brief timings: a later one changes nothing."""
    gains = [_gains(tunable, first, written) for tunable in tunables]
    rows = [sorted(gain, key=lambda number, gain=gain: -gain[number])[:COMBINED] for gain in gains]  # type: ignore[misc]
    tried = [{tunable.name: tunable.value for tunable in tunables}, *(dict(variant.values) for variant in first)]
    untried = list[tuple[float, Values]]()
    for numbers in itertools.islice(itertools.product(*rows), MOST_COMBINATIONS):
        values = dict(zip((tunable.name for tunable in tunables), numbers, strict=True))
        if values not in tried:
            untried.append((sum(gain[number] for gain, number in zip(gains, numbers, strict=True)), values))
    return [values for _, values in sorted(untried, key=lambda promise: -promise[0])]


def _gains(tunable: Tunable, first: Sequence[Variant], written: TimingResult) -> dict[int, float]:
    """Logarithm of what each number that was tried alone brought over the one that is written."""
    gains = {tunable.value: 0.0}
    for variant in first:
        number = variant.values[tunable.name]
        if number != tunable.value and variant.brief is not None:
            gains[number] = math.log(variant.brief.speedup / written.speedup)
    return gains
