"""The report of one run: what was done where and when, how fast it got, its curve, and every depth with what changed in
it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pages.parts import run_state, speed_of_light, texts, wording
from pages.parts.kernel import trust
from pages.parts.report import report_depths, report_figure, report_html
from pages.parts.report.report_figure import Level, Series, Spot
from pages.parts.report.report_html import Html, document, element, facts, folded, join, section, table
from pages.parts.status import damaged, settings_list
from storage import codec, damage, folder, queries
from storage.command_arguments import readable
from storage.database import Database
from storage.queries import AttemptRow, CommandRow, DepthRow, RunRow
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
    shown_depths = {depth.depth for depth in report_depths.chosen(queries.depths(db, run_id))}
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
        *report_depths.sections(db, run, attempts),
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
    found = trust.overall(best.verdict, best.speedup is not None, proofs)
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
    drawn = report_figure.draw(words, "depth (completed optimisation steps)", [series], _levels(db, run))
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
