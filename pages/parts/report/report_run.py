"""The report of one run: what was done where and when, how fast it got, its curve, and every depth: what changed,
whether it held, what failed and how it was mended."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from engine.evaluator import languages
from pages.parts import method, run_state, texts, wording
from pages.parts.kernel import repair_tab, story, sweep_table, trust_tab
from pages.parts.kernel.metrics import before_and_after, not_compared
from pages.parts.report.report_html import Curve, Level, Series, Spot, render
from pages.parts.status import (
    alternatives,
    curve_notes,
    damaged,
    outcome,
    provenance,
    settings_list,
    step_sentences,
    waiting_strip,
)
from pages.parts.widgets import diff
from storage import codec
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import AttemptRow, CommandRow, DepthRow, MetricChangeRow, RunRow
from storage.results import counters, deployment, flags, relative
from storage.results.vocabulary import Verdict
from storage.run import damage, folder
from storage.run.settings import DepthOutcome
from storage.run.steering.command_arguments import readable
from storage.run.steering.verbs import VERBS

RINGS = 1_500


def run_report(db: Database, run_id: str) -> str:
    """The whole file as text.

    Raises:
        LookupError: the run is not in the index.
    """
    run = queries.run(db, run_id)
    if run is None:
        raise LookupError(f"there is no run {run_id} in the index")
    attempts, depths = queries.attempts(db, run_id), queries.depths(db, run_id)
    shown = chosen(depths)
    return render(
        "run.html",
        f"{run.title}: {outcome.headline(db, run)}",
        text_of=lambda blob: texts.source(run_id, blob),
        warnings=list(_warnings(db, run)),
        notes=list(filter(None, _notes(db, run, attempts))),
        known=_known(db, run),
        numbers=[(figure.label, figure.value, figure.note) for figure in outcome.figures(db, run)],
        time_title=outcome.TIME_TITLE,
        time_about=outcome.TIME_ABOUT,
        time_bars=outcome.time_bars(db, run_id),
        waited=_waited(db, run),
        calls_title=outcome.CALLS_TITLE,
        call_bars=outcome.call_bars(db, run_id),
        curve=_curve(db, run, attempts, {depth.depth for depth in shown}),
        curve_notes=curve_notes.of_report(db, run),
        depths=list(_depths(db, run, shown, attempts)),
        depth_count=len(depths),
        words=method.words(run_id, db),
        commands=[_command(command, run_state.of(run).is_over) for command in queries.commands(db, run_id)],
        **_best(db, run, attempts),
        **_settings(run),
    )


def _waited(db: Database, run: RunRow) -> str:
    strip = waiting_strip.of_run(db, run.run_id, run.last_event_at or 0.0)
    return waiting_strip.sentence(strip) if strip else ""


def file_name(run: RunRow) -> str:
    """What the file is called when it is saved."""
    return f"{run.run_id}.html"


def _warnings(db: Database, run: RunRow) -> Iterator[str]:
    state, damages = run_state.of(run), damaged.of(run.run_id, db)
    if run.replay_of:
        yield f"Replay of run {run.replay_of}: shown again, not measured again."
    if facts := " ".join(damage.sentences(damages)):
        yield f"{damage.title(damages)}. {facts}".removeprefix(". ")
    count, advice = outcome.to_look_at(db, run.run_id, run.best_candidate_id or "")
    if count:
        findings = wording.counted(count, "finding")
        yield f"To look at: {findings} of the best kernel could change its verdict. {advice}"
    if doubt := outcome.doubt_best(db, run):
        yield doubt.sentence
    if lost := outcome.loses(db, run):
        yield lost
    if avoidable := outcome.avoidable(db, run.run_id, run.best_candidate_id or ""):
        yield avoidable
    if said := alternatives.elsewhere(outcome.elsewhere(db, run), run.best_measured):
        yield said
    if in_turns := outcome.timed_in_turns(db, run):
        yield in_turns
    if older := settings_list.older_rules(run.run_id):
        yield older
    if not state.is_finished:
        yield f"This run is {state}. The report shows its state at the time of writing."


def _notes(db: Database, run: RunRow, attempts: Sequence[AttemptRow]) -> Iterator[str]:
    """What else stands beside the result on the run's page, or under its curve; empty texts among them."""
    if run.best_candidate_id:
        yield outcome.tied(run, attempts, "the best kernel")
        yield outcome.decided(db, run.run_id, run.best_candidate_id)
    yield outcome.limit_doubt(db, run.run_id)
    yield provenance.shared_in_report(db, run, run_state.of(run))


def _known(db: Database, run: RunRow) -> list[tuple[str, str]]:
    limit = queries.limit(db, run.run_id)
    return [
        ("Run", run.run_id),
        ("State", f"{run_state.of(run)}: {outcome.ended(db, run, run_state.of(run))}".removesuffix(": ")),
        ("Task", f"{wording.task(run.task_name)}, {wording.CLASS_NAME[run.kernel_class]}"),
        ("Device", f"{limit.model}, toolchain {run.toolchain}" if limit else f"toolchain {run.toolchain}"),
        ("Language", languages.label(run.language)),
        ("Model", wording.model(run.model, run.is_example)),
        ("Started", wording.moment(run.started_at or run.created_at)),
        ("Ended", wording.moment(run.ended_at) if run.ended_at else "not yet"),
    ]


def _best(db: Database, run: RunRow, attempts: Sequence[AttemptRow]) -> dict[str, Any]:
    best = next((a for a in attempts if a.candidate_id == run.best_candidate_id), None)
    if best is None:
        return {"best": None}
    check_records = queries.check_records(db, run.run_id, best.candidate_id)
    found = flags.flags(check_records)
    return {
        "best": best,
        "alternatives": list(alternatives.lines(queries.baselines(db, run.run_id), best)),
        "deployment": [
            (told.name, told.standing, told.sentence)
            for seen in filter(None, [queries.deployment(db, run.run_id, best.candidate_id)])
            for told in deployment.told(seen)
        ],
        "alternatives_about": alternatives.ABOUT,
        "alternative_heads": tuple(column.label for column in alternatives.COLUMNS),
        "tied": ", ".join(f"kernel {a.number}" for a in attempts if a.is_tied),
        "trust": trust_tab.overall(best.verdict, best.speedup is not None, check_records),
        "checks": [(wording.GROUP_NAME[p.group], p.check, flags.in_words(p, found), p.detail) for p in check_records],
    }


def _command(c: CommandRow, is_over: bool) -> tuple[str, str, str, str, str]:
    verb = f"{VERBS[c.kind].name} {readable(c.argument)}".strip()
    return wording.moment(c.asked_at), c.asked_by, verb, command_state(c, is_over), c.note


def command_state(command: CommandRow, is_over: bool) -> str:
    """How far a command has come, in words."""
    if command.refused_at is not None:
        return "refused"
    if command.effective_at is not None:
        return f"in effect since step {command.effective_step}"
    if command.acknowledged_at is None:
        return "asked"
    return "the run ended before it took effect" if is_over else "received"


def _settings(run: RunRow) -> dict[str, Any]:
    """What the run was started with; addresses of endpoints stay out of a file that is passed on."""
    try:
        settings = folder.find_run(run.run_id).read_settings()
    except (FileNotFoundError, codec.DecodeError) as error:
        return {"unread_settings": f"{error}"}
    rows = list(settings_list.rows(settings, run.kernel_class))
    return {"unread_settings": "", "setting_rows": rows, "reference": settings.task_source}


def _curve(db: Database, run: RunRow, attempts: Sequence[AttemptRow], shown_depths: Collection[int]) -> Curve | None:
    """The curve, if there is any; marks lead to their depth where that is one of `shown_depths`."""
    timed = [a for a in attempts if a.speedup is not None]
    if not timed:
        return None
    shown = sorted(sorted(timed, key=lambda a: -(a.speedup or 0.0))[:RINGS], key=lambda a: a.number)
    terms = method.words(run.run_id, db)
    count = wording.counted(len(timed), "correct kernel")
    words = f"Speed-up by {terms.step}: {count}, best {wording.best(run)}"
    name = "best so far (rings: every correct kernel)"
    if len(shown) < len(timed):
        name = f"best so far (rings: the {RINGS:,} fastest of {len(timed):,} correct kernels)"
    rises = _rises(queries.depths(db, run.run_id), timed, shown_depths, terms.step)
    series = Series(name, "green", "solid", rises, [_ring(a, shown_depths, terms.step) for a in shown])
    best = next((a.number for a in timed if a.is_best), None)
    return Curve(words, f"{terms.step} ({terms.counts})", [series], _levels(db, run, best))


def _rises(
    depths: Sequence[DepthRow], timed: Sequence[AttemptRow], shown_depths: Collection[int], step: str
) -> list[Spot]:
    """Where the best so far rose, and where it ends: between them nothing is to be seen."""
    spots: list[Spot] = []
    measured = [d for d in depths if d.best_speedup is not None]
    for at, d in enumerate(measured):
        if d.best_speedup is not None and (
            at in (0, len(measured) - 1) or d.best_speedup != measured[at - 1].best_speedup
        ):
            text = f"{step} {d.depth}: best so far {wording.best_so_far(d.best_speedup, d.best_noise, timed)}"
            spots.append(Spot(d.depth, d.best_speedup, text, _href(d.depth, shown_depths)))
    return spots


def _ring(a: AttemptRow, shown_depths: Collection[int], step: str) -> Spot:
    measured = wording.measured(a.speedup, a.noise, a.low, a.high)
    text = f"kernel {a.number}, {step} {a.depth}: {measured}. {wording.cut(a.summary, 120)}"
    return Spot(a.depth, a.speedup or 0.0, text, _href(a.depth, shown_depths), a.low, a.high)


def _href(depth: int, shown_depths: Collection[int]) -> str:
    return f"#depth-{depth}" if depth in shown_depths else ""


def _levels(db: Database, run: RunRow, best: int | None) -> list[Level]:
    limit, fastest = queries.limit_speedup(db, run.run_id), queries.baseline(db, run.run_id)
    is_eager_best = alternatives.is_eager_best(fastest)
    eager = Level(1.0, "eager PyTorch 1×" + (", the fastest alternative" if is_eager_best else ""), is_eager_best)
    levels = [eager]
    if limit:
        levels.append(Level(limit, f"hardware limit {wording.speedup(limit)} (timed with kernel {best})"))
    eager_ms = relative.baseline_ms(run.best_speedup, run.best_latency_ms)
    for group in alternatives.together([row.beside(eager_ms) for row in queries.baselines(db, run.run_id)]):
        for row in group:
            is_best = not is_eager_best and fastest is not None and row.name == fastest.name
            name = alternatives.label(group) if row is group[0] else ""
            levels.append(Level(row.speedup or 1.0, name, is_best))
    return levels


DEPTHS = 100
FAILURES = 20
METRICS = 8
TOLD_CHARACTERS = 6_000


def _depths(
    db: Database, run: RunRow, shown: Sequence[DepthRow], attempts: Sequence[AttemptRow]
) -> Iterator[dict[str, Any]]:
    """What is told of each depth."""
    unapplied = [s for s in queries.steps(db, run.run_id, limit=20_000) if s.outcome == "patch_failed"]
    by_id = {a.candidate_id: a for a in attempts}
    cures: dict[str, AttemptRow] = {}
    by_depth: dict[int, list[AttemptRow]] = {}
    for a in attempts:
        by_depth.setdefault(a.depth, []).append(a)
        if a.parent_id:
            cures.setdefault(a.parent_id, a)
    for depth in shown:
        result = by_id.get(depth.candidate_id or "")
        failed = [a for a in by_depth.get(depth.depth, []) if a.verdict not in (None, Verdict.PASSED)]
        yield {
            "depth": depth,
            "result": result,
            "outcome": _outcome(depth, result),
            "failed": [_failure(db, run, a, cures.get(a.candidate_id)) for a in failed[:FAILURES]],
            "hidden": len(failed) - FAILURES,
            "unapplied": [step_sentences.sentence(s) for s in unapplied if s.depth == depth.depth][:FAILURES],
            **_review(db, run, depth.candidate_id),
            **_sweep(db, run, depth.candidate_id),
            "predicted": _predicted(db, run, depth.candidate_id),
            **(_change(run, result, by_id) if result else {"base": None}),
            **(_metrics(db, run, result) if result else {"metrics": [], "no_profile": ""}),
        }


def chosen(depths: Sequence[DepthRow]) -> list[DepthRow]:
    """All depths, or of too many the first, the last, those with a new best and the newest others: DEPTHS in all."""
    if len(depths) <= DEPTHS:
        return list(depths)
    between = sorted(depths[1:-1], key=lambda d: (d.is_best, d.depth))[-(DEPTHS - 2) :]
    return [depths[0], *sorted(between, key=lambda d: d.depth), depths[-1]]


def _outcome(depth: DepthRow, result: AttemptRow | None) -> str:
    tried = f"{depth.attempts} {'kernel' if depth.attempts == 1 else 'kernels'} tried, {depth.failed} failed"
    if depth.outcome is None:
        return f"In progress: {tried}."
    if depth.outcome is DepthOutcome.GIVEN_UP or result is None:
        return f"Given up: {depth.reason or 'no reason was recorded'} ({tried})."
    best = ", the best so far" if depth.is_best else ""
    measured = wording.measured(result.speedup, result.noise, result.low, result.high)
    return f"Kernel {result.number} is correct, {measured}, {wording.latency(result.latency_ms)}{best} ({tried})."


def _change(run: RunRow, result: AttemptRow, by_id: Mapping[str, AttemptRow]) -> dict[str, Any]:
    """The change against the kernel that the depth started from: repairs within it are part of the change."""
    base = by_id.get(result.base_id or "") or by_id.get(result.parent_id or "")
    if base is None or base.candidate_id == result.candidate_id:
        return {"base": None}
    old, new = (texts.source(run.run_id, kernel.source_blob) for kernel in (base, result))
    added, removed = texts.counts(base, result) or diff.changed_lines(old, new)
    return {"base": base, "added": added, "removed": removed}


def _metrics(db: Database, run: RunRow, result: AttemptRow) -> dict[str, Any]:
    changes = queries.metric_changes(db, run.run_id, result.candidate_id)
    profile = queries.profile(db, run.run_id, result.candidate_id)
    rows = [_metric(change) for change in telling(changes)]
    more = f"; {len(changes) - len(rows)} more are not shown" if len(changes) > len(rows) else ""
    against = " against its nearest profiled ancestor, largest changes first"
    if not any(change.previous_id for change in changes):
        alone = not_compared(db, run.run_id, result.candidate_id).removeprefix("Profiled; ")
        against = f": {alone[:-1]}"
    name = f"Profile of kernel {result.number}{against}{more}"
    return {"metrics": rows, "profile_of": name, "no_profile": profile.failure if profile else ""}


def telling(changes: Sequence[MetricChangeRow], limit: int = METRICS) -> list[MetricChangeRow]:
    """The metrics that moved most; without anything before, the first ones."""

    def weight(change: MetricChangeRow) -> float:
        return abs(math.log(change.ratio)) if change.ratio and change.ratio > 0 else 0.0

    return sorted(changes, key=weight, reverse=True)[:limit]


def _metric(change: MetricChangeRow) -> tuple[str, str, str, str]:
    before, after = before_and_after(change)
    moved = wording.NONE if change.ratio is None else f"{100 * (change.ratio - 1):+.1f} %"
    return counters.label(change.metric), after, wording.NONE if change.previous is None else before, moved


def _failure(db: Database, run: RunRow, a: AttemptRow, child: AttemptRow | None) -> dict[str, Any]:
    """One failed kernel: its error, its diagnosis, and the kernel that was to mend it."""
    evaluation = queries.evaluation(db, run.run_id, a.candidate_id)
    text = (evaluation.message or evaluation.diagnostics) if evaluation else a.message
    causes = [d for d in queries.diagnoses(db, run.run_id, a.candidate_id) if d.candidate_id == a.candidate_id]
    verdict = wording.VERDICT_NAME[a.verdict] if a.verdict else ""
    return {
        "title": f"Kernel {a.number}: {verdict}. {wording.cut(a.message, 160)}",
        "text": wording_cut(text or ""),
        "causes": [wording_cut(texts.source(run.run_id, cause.text_blob)) for cause in causes],
        "child": child,
        "became": wording.VERDICT_NAME[child.verdict] if child and child.verdict else "not judged yet",
    }


def _review(db: Database, run: RunRow, candidate_id: str | None) -> dict[str, Any]:
    """What a judge had said before a kernel was written."""
    review = repair_tab.led_here(db, run.run_id, candidate_id) if candidate_id else None
    fields = repair_tab.fields(texts.source(run.run_id, review.text_blob)) if review else {}
    verdict = "\n".join(f"{name.capitalize()}: {value}" for name, value in fields.items())
    return {"review": review, "said": wording_cut(verdict)}


def _sweep(db: Database, run: RunRow, candidate_id: str | None) -> dict[str, Any]:
    """What the tuner tried for a depth's kernel; an empty sentence where it was not tuned."""
    sweep = queries.sweep(db, run.run_id, candidate_id) if candidate_id else None
    if sweep is None:
        return {"swept": "", "variants": []}
    rows = queries.variants(db, run.run_id, sweep.candidate_id)
    return {
        "swept": sweep_table.sentence(sweep, len(rows)),
        "variants": [list(sweep_table.words(variant, sweep).values()) for variant in rows],
        "variant_heads": [column.label for column in sweep_table.COLUMNS],
    }


def _predicted(db: Database, run: RunRow, candidate_id: str | None) -> str:
    """What the model expected of a depth's change, beside what was measured; empty where it named neither."""
    prediction = queries.prediction(db, run.run_id, candidate_id) if candidate_id else None
    return story.predicted(prediction, candidate_id) if prediction else ""


def wording_cut(text: str) -> str:
    """The opening of a long text, saying that it was cut."""
    if len(text) <= TOLD_CHARACTERS:
        return text
    return f"{text[:TOLD_CHARACTERS]}\n… {len(text) - TOLD_CHARACTERS:,} more characters are not shown."
