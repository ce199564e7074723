"""The speed-up curve on the page: gathers its rows and draws it in place, its points, lines and bands as traces of a
Plotly figure. Traces are pure, from rows of the index; colours are names that the browser resolves."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.parts import index, method, run_settings, wording
from pages.parts.run import curve_marks, selection
from pages.parts.run.curve_marks import Phase
from pages.parts.status import alternatives, beside_base, curve_notes, unshown
from pages.parts.status.curve_notes import Told
from pages.parts.widgets import plot
from storage.codec import DecodeError
from storage.index import queries
from storage.index.queries import (
    BaselineRow,
    DepthSpreadRow,
    FailureRow,
    KernellessRow,
    PointRow,
    RiseRow,
    RunRow,
    SteeringMark,
    UnappliedRow,
    UnshownRow,
)
from storage.results import relative
from storage.results.vocabulary import Verdict
from storage.run import exposure
from storage.run.method_words import PLAIN, MethodWords
from storage.run.settings import Origin, RunSettings, RunState
from storage.run.steering.command_arguments import MANUAL

# As high as the window leaves room for under the header, so that the whole curve is seen without scrolling.
HEIGHT = "clamp(380px, calc(100vh - 326px), 1100px)"  # as page.css keeps free for it


def draw(run: RunRow) -> CurveRows:
    """Draw the curve and return what it shows; a click on it is told through `selection`."""
    rows = gather(run, selection.marked(run.run_id))
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key="curve_head"
    ):
        st.markdown(f"## Speed-up by {wording.plain(rows.words.step)}", width="content")
        scale = st.segmented_control(
            "Scale", ["log", "linear"], default="log", required=True, key="scale", label_visibility="collapsed"
        )
    figure = curve_figure(rows, scale != "linear", run.run_id)
    plot.draw(figure, name(run, rows), HEIGHT, f"{run.run_id}:{scale}", key="curve")
    return rows


def draw_notes(rows: CurveRows) -> None:
    """What of the curve stands in no legend."""
    st.caption(wording.plain(" ".join(filter(None, [_marks(rows), _left_out(rows)]))))


def gather(run: RunRow, selected_id: str = "") -> CurveRows:
    """Everything the curve shows of one run."""
    db = index.current()
    settings = _settings(run.run_id)
    points, limit = queries.points(db, run.run_id, selected_id), queries.limit(db, run.run_id)
    seen, switch = queries.exposures(db, run.run_id), queries.steering_state(db, run.run_id).expose
    words = method.words(run.run_id)
    missed = unshown.of(db, run.run_id, run.kernel_class, seen)
    whys = {depth: unshown.short(row) for depth, row in missed.items()}
    best_eager_ms, timed = (
        relative.baseline_ms(run.best_speedup, run.best_latency_ms),
        queries.baselines(db, run.run_id),
    )
    last = -1 if run.state.is_finished else run.depths  # nothing is planned any more
    return CurveRows(
        points=points,
        failures=queries.failures(db, run.run_id, selected_id),
        unapplied=queries.unapplied(db, run.run_id),
        kernelless=queries.kernelless(db, run.run_id),
        spread=queries.depth_spread(db, run.run_id),
        rises=queries.rises(db, run.run_id),
        phases=curve_marks.phases(seen, switch, exposure.promised(settings) if settings else None, last, words, whys),
        missed=[missed[depth] for depth in sorted(missed)],
        steering=queries.steering_marks(db, run.run_id),
        kernels=run.attempts,
        budget_depths=0 if run.state.is_finished else run.depths,
        eager_ms=(best_eager_ms if run.state.is_finished else None) or usual_eager_ms(points),
        limit_ms=limit.known_ms or None if limit else None,
        target_speedup=settings.budget.target_speedup if settings else None,
        selected_id=selected_id,
        baselines=[row.beside(best_eager_ms) for row in timed],
        by_latency=curve_notes.by_latency(timed, best_eager_ms),
        words=words,
        is_by_hand=queries.first_model(db, run.run_id) == MANUAL,
        is_handed_in=wording.is_handed_in(run.model, run.is_example),
        is_stopped=run.state is RunState.STOPPED,
        is_on_gpu=run.is_on_gpu,
    )


def usual_eager_ms(points: Sequence[PointRow]) -> float | None:
    """Eager's latency while a run is at work: it is timed anew beside every kernel, and no one session moves the median
    much, so that the scale stays."""
    timed = [relative.baseline_ms(p.speedup, p.latency_ms) for p in points]
    return statistics.median([ms for ms in timed if ms] or [0.0]) or None


def name(run: RunRow, rows: CurveRows) -> str:
    """The chart in words, for those who cannot see it."""
    speedup = wording.best(run)
    best = f"best {speedup}" if run.best_speedup else "no correct kernel timed yet"
    others = "".join(f", {row.name} {wording.speedup(row.speedup)}" for row in alternatives.known(rows.baselines))
    return (
        f"Speed-up by {rows.words.step}: {wording.counted(rows.kernels, 'kernel')}, {run.passed:,} correct, "
        f"{best}{others}. The kernels table lists every point."
    )


def _marks(rows: CurveRows) -> str:
    """What the marks that stand in no legend mean."""
    if not rows.points:
        return ""
    notes = [curve_notes.INTERVAL]
    told = Told(rows.rises, rows.baselines, rows.by_latency, rows.missed, rows.kernelless)
    notes += curve_notes.rises(told)
    if rows.eager_ms:
        took = wording.latency(rows.eager_ms)
        notes.append(
            f"The scale on the right is the time of a call where eager PyTorch takes {took} by the "
            "pairs' median ratio; it is timed anew beside each kernel."
        )
    notes += curve_notes.lines(told, "which Trust tells")
    if any(p.base_id for p in rows.points):
        notes.append("A thin line leads from a kernel to one made from it; it is dotted where that one was not kept.")
    notes += curve_notes.gaps(told, rows.words)
    if rows.selected_id:
        notes.append("A ring marks the kernel that is open, or was last.")
    return " ".join(notes)


def _left_out(rows: CurveRows) -> str:
    """That a long run's curve does not draw every kernel; empty where it does."""
    marks = len(rows.points) + len(rows.failures)
    if rows.kernels <= queries.FEW_POINTS:
        return ""
    return (
        f"{rows.kernels:,} kernels drawn as {marks:,} marks: in each column of pixels the fastest, the slowest and the "
        "failures by kind. The table lists all kernels."
    )


def _settings(run_id: str) -> RunSettings | None:
    try:
        return run_settings.of(run_id)
    except (FileNotFoundError, DecodeError):
        return None


NO_KERNEL = "no kernel made"
MANY = 300  # points beyond which their marks are smaller
GRID = {"gridcolor": "@border-color", "zeroline": False, "linecolor": "@border-color"}
# Lines of trajectories; green is the best so far.
TRAJECTORIES = ("@blue-color", "@orange-color", "@violet-color", "@yellow-color", "@red-color")
Trace = dict[str, Any]
UNHOVERED = {"hoverinfo": "skip", "showlegend": False}
FAILURE_MARKS = {
    Verdict.COMPILE_ERROR: ("x", "@orange-color"),
    Verdict.INCORRECT: ("diamond", "@red-color"),
    Verdict.RUNTIME_ERROR: ("triangle-up", "@red-color"),
    Verdict.TIMEOUT: ("hourglass", "@violet-color"),
    Verdict.OUT_OF_MEMORY: ("square", "@violet-color"),
    Verdict.REFUSED: ("octagon", "@violet-color"),
}


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Everything the curve shows. `eager_ms` is eager's latency by which speed-ups are latencies, of a run that is over
    that beside its best kernel, `limit_ms` the hardware's limit, `baselines` those beside eager, none before they were
    measured. `kernels` counts all, also those that a long run's curve leaves out; `missed` are the calls that were to
    show a profile and had none."""

    points: Sequence[PointRow]
    failures: Sequence[FailureRow]
    unapplied: Sequence[UnappliedRow]
    spread: Sequence[DepthSpreadRow]
    rises: Sequence[RiseRow]
    phases: Sequence[Phase]
    steering: Sequence[SteeringMark]
    kernels: int
    budget_depths: int
    eager_ms: float | None
    limit_ms: float | None
    target_speedup: float | None
    selected_id: str = ""
    baselines: Sequence[BaselineRow] = ()
    words: MethodWords = PLAIN
    is_by_hand: bool = False
    is_handed_in: bool = False
    is_stopped: bool = False
    missed: Sequence[UnshownRow] = ()
    kernelless: Sequence[KernellessRow] = ()
    is_on_gpu: bool = False
    by_latency: Sequence[str] = ()

    @property
    def limit_speedup(self) -> float | None:
        """The limit beside that latency of eager."""
        return self.eager_ms / self.limit_ms if self.eager_ms and self.limit_ms else None


def curve_figure(rows: CurveRows, is_log: bool, revision: str) -> dict[str, Any]:
    """The whole figure; `revision` names the run, so that zoom is kept while it stays the same."""
    best = [p for p in rows.points if p.is_best]
    values = [p.speedup for p in rows.points if p.speedup]
    spots = {p.candidate_id: p for p in rows.points}
    size = 10 if len(rows.points) <= MANY else 6
    told = functools.partial(_hover_text, best=best[0] if best else None, is_stopped=rows.is_stopped,
                             is_on_gpu=rows.is_on_gpu)  # fmt: skip
    kernels = functools.partial(_kernels, spots=spots, told=told)
    drawn = [
        _depth_spread(rows.spread, rows.words.step),
        *_branches(rows.points),
        _best_so_far(rows.rises),
        *(kernels(name, points, symbol, colour, size=size)
          for name, points, symbol, colour in _by_outcome(rows.points, spots, rows.is_stopped, rows.is_on_gpu)),
        kernels("tuned", [p for p in rows.points if p.origin is Origin.TUNED], "diamond-tall-open", "@violet-color",
                size=size + 16),
        kernels(wording.ORIGIN_NAME[Origin.COMPILED], [p for p in rows.points if p.origin is Origin.COMPILED],
                "square-open", "@orange-color", size=size + 10),
        kernels("tied with the best", [p for p in rows.points if p.is_tied], "star-open", "@green-color", size=15),
        kernels("best", best, "star", "@green-color", size=17),
        *_selection(rows.points, rows.failures, rows.selected_id),
        *_failures(rows.failures, rows.unapplied, rows.words.step),
        _kernelless(rows.kernelless, rows.words.step),
        *_spacers(values, rows.eager_ms is not None),
    ]  # fmt: skip
    return {"data": [trace for trace in drawn if trace["x"]], "layout": _layout(rows, is_log, revision, values)}


def _by_outcome(
    points: Sequence[PointRow], spots: Mapping[str, PointRow], is_stopped: bool, is_on_gpu: bool
) -> Iterator[tuple[str, list[PointRow], str, str]]:
    accepted = [p for p in points if p.is_accepted]
    slower = [p for p in accepted if beside_base.is_slower(p, spots.get(p.base_id or ""), is_on_gpu=is_on_gpu)]
    yield "accepted", [p for p in accepted if p not in slower], "circle", "@blue-color"
    yield "slower, kept", slower, "circle-x-open", "@blue-color"
    yield (
        wording.UNDECIDED if is_stopped else "correct, pending",
        [p for p in points if p.is_pending and not p.is_accepted and not p.is_best],
        "circle-open-dot",
        "@blue-color",
    )
    yield "abandoned", [p for p in points if not p.is_accepted and not p.is_pending], "circle-open", "@blue-color"


def last_depth(rows: CurveRows) -> int:
    """The last depth on the axis: what is allowed, or what was reached beyond it, without a kernel too; what a run
    reached that ended."""
    reached = [p.depth for p in rows.points] + [f.depth for f in rows.failures] + [row.depth for row in rows.kernelless]
    return max([rows.budget_depths, *reached])


def _layout(rows: CurveRows, is_log: bool, revision: str, values: list[float]) -> dict[str, Any]:
    last = last_depth(rows)
    axis = [-0.75, last + 0.5]
    width = curve_marks.NAME_WIDTH * (axis[1] - axis[0])
    ends = (
        [p.speedup for p in rows.points if p.speedup and p.x < axis[0] + width],
        [p.speedup for p in rows.points if p.speedup and p.x > axis[1] - width],
    )
    best = next((p for p in rows.points if p.is_best), None)
    label = _label(best, axis)
    shapes, notes = curve_marks.reference_lines(
        rows.limit_speedup,
        rows.target_speedup,
        values,
        is_log,
        rows.baselines,
        ends,
        rows.limit_ms,
        label,
    )
    notes += [curve_marks.best_label(best, label)] if best and label else []
    flags, flag_notes = curve_marks.steering_flags(rows.steering, rows.is_by_hand, rows.is_handed_in)
    small = {"size": 12}
    drawn = [*values, *(shape["y0"] for shape in shapes)]
    return {
        "uirevision": revision, "hovermode": "closest", "dragmode": "zoom", "clickmode": "event",
        "margin": {"l": 58, "r": 58 if rows.eager_ms else 14, "t": 26, "b": 66},
        "meta": {"stacks": True, "tips": True},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@text-color", "size": 12},
        "xaxis": {"title": {"text": f"{rows.words.step} ({rows.words.counts})", "font": small, "standoff": 6},
                  "anchor": "y2", "dtick": plot.tick_step(last), "range": axis, **GRID},
        "yaxis": _speed_axis(is_log, revision, drawn),
        **({"yaxis3": _latency_axis(is_log, rows.eager_ms, drawn)} if rows.eager_ms else {}),
        "yaxis2": {"title": {"text": "failed", "font": small}, "domain": [0.0, curve_marks.LANE_TOP], "range": [-1, 1],
                   "showticklabels": False, "fixedrange": True, "zeroline": False, "showgrid": False},
        # Below the chart, clear of the toolbar, which stands above it.
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 11},
                   "itemwidth": 30, "itemsizing": "constant"},
        "shapes": [*curve_marks.phase_bands(rows.phases), *shapes, *flags, curve_marks.LANE],
        "annotations": [*(curve_marks.in_log_units(notes) if is_log else notes), *flag_notes],
    }  # fmt: skip


def _label(best: PointRow | None, axis: Sequence[float]) -> curve_marks.Label | None:
    if best is None or not best.speedup:
        return None
    return curve_marks.Label(best.speedup, (best.x - axis[0]) / (axis[1] - axis[0]))


def _speed_axis(is_log: bool, revision: str, values: list[float]) -> dict[str, Any]:
    ticks = plot.log_ticks(min([1.0, *values]) / curve_marks.ROOM_BELOW, max([1.0, *values]) * curve_marks.ROOM_ABOVE)
    scale = (
        {"type": "log", "tickvals": ticks, "ticktext": [f"{t:g}×" for t in ticks]} if is_log else {"ticksuffix": "×"}
    )
    return {
        "title": {"text": "speed-up over eager baseline", "font": {"size": 12}},
        "domain": [curve_marks.FLAGS_TOP, curve_marks.RIBBON - 0.01], "uirevision": f"{revision}{is_log}",
        **GRID, **scale,
    }  # fmt: skip


def _latency_axis(is_log: bool, eager_ms: float, values: list[float]) -> dict[str, Any]:
    """On the right: the latency that a speed-up comes to beside eager's usual one."""
    low, high = min([1.0, *values]) / curve_marks.ROOM_BELOW, max([1.0, *values]) * curve_marks.ROOM_ABOVE
    ticks = plot.log_ticks(eager_ms / high, eager_ms / low)
    return {
        "title": {"text": "latency", "font": {"size": 12}, "standoff": 4}, "type": "log" if is_log else "linear",
        "overlaying": "y", "side": "right", "matches": "y", "anchor": "x",
        "showgrid": False, "zeroline": False, "tickvals": [eager_ms / ms for ms in ticks],
        "ticktext": [f"{ms:g} ms" if ms >= 0.1 else f"{1000 * ms:g} µs" for ms in ticks],
    }  # fmt: skip


def _kernels(
    name: str,
    points: Sequence[PointRow],
    symbol: str,
    colour: str,
    *,
    size: int,
    spots: Mapping[str, PointRow],
    told: Callable[[PointRow, PointRow | None], str],
) -> Trace:
    """Correct kernels with the noise of their measurement; what is told of one beside the kernel it was made from."""
    return {
        "type": "scatter", "mode": "markers", "name": name,
        "x": [p.x for p in points], "y": [p.speedup for p in points],
        "customdata": [p.candidate_id for p in points],
        "text": [told(p, spots.get(p.base_id or "")) for p in points],
        "hoverinfo": "none",
        "marker": {"symbol": symbol, "size": size, "color": colour, "line": {"width": 1.6, "color": colour}},
        "error_y": {
            "type": "data", "symmetric": False, "thickness": 1.2, "width": 3, "color": colour,
            "array": [(p.high or 0) - (p.speedup or 0) for p in points],
            "arrayminus": [(p.speedup or 0) - (p.low or 0) for p in points],
        },
    }  # fmt: skip


def _hover_text(
    p: PointRow, base: PointRow | None, *, best: PointRow | None, is_stopped: bool, is_on_gpu: bool
) -> str:  # fmt: skip
    """What was changed, what it gained, the verdict, and what a tie means: a line each, as plain text."""
    line = f" · trajectory {p.trajectory}" if p.trajectory else ""
    rank = " · best" if p.is_best else " · tied with the best" if p.is_tied else ""
    measured = wording.measured(p.speedup, p.noise, p.low, p.high)
    tied = f"\n{beside_base.tie(p, best, is_on_gpu=is_on_gpu)}" if p.is_tied else ""
    what = wording.cut(p.summary, 84) or wording.ORIGIN_NAME[p.origin]
    outcome = wording.outcome(p, beside_base.is_slower(p, base, is_on_gpu=is_on_gpu), is_stopped)
    gained = f"{measured} over eager PyTorch · {wording.latency(p.latency_ms)}{_gain(p, base, is_on_gpu)}"
    return f"{what}\n{gained}\nkernel {p.number} · {outcome}{line}{rank}{tied}"


def _gain(p: PointRow, base: PointRow | None, is_on_gpu: bool) -> str:
    """How much faster or slower than the kernel it was made from; empty where that is not known."""
    change = relative.gain(p, base, is_on_gpu=is_on_gpu) if base and base is not p else None
    if base is None or change is None:
        return ""
    is_real = change.is_faster or change.is_slower
    gained = f"{100 * (change.speedup - 1):+.1f} %" if is_real else "no measurable change"
    return f" · {gained} from kernel {base.number}"


def _depth_spread(spread: Sequence[DepthSpreadRow], step: str) -> Trace:
    """The area from the slowest to the fastest correct kernel of each step index; nothing where none has two."""
    rows = spread if any(row.count > 1 for row in spread) else []
    return UNHOVERED | {
        "type": "scatter", "mode": "lines", "name": f"slowest to fastest of a {step}", "showlegend": True,
        "x": [r.depth for r in rows] + [r.depth for r in reversed(rows)],
        "y": [r.high for r in rows] + [r.low for r in reversed(rows)],
        "fill": "toself", "fillcolor": "@blue-color/14", "line": {"width": 0.6, "color": "@blue-color/35"},
    }  # fmt: skip


def _branches(points: Sequence[PointRow]) -> list[Trace]:
    """Lines from each base kernel to what was made of it, one for each trajectory: a return to an older kernel shows as
    a fork."""
    spot = {p.candidate_id: p for p in points}
    drawn = []
    for is_accepted, trajectory in ((True, 0), *((True, n) for n in _trajectories(points)), (False, 0)):
        xs: list[float | None] = []
        ys: list[float | None] = []
        for p in points:
            base, is_of_it = spot.get(p.base_id or ""), not is_accepted or p.trajectory == trajectory
            is_kept = p.is_accepted or p.is_pending  # of one in work nobody knows yet
            if is_kept is is_accepted and is_of_it and base and base is not p:
                xs += [base.x, p.x, None]
                ys += [base.speedup, p.speedup, None]
        name = f"trajectory {trajectory}" if trajectory else "made from" if is_accepted else "tried from"
        colour = TRAJECTORIES[(trajectory - 1) % len(TRAJECTORIES)] if trajectory else "@gray-color"
        line = {"width": 2 if trajectory else 1.3, "color": colour, "dash": "solid" if is_accepted else "dot"}
        drawn.append(UNHOVERED | {"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": ys, "line": line})
    return drawn


def _trajectories(points: Sequence[PointRow]) -> list[int]:
    """The trajectories that have kernels, in order; none where a method has one line."""
    return sorted({p.trajectory for p in points if p.trajectory})


def _best_so_far(rises: Sequence[RiseRow]) -> Trace:
    """The staircase of the best kernel."""
    return {
        "type": "scatter", "mode": "lines", "name": "best so far", "hoverinfo": "skip",
        "x": [row.x for row in rises], "y": [row.speedup for row in rises],
        "line": {"shape": "hv", "width": 3, "color": "@green-color/55"},
    }  # fmt: skip


def _selection(points: Sequence[PointRow], failures: Sequence[FailureRow], selected_id: str) -> list[Trace]:
    """A ring around the kernel that is open or was looked at last."""
    ring = UNHOVERED | {
        "type": "scatter", "mode": "markers", "name": "selected",
        "marker": {"symbol": "circle-open", "size": 22, "color": "@primary-color", "line": {"width": 2.4}},
    }  # fmt: skip
    chosen = [p for p in points if p.candidate_id == selected_id]
    failed = [f for f in failures if f.candidate_id == selected_id]
    return [
        ring | {"x": [p.x for p in chosen], "y": [p.speedup for p in chosen]},
        ring | {"x": [f.x for f in failed], "y": [0.0] * len(failed), "yaxis": "y2"},
    ]


def _spacers(values: Sequence[float], has_latency: bool) -> list[Trace]:
    """Nothing to see: room above and below the points, the failure lane even while nothing has failed, and the axis of
    latencies, which has no points of its own."""
    unseen = UNHOVERED | {"type": "scatter", "mode": "markers", "opacity": 0, "x": [0, 0]}
    edges = [min([1.0, *values]) / curve_marks.ROOM_BELOW, max([1.0, *values]) * curve_marks.ROOM_ABOVE]
    latency = [unseen | {"y": edges, "yaxis": "y3"}] if has_latency else []
    return [unseen | {"y": edges}, unseen | {"y": [0, 0], "yaxis": "y2"}, *latency]


def _failures(failed: Sequence[FailureRow], unapplied: Sequence[UnappliedRow], step: str) -> list[Trace]:
    """Marks in the lane at the foot, by kind; an edit that could not be applied made no kernel and opens none."""
    lane = {"type": "scatter", "mode": "markers", "yaxis": "y2", "hoverinfo": "none"}
    by_verdict: Mapping[Verdict, list[FailureRow]] = {
        verdict: [f for f in failed if f.verdict is verdict] for verdict in FAILURE_MARKS
    }
    drawn = []
    for verdict, (symbol, colour) in FAILURE_MARKS.items():
        failures = by_verdict[verdict]
        drawn.append(lane | {
            "name": wording.VERDICT_NAME[verdict], "x": [f.x for f in failures], "y": [0.0] * len(failures),
            "customdata": [f.candidate_id for f in failures], "text": [_failure(f) for f in failures],
            "marker": {"symbol": symbol, "size": 10, "color": colour},
        })  # fmt: skip
    drawn.append(lane | {
        "name": "edit not applied", "x": [u.depth - 0.35 for u in unapplied], "y": [0.0] * len(unapplied),
        "text": [
            f"{step} {u.depth} · {_times(u.count)}edit not applied\n{wording.cut(u.reason, 84)}" for u in unapplied
        ],
        "marker": {"symbol": "line-ns-open", "size": 12, "color": "@gray-color", "line": {"width": 2}},
    })  # fmt: skip
    return drawn


def _kernelless(kernelless: Sequence[KernellessRow], step: str) -> Trace:
    """Marks in the lane at the foot where a step index ended without a kernel."""
    return {
        "type": "scatter", "mode": "markers", "yaxis": "y2", "hoverinfo": "none", "name": NO_KERNEL,
        "x": [row.depth for row in kernelless], "y": [0.0] * len(kernelless),
        "text": [
            f"{step} {row.depth} · {_times(row.count)}{NO_KERNEL}\n{wording.cut(row.reason, 84)}" for row in kernelless
        ],
        "marker": {"symbol": "line-ew-open", "size": 12, "color": "@gray-color", "line": {"width": 2}},
    }  # fmt: skip


def _failure(f: FailureRow) -> str:
    what = wording.cut(f.summary, 60) or "kernel"
    verdict = f"{_times(f.count)}{wording.VERDICT_NAME[f.verdict]}"
    return f"{what}\nkernel {f.number} · {verdict}\n{wording.cut(f.message, 84)}"


def _times(count: int) -> str:
    return f"{count:,} × " if count > 1 else ""
