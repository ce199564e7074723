"""The report of one run: what was done where and when, how fast it got, its curve, and every depth: what changed,
whether it held, what failed and how it was mended."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from pages.parts import run_state, speed_of_light, texts, wording
from pages.parts.kernel import repair_tab, trust_tab
from pages.parts.report import report_html
from pages.parts.report.report_html import (
    Html,
    Level,
    Series,
    Spot,
    document,
    element,
    facts,
    folded,
    join,
    section,
    table,
)
from pages.parts.status import damaged, settings_list
from storage import codec, counters, damage, folder, queries
from storage.command_arguments import readable
from storage.database import Database
from storage.queries import AttemptRow, CommandRow, DepthRow, MetricChangeRow, RunRow, StepRow
from storage.records import DepthOutcome, Verdict
from storage.relative import is_known
from storage.verbs import VERBS

HOW_TO_READ = (
    "A speed-up is the median, over pairs of calls taken in turn, of the baseline's latency over the kernel's; the "
    "interval holds the median with 95 % confidence. The baseline is the PyTorch module run eagerly, in the same "
    "precision class.",
    "A depth is one completed optimisation step: it starts from a correct kernel, changes one thing, and ends when the "
    "result is correct and timed, or is given up. Depth 0 is the first correct kernel.",
    "The best kernel is the fastest correct one of the run, abandoned branches included. Kernels that it does not beat "
    "by more than the noise are tied with it. The next depth starts from the kernel that the base policy chooses, "
    "which counts only gains beyond the noise.",
    "A failed kernel is first diagnosed in words and then patched by line edits. Failed kernels are listed under their "
    "depth with their diagnosis and repair.",
    "The hardware limit is the theoretical minimum: the time to move the task's bytes, or to do its operations, at the "
    "rates measured on the device. Its line is drawn against eager's latency at the first timing of the run.",
)
RINGS = 1_500


def run_report(db: Database, run_id: str) -> str:
    """The whole file as text.

    Raises:
        LookupError: the run is not in the index.
    """
    run = queries.run(db, run_id)
    if run is None:
        raise LookupError(f"there is no run {run_id} in the index")
    attempts = queries.attempts(db, run_id)
    shown_depths = {depth.depth for depth in chosen(queries.depths(db, run_id))}
    title = (
        f"{run.title.capitalize()}: {wording.speedup(run.best_speedup)} over eager PyTorch"
        if run.best_speedup
        else (f"{run.title.capitalize()}: no correct kernel yet")
    )
    return document(
        title,
        *_head(db, run),
        section("Speed-up by depth", _curve(db, run, attempts, shown_depths)),
        _best(db, run, attempts),
        *sections(db, run, attempts),
        _steering(queries.commands(db, run_id)),
        _settings(run_id),
        section("How to read this", *(element("p", text) for text in HOW_TO_READ)),
    )


def file_name(run: RunRow) -> str:
    """What the file is called when it is saved."""
    return f"{run.run_id}.html"


def _head(db: Database, run: RunRow) -> Iterator[Html]:
    state = run_state.of(run)
    limit = queries.limit(db, run.run_id)
    if run.replay_of:
        yield element("p", f"Replay of run {run.replay_of}: shown again, not measured again.", class_="warn")
    found = damaged.of(run.run_id, db)
    if facts_of_it := " ".join(damage.sentences(found)):
        yield element("p", f"{damage.title(found)}. {facts_of_it}".removeprefix(". "), class_="warn")
    if not state.is_finished:
        yield element("p", f"This run is {state}. The report shows its state at the time of writing.", class_="warn")
    yield facts(
        [
            ("Run", run.run_id),
            ("State", f"{state}" + (f": {run.state_reason}" if run.state_reason else "")),
            ("Task", f"{run.title}, {wording.CLASS_NAME[run.kernel_class]}"),
            ("Device", f"{limit.device}, toolchain {run.toolchain}" if limit else f"toolchain {run.toolchain}"),
            ("Model", run.model),
            ("Started", wording.moment(run.started_at or run.created_at)),
            ("Ended", wording.moment(run.ended_at) if run.ended_at else "not yet"),
        ]
    )
    yield _figures(db, run)


def _figures(db: Database, run: RunRow) -> Html:
    limit, second = queries.limit(db, run.run_id), queries.baseline(db, run.run_id)
    under = second.under(run.best_speedup, run.best_noise) if second else None
    allowed = queries.allowance(db, run.run_id)
    shown = [
        ("Best speed-up", wording.speedup(run.best_speedup, run.best_noise),
         wording.interval(run.best_low, run.best_high)),
        ("Latency", wording.latency(run.best_latency_ms), "median of the best kernel"),
        *([(f"Over {second.name}", wording.speedup(under.speedup, under.noise), "the same kernel")]
          if under and second else []),
        ("Of the hardware limit", speed_of_light.percent(limit, run.best_latency_ms), limit.device if limit else ""),
        ("Correct", wording.share(run.passed, run.passed + run.failed), "kernels of those judged"),
        ("Model calls", wording.count(run.model_calls), f"{wording.tokens(run.tokens)} tokens"),
        ("Cost", wording.cost(run.cost_usd), "of the model calls"),
        ("Engine time", wording.seconds(allowed.spent_s if allowed else None), "in finished steps, without pauses"),
    ]  # fmt: skip
    items = [element("li", name, element("b", value), element("small", note)) for name, value, note in shown]
    return element("ul", *items, class_="figures")


def _best(db: Database, run: RunRow, attempts: list[AttemptRow]) -> Html:
    best = next((a for a in attempts if a.candidate_id == run.best_candidate_id), None)
    if best is None:
        return section("The best kernel", element("p", "No correct kernel timed yet.", class_="quiet"))
    tied = ", ".join(f"kernel {a.number}" for a in attempts if a.is_tied)
    proofs = queries.proofs(db, run.run_id, best.candidate_id)
    found = trust_tab.overall(best.verdict, best.speedup is not None, proofs)
    rows = [(wording.GROUP_NAME[p.group], p.check, wording.STANDING_NAME[p.standing], p.detail) for p in proofs]
    return section(
        "The best kernel",
        element("p", f"Kernel {best.number}, made at depth {best.depth}: {best.summary}"),
        *([element("p", f"Tied with it within the noise: {tied}.")] if tied else []),
        element("p", element("b", found.sentence), f" {found.rest}"),
        folded("All checks", table("Checks of the best kernel", ("Group", "Check", "Result", "Detail"), rows)),
        folded("Source", report_html.source(texts.source(run.run_id, best.source_blob)), is_open=True),
    )


def _steering(commands: list[CommandRow]) -> Html:
    if not commands:
        return section("Steering", element("p", "No commands were given to this run.", class_="quiet"))
    rows = [
        (wording.moment(c.asked_at), c.asked_by, f"{VERBS[c.kind].name} {readable(c.argument)}".strip(),
         command_state(c), c.note)
        for c in commands
    ]  # fmt: skip
    return section("Steering", table("Commands of people", ("Asked", "By", "Command", "State", "Result"), rows))


def command_state(command: CommandRow) -> str:
    """How far a command has come, in words."""
    if command.refused_at is not None:
        return "refused"
    if command.effective_at is not None:
        return f"in effect since step {command.effective_step}"
    return "received" if command.acknowledged_at is not None else "asked"


def _settings(run_id: str) -> Html:
    """What the run was started with; addresses of endpoints stay out of a file that is passed on."""
    try:
        settings = folder.find_run(run_id).read_settings()
    except (FileNotFoundError, codec.DecodeError) as error:
        return section("Settings", element("p", f"run.json cannot be read: {error}", class_="quiet"))
    return section(
        "Settings",
        facts(list(settings_list.rows(settings))),
        folded("The reference module", report_html.source(settings.task_source)),
    )


def _curve(db: Database, run: RunRow, attempts: Sequence[AttemptRow], shown_depths: Collection[int]) -> Html:
    """The curve; marks lead to their depth where that is one of `shown_depths`."""
    timed = [a for a in attempts if a.speedup is not None]
    if not timed:
        return element("p", "No correct kernel timed yet.", class_="quiet")
    shown = sorted(sorted(timed, key=lambda a: -(a.speedup or 0.0))[:RINGS], key=lambda a: a.number)
    rings = [_ring(a, shown_depths) for a in shown]
    words = (
        f"Speed-up by depth: {wording.counted(len(timed), 'correct kernel')}, best {wording.speedup(run.best_speedup)}"
    )
    name = "best so far (rings: every correct kernel)"
    if len(shown) < len(timed):
        name = f"best so far (rings: the {RINGS:,} fastest of {len(timed):,} correct kernels)"
    series = Series(name, "green", "solid", _rises(queries.depths(db, run.run_id), shown_depths), rings)
    drawn = report_html.draw_curve(words, "depth (completed optimisation steps)", [series], _levels(db, run))
    return join([drawn, element("p", "Point at a mark for its figures; click it for its depth.", class_="quiet")])


def _rises(depths: Sequence[DepthRow], shown_depths: Collection[int]) -> list[Spot]:
    """Where the best so far rose, and where it ends: between them nothing is to be seen."""
    found: list[Spot] = []
    known = [d for d in depths if d.best_speedup is not None]
    for at, d in enumerate(known):
        if d.best_speedup is not None and (at in (0, len(known) - 1) or d.best_speedup != known[at - 1].best_speedup):
            text = f"depth {d.depth}: best so far {wording.speedup(d.best_speedup)}"
            found.append(Spot(d.depth, d.best_speedup, text, _href(d.depth, shown_depths)))
    return found


def _ring(a: AttemptRow, shown_depths: Collection[int]) -> Spot:
    measured = f"{wording.speedup(a.speedup, a.noise)} {wording.plus_minus(a.noise)}"
    text = f"kernel {a.number}, depth {a.depth}: {measured}. {wording.cut(a.summary, 120)}"
    return Spot(a.depth, a.speedup or 0.0, text, _href(a.depth, shown_depths))


def _href(depth: int, shown_depths: Collection[int]) -> str:
    return f"#depth-{depth}" if depth in shown_depths else ""


def _levels(db: Database, run: RunRow) -> list[Level]:
    found = [("hardware limit", queries.limit_speedup(db, run.run_id))]
    if (second := queries.baseline(db, run.run_id)) and second.noise is not None and is_known(second.noise):
        found.append((second.name, second.speedup))
    levels = [Level(value, f"{name} {wording.speedup(value)}") for name, value in found if value]
    return [Level(1.0, "eager PyTorch 1×"), *levels]


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
    fields = repair_tab.fields(texts.source(run.run_id, said.text_blob))
    told = "\n".join(f"{name.capitalize()}: {value}" for name, value in fields.items())
    title = element("p", element("b", f"{said.label.capitalize()} on the parent"))
    return [title, element("pre", wording_cut(told), class_="told", tabindex="0")]


def wording_cut(text: str) -> str:
    """The opening of a long text, saying that it was cut."""
    if len(text) <= TOLD_CHARACTERS:
        return text
    return f"{text[:TOLD_CHARACTERS]}\n… {len(text) - TOLD_CHARACTERS:,} more characters are not shown."
