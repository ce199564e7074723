"""Results of other systems as runs to look at and go on from, and the first kernel of a fork. What they recorded is
kept apart from what we measure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.search.actions import Conclude, Evaluate, NewCandidate
from engine.search.context import RunContext
from engine.search.loop import measure_limit, take_step
from engine.search.steps.candidates import conclude, create_candidate
from storage import untrusted
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.forks import Fork
from storage.run.settings import DepthOutcome, Origin, RunState, StepKind
from storage.untrusted import Limits, UntrustedError

SOURCES = (".py",)
LIMITS = Limits(most_bytes=64 << 20)


@dataclass(frozen=True, slots=True)
class ForeignKernel:
    """One source. `is_final` marks the one its depth ended with; the others were tries on the way.

    `status` and the latencies (milliseconds) are what the other system says, None where it says nothing.
    """

    file: str
    source: str
    depth: int
    is_final: bool
    status: str = ""
    latency_ms: float | None = None
    baseline_latency_ms: float | None = None
    message: str = ""


def read_kernels(folder: Path) -> list[ForeignKernel]:
    """What a folder holds: saved node files (CuTeGen), or source files, one per step (KernelBench).

    Raises:
        EngineError: no such folder, neither of the two, or a file that cannot be read.
    """
    if not folder.is_dir():
        raise EngineError(f"{folder} is not a folder")
    nodes = sorted(_nodes(folder), key=lambda node: (node[1]["depth"], node[0].name))
    if nodes:
        return _of_nodes(folder, nodes)
    files = sorted(
        (p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file()), key=lambda p: _natural(p, folder)
    )
    kernels = [_of_file(folder, path, depth) for depth, path in enumerate(p for p in files if "ModelNew" in _text(p))]
    if not kernels:
        raise EngineError(
            f"{folder} has no kernels to import: expected JSON files with src and depth, or Python files with ModelNew"
        )
    return kernels


def _nodes(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path in sorted(folder.rglob("*.json")):
        try:
            node = untrusted.json_value(_text(path), f"{path}", LIMITS)
        except UntrustedError:
            continue
        if isinstance(node, dict) and isinstance(node.get("src"), str) and isinstance(node.get("depth"), int):
            yield path, node


def _of_nodes(folder: Path, nodes: list[tuple[Path, Mapping[str, Any]]]) -> list[ForeignKernel]:
    references = {node.get("ref") for _, node in nodes if isinstance(node.get("ref"), str)}
    depths = [node["depth"] for _, node in nodes]
    if len(references) > 1 or len(set(depths)) != len(depths):
        raise EngineError(f"{folder} holds more than one result: import the folder of a single task and run")
    kernels = list[ForeignKernel]()
    for depth, (path, node) in enumerate(nodes):
        name = str(path.relative_to(folder))
        kernels += [_of_try(name, tried, depth) for tried in _tries(node)]
        kernels.append(
            ForeignKernel(
                name, node["src"], depth, True, str(node.get("error_type") or ""),
                _milliseconds(node.get("time")), _milliseconds(node.get("ref_time")),
            )
        )  # fmt: skip
    return kernels


def _tries(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The failed versions on the way to a node's source."""
    history = node.get("history")
    versions = history if isinstance(history, list) else []
    return [t for t in versions if isinstance(t, dict) and isinstance(t.get("src"), str) and t["src"] != node["src"]]


def _of_try(name: str, tried: Mapping[str, Any], depth: int) -> ForeignKernel:
    message = str(tried.get("msg") or "")
    return ForeignKernel(name, tried["src"], depth, False, str(tried.get("error_type") or ""), message=message[:4000])


def _of_file(folder: Path, path: Path, depth: int) -> ForeignKernel:
    beside = _beside(path)
    status = "" if "correctness" not in beside else "correct" if beside["correctness"] is True else "not correct"
    return ForeignKernel(
        str(path.relative_to(folder)), _text(path), depth, True, status,
        _milliseconds(beside.get("runtime")), _milliseconds(beside.get("ref_runtime")),
    )  # fmt: skip


def _beside(path: Path) -> Mapping[str, Any]:
    """The result in a JSON file of the same name (compiled, correctness, runtime), empty without one."""
    try:
        result = untrusted.json_value(_text(path.with_suffix(".json")), f"{path}", LIMITS)
    except (EngineError, UntrustedError):
        return {}
    return result if isinstance(result, dict) else {}


def _milliseconds(value: Any) -> float | None:
    """A latency as a number or as an object with a mean; None for what is none."""
    number = value.get("mean") if isinstance(value, dict) else value
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        return None
    return float(number) if math.isfinite(number) and number > 0 else None


def _natural(path: Path, folder: Path) -> list[tuple[int, str]]:
    """Order by the numbers in a name, so that step 10 comes after step 9."""
    parts = re.findall(r"\d+|\D+", str(path.relative_to(folder)))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _text(path: Path) -> str:
    try:
        return untrusted.read_text(path, LIMITS)
    except (FileNotFoundError, UntrustedError) as error:
        raise EngineError(f"cannot import: {error}") from error


NOT_OURS = "imported, not measured here"


def import_kernels(context: RunContext, kernels: Sequence[ForeignKernel], *, is_judged: bool) -> ev.RunEnded:
    """Journal the kernels as a run that has ended and can be resumed from the last of them.

    With `is_judged` each is built, checked and timed here first, by the rules for any kernel. Without, the last depth
    is left open, so that a resumed run judges its kernel before it builds on it.
    """
    if is_judged:
        measure_limit(context)
    last = max(kernel.depth for kernel in kernels)
    base: str | None = None
    for depth in range(last + 1):
        parent = base
        for number, kernel in enumerate(k for k in kernels if k.depth == depth):
            parent = _add(context, kernel, parent, base, number)
            if is_judged:
                _judge(context, parent)
        base = _end_depth(context, depth, parent, base, is_last=depth == last)
    ended = ev.RunEnded(RunState.STOPPED, _sentence(context, len(kernels), is_judged), context.record.best_id)
    context.emit(ended)
    return ended


def _add(context: RunContext, kernel: ForeignKernel, parent: str | None, base: str | None, number: int) -> str:
    kind = StepKind.SYNTHESISE if parent is None else StepKind.REPAIR if number else StepKind.OPTIMISE
    context.step = context.record.steps_finished + 1
    context.emit(ev.StepStarted(context.step, kind, kernel.depth, parent))
    name = f"c{len(context.record.candidates) + 1:03d}"
    makes = NewCandidate(Origin.IMPORTED, base, 0, "", f"imported from {kernel.file}", number)
    create_candidate(context, kernel.source, parent, makes, makes.untitled)
    event = ev.Imported(
        name, kernel.file, kernel.status, kernel.latency_ms, kernel.baseline_latency_ms, kernel.message
    )  # fmt: skip
    context.emit(event)
    context.emit(ev.StepFinished(context.step, kind, 0.0, "created"))
    return name


def _judge(context: RunContext, name: str) -> None:
    depth = context.record.step_index
    for kind in (StepKind.COMPILE, StepKind.CHECK, StepKind.TIME):
        take_step(context, Evaluate(kind, depth, name))
        if context.record.candidates[name].has_failed:
            return


def _end_depth(context: RunContext, depth: int, name: str | None, base: str | None, *, is_last: bool) -> str | None:
    """The base of the next depth: an imported kernel is one whether or not it was judged."""
    candidate = context.record.candidates[name] if name else None
    if candidate and candidate.verdict is Verdict.PASSED and candidate.timed:
        conclude(context, Conclude(depth, DepthOutcome.ACCEPTED, name, base, "imported, correct and timed here"))
    elif not is_last:
        reason = NOT_OURS if candidate is None or candidate.verdict is None else "imported, and not correct here"
        conclude(context, Conclude(depth, DepthOutcome.IMPORTED, name, base, reason))
    return name


def _sentence(context: RunContext, count: int, is_judged: bool) -> str:
    kernels = f"{count} kernels were imported" if count != 1 else "one kernel was imported"
    if is_judged:
        passed = sum(a.verdict is Verdict.PASSED for a in context.record.candidates.values())
        return f"{kernels}, {passed} of them correct here; resume to go on from the last"
    return f"{kernels} and not measured here; resume to judge the last one and go on from it"


def take_over_kernel(context: RunContext) -> None:
    """Journal the kernel that a fork begins with, once, whatever kills the engine. Nothing in a run that is no fork."""
    fork, record = context.record.settings.forked_from, context.record
    if fork is None or record.steps_finished > 0:
        return
    context.step = 1
    if record.in_flight is None:
        context.emit(ev.StepStarted(1, StepKind.SUBMIT, 0, None))
    makes = NewCandidate(Origin.FORKED, None, 0, "", f"kernel {fork.number} of {fork.run_id}")
    create_candidate(context, context.blobs.get(fork.source_blob), None, makes, makes.untitled)
    if not any(isinstance(entry.event, ev.Imported) for entry in context.journal.entries):
        context.emit(_imported_event(fork, next(iter(record.candidates))))
    context.emit(ev.StepFinished(1, StepKind.SUBMIT, 0.0, "created"))


def _imported_event(fork: Fork, candidate_id: str) -> ev.Imported:
    source = f"{fork.candidate_id} of run {fork.run_id}"
    return ev.Imported(
        candidate_id, source, "passed" if fork.latency_ms else "", fork.latency_ms, fork.baseline_latency_ms
    )
