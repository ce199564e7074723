"""A finished example as a film of 40 seconds: a scene for the module, one for each kernel, one for what came of it. All
of it is folded from the run's journal. Pure; knows no page and no browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pages.parts import speed_of_light, wording
from pages.parts.status import measured_on
from pages.parts.widgets import code, diff
from storage import codec
from storage.results import relative
from storage.results.evaluation_results import TimingFigures, TimingResult
from storage.results.vocabulary import Verdict
from storage.run.record import Candidate, Record
from storage.run.saved_models import RECORDED
from storage.run.settings import Origin, RunSettings

MODULE_S, END_S = 4.0, 2.7
BEFORE_S, WRITTEN_S, STAGE_S, KERNEL_S = 0.9, 1.15, 0.3, 3.7
BLANK_S = 0.3
"""Before the first kernel there is nothing to be read."""
MOST_ROWS = 22
CONTEXTS = (8, 5, 3, 2, 1)
GAP = ("⋯", "")
ACTORS = {
    Origin.SYNTHESIS: "The model writes the first kernel",
    Origin.OPTIMISATION: "The model changes one thing",
    Origin.REPAIR: "The model reads the error and repairs the kernel",
}
Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Stage:
    """What Tilewright did with a kernel, and how long that took."""

    name: str
    about: str
    is_passed: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """One picture of the film, with what changes in it.

    `rows` are lines of source: what becomes of each (" ", "-", "+" or "⋯") and the line as HTML. `seconds` are the
    lengths of its phases: before the change, after it, then one a stage; the result comes with the last.
    """

    name: str
    actor: str
    caption: str
    seconds: tuple[float, ...]
    rows: tuple[Row, ...] = ()
    rows_about: str = ""
    stages: tuple[Stage, ...] = ()
    value: str = ""
    change: str = ""
    tone: str = ""
    point: tuple[float, float, float] | None = None
    """Speed-up over eager with its 95 % interval; None of a kernel that failed."""
    is_kernel: bool = True


@dataclass(frozen=True, slots=True)
class Film:
    """All scenes, what the run was, and the lines beside its curve: name and speed-up over eager."""

    run_id: str
    about: str
    scenes: tuple[Scene, ...]
    lines: tuple[tuple[str, float], ...]


def of(record: Record, files: Mapping[str, bytes]) -> Film:
    """The film of a run, from its record and the files of its folder by name.

    Raises:
        codec.DecodeError: the run has no best kernel, no limit or no baseline.
    """
    sources = {
        name: files[f"blobs/{kernel.created.source_blob}"].decode() for name, kernel in record.candidates.items()
    }
    best, other = record.best.standing if record.best else None, record.baseline
    if best is None or record.limit is None or other is None or other.result is None:
        raise codec.DecodeError(f"{record.settings.run_id} has no best kernel to be told of")
    kernels = (_kernel(record, kernel, sources) for kernel in record.candidates.values())
    eager_ms = relative.baseline_ms(best.speedup, best.latency_ms) or best.baseline_latency_ms
    lines = (
        ("eager PyTorch", 1.0),
        (other.name, other.result.speedup),
        *([("hardware limit", eager_ms / record.limit.known_ms)] if record.limit.known_ms else []),
    )
    device = record.limit.model
    model = record.settings.model
    replies = "recorded replies" if model == RECORDED else f"replies of {model}"
    about = f"A run on an {device} with {replies}: every kernel was compiled, checked and timed there."
    scenes = (
        _module(record.settings, eager_ms, device),
        *kernels,
        _end(record, best, eager_ms, (other.name, other.result)),
    )
    return Film(record.settings.run_id, about, scenes, lines)


def _module(settings: RunSettings, eager_ms: float, device: str) -> Scene:
    size, number_format = measured_on.of(settings)
    lines = code.lines(settings.task_source.strip())
    return Scene(
        "PyTorch",
        "A PyTorch module is to become faster",
        f"{wording.task(settings.task_name)} of {size} in {number_format}: "
        f"PyTorch takes {wording.latency(eager_ms)} on an {device}",
        (MODULE_S,),
        tuple((" ", code.as_html(line)) for line in lines[:MOST_ROWS]),
        "The module, in PyTorch",
        is_kernel=False,
    )


def _kernel(record: Record, kernel: Candidate, sources: Mapping[str, str]) -> Scene:
    created = kernel.created
    number = record.number(kernel.candidate_id)
    stages = _stages(kernel)
    before_s = BEFORE_S if created.parent_id else BLANK_S
    rest_s = KERNEL_S - before_s - WRITTEN_S - STAGE_S * (len(stages) - 1)
    rows = changed(sources.get(created.parent_id or "", ""), sources[kernel.candidate_id])
    counts = f"{wording.counted(created.lines_added or 0, 'line')} added, {created.lines_removed} removed"
    scene = Scene(
        f"Kernel {number}",
        ACTORS.get(created.origin, wording.capital(wording.ORIGIN_NAME[created.origin])),
        wording.capital(wording.as_written_here(created.summary.rstrip("."))),
        (before_s, WRITTEN_S, *[STAGE_S] * (len(stages) - 1), rest_s),
        rows,
        f"Source of kernel {number}: {counts}" if created.parent_id else f"Source of kernel {number}",
        stages,
    )
    return _with_result(scene, record, kernel)


def _stages(kernel: Candidate) -> tuple[Stage, ...]:
    """What was done with a kernel, up to where it failed."""
    done = (
        ("Compiled", kernel.compiled, kernel.compiled is not None and kernel.compiled.is_ok),
        ("Checked against PyTorch", kernel.checked, kernel.verdict is Verdict.PASSED),
        ("Timed beside PyTorch", kernel.timed, kernel.standing is not None),
    )
    return tuple(Stage(name, wording.seconds(result.seconds), is_ok) for name, result, is_ok in done if result)


def _with_result(scene: Scene, record: Record, kernel: Candidate) -> Scene:
    figures = kernel.standing
    if figures is None:
        verdict = wording.VERDICT_NAME[kernel.verdict] if kernel.verdict else "not judged"
        return replace(scene, value=wording.capital(verdict), change=_why(kernel.failure), tone="red")
    before = _timed_before(record, kernel)
    change, tone = _beside_pytorch(figures)
    if before is not None and before.standing is not None:
        is_on_gpu = record.settings.toolchain != "cpu"
        change, tone = _gain(figures, before.standing, record.number(before.candidate_id), is_on_gpu=is_on_gpu)
    return replace(
        scene,
        value=wording.ratio(figures),
        change=change,
        tone=tone,
        point=(figures.speedup, figures.low, figures.high),
    )


def _why(failure: str) -> str:
    """What a failure says first, without where it was raised."""
    return wording.cut(failure.rpartition("error: ")[2].partition(";")[0], 200)


def _timed_before(record: Record, kernel: Candidate) -> Candidate | None:
    """The nearest kernel it was made from that is correct and timed."""
    above = record.candidates.get(kernel.created.parent_id or "")
    while above is not None and above.standing is None:
        above = record.candidates.get(above.created.parent_id or "")
    return above


def _beside_pytorch(figures: TimingFigures) -> tuple[str, str]:
    if figures.high < 1:
        return "correct, but slower than PyTorch", "orange"
    return ("faster than PyTorch", "green") if figures.low > 1 else ("as fast as PyTorch", "gray")


def _gain(figures: TimingFigures, before: TimingFigures, number: int, *, is_on_gpu: bool) -> tuple[str, str]:
    ratio = relative.gain(figures, before, is_on_gpu=is_on_gpu)
    if ratio is None:
        return "", "gray"
    percent = f"{100 * (ratio.speedup - 1):+.0f} %".replace("-", "−")
    if ratio.is_faster or ratio.is_slower:
        return f"{percent} against kernel {number}", "green" if ratio.is_faster else "orange"
    return f"{percent} against kernel {number}, within the noise", "gray"


def _end(record: Record, best: TimingFigures, eager_ms: float, other: tuple[str, TimingResult]) -> Scene:
    """What came of it."""
    number, count, tied = record.number(record.best_id or ""), len(record.candidates), _tied(record, best)
    failed = sum(kernel.has_failed for kernel in record.candidates.values())
    name, timed = other
    of_limit = f", {speed_of_light.percent(record.limit, best.latency_ms)} of what the hardware allows"
    over = relative.over(best, timed.figures)
    return Scene(
        "Result",
        f"Kernel {number} is the best of {count}{tied}; {failed or 'none'} of them failed on the way",
        f"From {wording.latency(eager_ms)} to {wording.latency(best.latency_ms)}: "
        f"{wording.ratio(over)} over {name}{of_limit if record.limit and record.limit.known_ms else ''}",
        (END_S,),
        value=wording.ratio(best),
        change="over eager PyTorch",
        tone="green",
        is_kernel=False,
    )


def _tied(record: Record, best: TimingFigures) -> str:
    """Which kernels the best is not faster than beyond the noise."""
    number, is_on_gpu = record.number(record.best_id or ""), record.settings.toolchain != "cpu"
    timed = [(record.number(name), k.standing) for name, k in record.candidates.items() if name != record.best_id]
    others = [
        other
        for other, figures in timed
        if figures and not relative.is_ahead(best, figures, is_newer=number > other, is_on_gpu=is_on_gpu)
    ]
    if not others:
        return ""
    return f", tied with kernel {others[0]}" if len(others) == 1 else f", tied with {len(others)} others"


def changed(old: str, new: str) -> tuple[Row, ...]:
    """The lines that differ, with as many around them as there is room for; of more than fit, the stretch with most
    changes. A source that is all new is shown from its kernel on."""
    if not old:
        start = next((i for i, line in enumerate(new.split("\n")) if "__global__" in line), 0)
        return tuple(("+", code.as_html(line)) for line in code.lines(new)[start : start + MOST_ROWS])
    each = [list(_rows(old, new, context)) for context in CONTEXTS]
    rows = next((rows for rows in each if len(rows) <= MOST_ROWS), each[-1])
    starts = range(max(1, len(rows) - MOST_ROWS + 1))
    first = max(starts, key=lambda start: sum(mark in "+-" for mark, _ in rows[start : start + MOST_ROWS]))
    return tuple(rows[first : first + MOST_ROWS])


def _rows(old: str, new: str, context: int) -> Iterator[Row]:
    """A diff as rows: of each change what goes before what comes."""
    left, right = code.lines(old), code.lines(new)
    pairs = diff.pairs(old, new)
    near = {k for i, pair in enumerate(pairs) if pair[0] != "=" for k in range(i - context, i + context + 1)}
    coming: list[Row] = []
    last = -1
    for place, (change, i, j) in enumerate(pairs):
        if place not in near:
            continue
        if change == "=" or place > last + 1:
            yield from coming
            coming = []
        if place > last + 1:
            yield GAP
        last = place
        if change == "=":
            yield " ", code.as_html(right[j])
            continue
        if i >= 0:
            yield "-", code.as_html(left[i])
        if j >= 0:
            coming.append(("+", code.as_html(right[j])))
    yield from coming
