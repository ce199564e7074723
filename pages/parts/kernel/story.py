"""Why a kernel is as fast as it is, as a few sentences made of facts: the paragraph that opens its page. Pure but for
gathering and drawing; knows rows of the index, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.parts import index, timed_anew, wording
from pages.parts.kernel import metrics
from pages.parts.kernel.metrics import Weighed
from pages.parts.status import unshown
from storage.index import queries
from storage.index.queries import AttemptRow, CandidateRow, ExposureRow, PredictionRow, RunRow
from storage.results import relative
from storage.results.vocabulary import Verdict
from storage.run.settings import Origin


@dataclass(frozen=True, slots=True)
class Facts:
    """What a story is told from. `timed` is the nearest ancestor with a speed-up, `profiled` the number of the one
    whose profile `changes` are against, `mended_by` the first correct kernel made from this failed one, `alone` why
    this kernel's profile is compared with none, `unshown` why there was none to show to the model."""

    candidate: CandidateRow
    parent: AttemptRow | None
    timed: AttemptRow | None
    profiled: int | None = None
    changes: Sequence[Weighed] = ()
    mended_by: int | None = None
    predicted: PredictionRow | None = None
    alone: str = ""
    unshown: str = ""
    is_on_gpu: bool = False


def lines(facts: Facts) -> list[str]:
    """What changed; what it gave and was to give; what moved inside, and what the model knew."""
    parts = (_origin(facts),), (_result(facts), _predicted(facts)), (_moved(facts), _seen(facts))
    told = [" ".join(filter(None, line)) for line in parts]
    return [line.replace("….", "…") for line in told if line]


def ancestor(candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> AttemptRow | None:
    """The nearest kernel it descends from that is correct and timed."""
    by_id = {a.candidate_id: a for a in attempts}
    above = by_id.get(candidate.parent_id or "")
    for _ in attempts:  # bounded: a journal written by hand may have a circle
        if above is None or above.speedup is not None:
            break
        above = by_id.get(above.parent_id or "")
    return above if above and above.speedup is not None else None


def mended_by(candidate: AttemptRow, attempts: Sequence[AttemptRow]) -> AttemptRow | None:
    """The first correct kernel among those made from a failed one by repairs alone."""
    line = {candidate.candidate_id}
    for attempt in attempts:
        if attempt.parent_id in line and attempt.origin is not Origin.OPTIMISATION:
            if attempt.verdict is Verdict.PASSED:
                return attempt
            line.add(attempt.candidate_id)
    return None


def moved(candidate: AttemptRow, other: AttemptRow, ratio: relative.Relative) -> str:
    """Why their latencies tell another gain than their speed-ups; empty where they tell the same within the noise."""
    timed = [kernel for a in (candidate, other) for kernel in timed_anew.kernel(a.number, a.speedup, a.latency_ms)]
    return timed_anew.moved(timed[0], timed[1], ratio) if len(timed) == 2 else ""


def faster_or_slower(ratio: relative.Relative) -> str:
    """Faster, slower or neither, by the engine's rule for a gain."""
    if ratio.is_faster:
        return "faster"
    if ratio.is_slower:
        return "slower"
    return "no measurable difference"


def _summary(candidate: CandidateRow) -> str:
    return wording.as_written_here(candidate.summary.rstrip("."))


def _origin(facts: Facts) -> str:
    kernel, parent = facts.candidate, facts.parent
    name = f"Kernel {kernel.number}"
    lines = (
        f" (+{kernel.lines_added} −{kernel.lines_removed} lines)" if kernel.lines_added is not None and parent else ""
    )
    what = f": {_summary(kernel)}" if kernel.summary else ""
    if parent is None:
        return f"{name} was {wording.ORIGIN_NAME[kernel.origin]}{what}."
    if kernel.origin is Origin.REPAIR and parent.verdict not in (None, Verdict.PASSED):
        failed = wording.VERDICT_NAME[parent.verdict] if parent.verdict else ""
        return f"{name} repairs kernel {parent.number} ({failed}){what}{lines}."
    return f"{name} changes kernel {parent.number}{what}{lines}."


def _result(facts: Facts) -> str:
    kernel = facts.candidate
    if kernel.verdict is None:
        return "Not judged yet."
    if kernel.verdict is not Verdict.PASSED:
        reason = kernel.message.split(". ")[0].rstrip(".") or "no reason was recorded"
        end = f" Repaired in kernel {facts.mended_by}." if facts.mended_by else ""
        return f"Failed, {wording.VERDICT_NAME[kernel.verdict]}: {reason}.{end}"
    if kernel.speedup is None:
        return "Correct, not timed yet."
    over_eager = wording.told(kernel, "over eager")
    ratio = relative.gain(kernel, facts.timed, is_on_gpu=facts.is_on_gpu) if facts.timed else None
    if ratio is None or facts.timed is None:
        return f"Speed-up {over_eager}."
    before = wording.ratio(facts.timed)
    return f"{_compared(ratio, facts.timed.number)}. Speed-up {over_eager}, was {before}."


def _compared(ratio: relative.Relative, number: int) -> str:
    spread = wording.interval(ratio.low, ratio.high)
    if not (ratio.is_faster or ratio.is_slower):
        return f"No measurable difference from kernel {number} ({spread})"
    if ratio.speedup >= 2:
        return wording.told(ratio, f"as fast as kernel {number}")
    return f"{100 * abs(ratio.speedup - 1):.0f} % {faster_or_slower(ratio)} than kernel {number} ({spread})"


def _predicted(facts: Facts) -> str:
    """What the model expected of the change, beside what was measured of the kernel, or of its repair."""
    return predicted(facts.predicted, facts.candidate.candidate_id) if facts.predicted else ""


def predicted(prediction: PredictionRow, candidate_id: str | None) -> str:
    """A prediction as a sentence for the page of a kernel."""
    if prediction.predicted is None:
        return f"Technique: {prediction.technique}."
    by = f" ({prediction.technique})" if prediction.technique else ""
    gain = f"Predicted gain over kernel {prediction.base_number}{by}: {wording.speedup(prediction.predicted)}"
    if (gained := prediction.measured) is None:
        return f"{gain}, not measured."
    on = "" if prediction.candidate_id == candidate_id else f" with kernel {prediction.number}"
    return f"{gain}, measured {wording.ratio(gained)}{on}."


def _moved(facts: Facts) -> str:
    if facts.candidate.verdict is not Verdict.PASSED:
        return ""
    if not facts.candidate.is_profiled:
        return "Not profiled."
    if facts.profiled is None:
        return facts.alone
    reasons = metrics.telling(facts.changes)
    if not reasons:
        return f"Profile: no notable change since kernel {facts.profiled}."
    return f"Profile since kernel {facts.profiled}: {', '.join(metrics.phrase(reason) for reason in reasons)}."


def _seen(facts: Facts) -> str:
    if facts.candidate.origin in (Origin.MANUAL, Origin.IMPORTED, Origin.FORKED, Origin.TUNED, Origin.COMPILED):
        return ""
    is_seen = facts.candidate.is_profile_exposed
    if facts.candidate.origin is Origin.REPAIR:
        return f"The prompt for this repair had {'a' if is_seen else 'no'} profile."
    why = f": {facts.unshown}" if facts.unshown else ""
    return "The model had seen a profile." if is_seen else f"The model had not seen a profile{why}."


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Three short lines of facts, each of which the tabs below show."""
    text = "  \n".join(map(wording.plain, lines(gather(run_id, candidate))))
    if candidate.summary:
        summary = wording.plain(_summary(candidate)).strip()
        text = text.replace(summary, f"**{summary}**", 1) if summary else text
    st.markdown(text)


def gather(run_id: str, candidate: CandidateRow) -> Facts:
    """Everything that the story of a kernel is told from."""
    db = index.current()
    run, attempts = queries.run(db, run_id), index.attempts(run_id)
    numbers = {a.candidate_id: a for a in attempts}
    changes = queries.metric_changes(db, run_id, candidate.candidate_id)
    previous = next((c.previous_id for c in changes if c.previous_id), None)
    mender = mended_by(candidate, attempts)
    is_alone = candidate.is_profiled and not previous
    return Facts(
        candidate,
        numbers.get(candidate.parent_id or ""),
        ancestor(candidate, attempts),
        numbers[previous].number if previous in numbers else None,
        metrics.weighed(changes),
        mender.number if mender else None,
        queries.prediction(db, run_id, candidate.candidate_id),
        metrics.not_compared(db, run_id, candidate.candidate_id) if is_alone else "",
        _why_unshown(run_id, candidate, run),
        run is not None and run.is_on_gpu,
    )


def _why_unshown(run_id: str, candidate: CandidateRow, run: RunRow | None) -> str:
    if run is None or candidate.is_profile_exposed or candidate.origin is not Origin.OPTIMISATION:
        return ""
    depth = ExposureRow(candidate.depth, candidate.depth, False)
    missed = unshown.of(index.current(), run_id, run.kernel_class, [depth]).get(candidate.depth)
    return unshown.reason(missed) if missed and missed.candidate_id == candidate.base_id else ""
