"""How far a kernel can be trusted, in one sentence, and the figures behind its verdict that are no checks. Pure: knows
rows of the index, not how they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pages.parts import wording
from storage.proof import Group, Proof, Standing, counted
from storage.queries import BaselineRow, EvaluationRow
from storage.records import Verdict

Facts = list[tuple[str, str]]

_OF_THE_PROCESS = ("isolation", "isolated", "threads", "printed")


@dataclass(frozen=True, slots=True)
class Trust:
    """The overall standing. `tone` is green (correct), orange (needs a look), red (failed),
    blue (not judged yet) or gray (nothing recorded)."""

    tone: wording.Tone
    sentence: str
    rest: str = ""


def overall(verdict: Verdict | None, is_timed: bool, proofs: Sequence[Proof]) -> Trust:
    """What stands behind a verdict, all checks together."""
    if not proofs:
        return _unrecorded(verdict)
    counts = counted(proofs)
    broken = _checks(proofs, Standing.BROKEN)
    match verdict:
        case None:
            return Trust("blue", f"Not judged yet: {counts} so far.")
        case Verdict.PASSED if broken:
            return Trust("red", f"Correct, although {broken} failed.", f"{counts}.")
        case Verdict.PASSED:
            word = "Correct" if is_timed else "Correct, not timed yet"
            flagged = _checks(proofs, Standing.FLAGGED)
            return Trust(
                "orange" if flagged else "green", f"{word}: {counts}.", f"Flagged: {flagged}." if flagged else ""
            )
        case Verdict.COMPILE_ERROR:
            return Trust("red", "Does not compile: neither checked nor timed.", f"{counts}.")
        case _:
            why = f": {broken} failed" if broken else ""
            return Trust("red", f"{_rejected(verdict, proofs)}{why}.", f"{counts}.")


def _checks(proofs: Sequence[Proof], standing: Standing) -> str:
    names = dict.fromkeys(row.check for row in proofs if row.standing is standing)
    return ", ".join(f"“{name}”" for name in names)


def _rejected(verdict: Verdict, proofs: Sequence[Proof]) -> str:
    groups = dict.fromkeys(str(row.group) for row in proofs if row.standing is Standing.BROKEN)
    if verdict is Verdict.REFUSED:
        return f"Refused{' by ' if groups else ''}{' and '.join(groups)}"
    return f"Failed, {wording.VERDICT_NAME[verdict]}"


def _unrecorded(verdict: Verdict | None) -> Trust:
    older = "Individual checks were not recorded for this kernel; the known figures are below."
    if verdict is None:
        return Trust("blue", "Not judged yet.")
    if verdict is Verdict.PASSED:
        return Trust("gray", "Correct.", older)
    return Trust("red", f"{_rejected(verdict, ())}.", older)


def screening(e: EvaluationRow) -> Facts:
    """The build."""
    cached = " (cached)" if e.compile_is_cached else ""
    return [] if e.compile_seconds is None else [("build", f"{wording.seconds(e.compile_seconds)}{cached}")]


def isolation(e: EvaluationRow) -> Facts:
    """What is known of the process that ran it."""
    return _named({name: value for name, value in e.evidence.items() if name in _OF_THE_PROCESS})


def correctness(e: EvaluationRow) -> Facts:
    """The comparison; nothing before it was made."""
    if e.check_verdict is None:
        return []
    found = [
        ("verdict", wording.VERDICT_NAME[e.verdict] if e.verdict else "not judged yet"),
        ("check", wording.seconds(e.check_seconds)),
        ("largest error", _number(e.max_error)),
        ("tolerance", _number(e.tolerance)),
        ("reference's own error", _number(e.reference_error)),
        ("largest absolute error", _number(e.max_abs_error)),
        ("precision", e.precision or wording.NONE),
        ("seed", wording.NONE if e.seed is None else str(e.seed)),
        ("trials", ", ".join(e.trials) or wording.NONE),
    ]
    return found + _named({name: value for name, value in e.evidence.items() if name not in _OF_THE_PROCESS})


def timing(e: EvaluationRow) -> Facts:
    """The pairs; nothing before they were taken."""
    if not e.sample_count:
        return []
    found = [
        ("speed-up", f"{wording.speedup(e.speedup, e.noise)} ({wording.plus_minus(e.noise)})"),
        ("95 % interval", wording.interval(e.low, e.high)),
        ("kernel, median", wording.latency(e.latency_ms)),
        (f"{e.baseline or 'baseline'}, median", wording.latency(e.baseline_latency_ms)),
        ("pairs", f"{e.sample_count:,}"),
        ("took", wording.seconds(e.timing_seconds)),
    ]
    return found + _named(e.timing_evidence)


def second(e: EvaluationRow, baseline: BaselineRow | None) -> Facts:
    """The same kernel over the further baseline; nothing where that could not be measured."""
    found = baseline.under(e.speedup, e.noise) if baseline else None
    if found is None or baseline is None:
        return []
    itself = wording.speedup(baseline.speedup, baseline.noise)
    return [
        (
            f"over {baseline.name}",
            f"{wording.speedup(found.speedup, found.noise)} ({wording.plus_minus(found.noise)}, "
            f"95 %: {wording.interval(found.low, found.high)})",
        ),
        (
            f"{baseline.name} itself",
            f"{itself} over eager ({wording.plus_minus(baseline.noise)}), {wording.latency(baseline.latency_ms)}",
        ),
    ]


OF_GROUP: Mapping[Group, Callable[[EvaluationRow], Facts]] = {
    Group.SCREENING: screening,
    Group.ISOLATION: isolation,
    Group.CORRECTNESS: correctness,
    Group.TIMING: timing,
}


def _named(evidence: Mapping[str, str]) -> Facts:
    return [(name.replace("_", " "), value) for name, value in evidence.items()]


def _number(value: float | None) -> str:
    return wording.NONE if value is None else f"{value:.3g}"
