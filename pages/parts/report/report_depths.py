"""Every depth of a run in a report: what changed, whether it held, what failed and how it was mended."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from pages.parts import texts, wording
from pages.parts.kernel import repair_tab
from pages.parts.report import report_html
from pages.parts.report.report_html import Html, element, folded, section, table
from storage import counters, queries
from storage.database import Database
from storage.queries import AttemptRow, DepthRow, MetricChangeRow, RunRow, StepRow
from storage.records import DepthOutcome, Verdict

DEPTHS = 100
FAILURES = 20
METRICS = 8
TOLD_CHARACTERS = 6_000


def sections(db: Database, run: RunRow, attempts: Sequence[AttemptRow]) -> Iterator[Html]:
    """One section per depth that is told, after a word on those that are not."""
    depths = queries.depths(db, run.run_id)
    shown = chosen(depths)
    if len(shown) < len(depths):
        yield element(
            "p",
            f"This report shows {len(shown):,} of {len(depths):,} depths: the first, the last, those that made a new "
            "best kernel, and the newest of the others. The run folder has all of them.",
            class_="warn",
        )
    unapplied = [s for s in queries.steps(db, run.run_id, limit=20_000) if s.outcome == "patch_failed"]
    by_id = {a.candidate_id: a for a in attempts}
    cures: dict[str, AttemptRow] = {}
    by_depth: dict[int, list[AttemptRow]] = {}
    for a in attempts:
        by_depth.setdefault(a.depth, []).append(a)
        if a.parent_id:
            cures.setdefault(a.parent_id, a)
    for depth in shown:
        of_depth = by_depth.get(depth.depth, [])
        yield _section(db, run, depth, of_depth, by_id, cures, [s for s in unapplied if s.depth == depth.depth])


def chosen(depths: Sequence[DepthRow], limit: int = DEPTHS) -> list[DepthRow]:
    """All depths, or of too many the first, the last, those with a new best and the newest others: `limit` in all."""
    if len(depths) <= limit:
        return list(depths)
    between = sorted(depths[1:-1], key=lambda d: (d.is_best, d.depth))[-(limit - 2) :]
    return [depths[0], *sorted(between, key=lambda d: d.depth), depths[-1]]


def _section(
    db: Database, run: RunRow, depth: DepthRow, attempts: Sequence[AttemptRow], by_id: Mapping[str, AttemptRow],
    cures: Mapping[str, AttemptRow], unapplied: Sequence[StepRow],
) -> Html:  # fmt: skip
    result = by_id.get(depth.candidate_id or "")
    parts = [element("p", _outcome(depth, result))]
    parts += _review(db, run, depth.candidate_id)
    if result is not None and result.summary:
        parts.append(element("p", element("b", "What changed: "), result.summary))
    if depth.is_profile_exposed:
        parts.append(element("p", "Profile shown to the model.", class_="quiet"))
    if result is not None:
        parts += _change(run, result, by_id)
        parts += _metrics(db, run, result)
    parts += [_failure(db, run, a, cures.get(a.candidate_id)) for a in _failed(attempts)[:FAILURES]]
    hidden = len(_failed(attempts)) - FAILURES
    if hidden > 0:
        parts.append(element("p", f"{hidden} more failed kernels of this depth are not shown.", class_="quiet"))
    parts += [element("p", f"Not applied: {step.text}", class_="quiet") for step in unapplied[:FAILURES]]
    return section(f"Depth {depth.depth}", *parts, anchor=f"depth-{depth.depth}")


def _outcome(depth: DepthRow, result: AttemptRow | None) -> str:
    tried = f"{depth.attempts} {'kernel' if depth.attempts == 1 else 'kernels'} tried, {depth.failed} failed"
    if depth.outcome is None:
        return f"In progress: {tried}."
    if depth.outcome is DepthOutcome.GIVEN_UP or result is None:
        return f"Given up: {depth.reason or 'no reason was recorded'} ({tried})."
    best = ", the best so far" if depth.is_best else ""
    measured = f"{wording.speedup(result.speedup, result.noise)} {wording.plus_minus(result.noise)}"
    return f"Kernel {result.number} is correct, {measured}, {wording.latency(result.latency_ms)}{best} ({tried})."


def _change(run: RunRow, result: AttemptRow, by_id: Mapping[str, AttemptRow]) -> list[Html]:
    """Against the kernel that the depth started from: repairs within it are part of the change."""
    base = by_id.get(result.base_id or "") or by_id.get(result.parent_id or "")
    if base is None or base.candidate_id == result.candidate_id:
        return []
    old, new = texts.source(run.run_id, base.source_blob), texts.source(run.run_id, result.source_blob)
    added, removed = report_html.changed(old, new)
    title = f"Difference to kernel {base.number}: {added} lines added, {removed} removed"
    return [folded(title, report_html.difference(old, new))]


def _metrics(db: Database, run: RunRow, result: AttemptRow) -> list[Html]:
    changes = queries.metric_changes(db, run.run_id, result.candidate_id)
    if not changes:
        found = queries.profile(db, run.run_id, result.candidate_id)
        return [element("p", f"No profile: {found.failure}", class_="quiet")] if found and found.failure else []
    rows = [_metric(change) for change in telling(changes)]
    left = len(changes) - len(rows)
    more = f"; {left} more are not shown" if left else ""
    name = f"Profile of kernel {result.number} against its nearest profiled ancestor, largest changes first{more}"
    return [folded("Profile", table(name, ("Metric", "Value", "Before", "Change"), rows, right=(1, 2, 3)))]


def telling(changes: Sequence[MetricChangeRow], limit: int = METRICS) -> list[MetricChangeRow]:
    """Those that moved most; without anything before, the first ones."""

    def weight(change: MetricChangeRow) -> float:
        return abs(math.log(change.ratio)) if change.ratio and change.ratio > 0 else 0.0

    return sorted(changes, key=weight, reverse=True)[:limit]


def _metric(change: MetricChangeRow) -> tuple[str, str, str, str]:
    is_share = change.metric.endswith("share")
    before = wording.NONE if change.previous is None else wording.quantity(change.previous, change.unit, is_share)
    moved = wording.NONE if change.ratio is None else f"{100 * (change.ratio - 1):+.1f} %"
    return counters.label(change.metric), wording.quantity(change.value, change.unit, is_share), before, moved


def _failed(attempts: Sequence[AttemptRow]) -> list[AttemptRow]:
    return [a for a in attempts if a.verdict not in (None, Verdict.PASSED)]


def _failure(db: Database, run: RunRow, a: AttemptRow, child: AttemptRow | None) -> Html:
    """One failed kernel: its error, its diagnosis, and the kernel that was to mend it."""
    verdict = wording.VERDICT_NAME[a.verdict] if a.verdict else ""
    parts: list[Html] = []
    found = queries.evaluation(db, run.run_id, a.candidate_id)
    if text := (found.message or found.diagnostics) if found else a.message:
        parts.append(element("pre", wording_cut(text), class_="told", tabindex="0"))
    for diagnosis in queries.diagnoses(db, run.run_id, a.candidate_id):
        if diagnosis.candidate_id == a.candidate_id:
            cause = texts.source(run.run_id, diagnosis.text_blob)
            parts += [
                element("p", element("b", "Diagnosis")),
                element("pre", wording_cut(cause), class_="told", tabindex="0"),
            ]
    if child is None:
        parts.append(element("p", "Not repaired.", class_="quiet"))
    else:
        became = wording.VERDICT_NAME[child.verdict] if child.verdict else "not judged yet"
        parts.append(element("p", f"Patched into kernel {child.number} ({became}): {child.summary}"))
    return folded(f"Kernel {a.number}: {verdict}. {wording.cut(a.message, 160)}", *parts)


def _review(db: Database, run: RunRow, candidate_id: str | None) -> list[Html]:
    """What a judge had said before a kernel was written."""
    said = repair_tab.led_here(db, run.run_id, candidate_id) if candidate_id else None
    if said is None:
        return []
    fields = repair_tab.fields(texts.source(run.run_id, said.text_blob) or "{}")
    told = "\n".join(f"{name.capitalize()}: {value}" for name, value in fields.items())
    title = element("p", element("b", f"{said.label.capitalize()} on the parent"))
    return [title, element("pre", wording_cut(told), class_="told", tabindex="0")]


def wording_cut(text: str) -> str:
    """The opening of a long text, saying that it was cut."""
    if len(text) <= TOLD_CHARACTERS:
        return text
    return f"{text[:TOLD_CHARACTERS]}\n… {len(text) - TOLD_CHARACTERS:,} more characters are not shown."
