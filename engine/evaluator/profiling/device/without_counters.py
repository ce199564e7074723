"""A profile without hardware counters: launches from the tracing interface, time by events, occupancy by arithmetic.

Registers and spills come from the compiler. The rest is what the candidate's own process wrote, and is read as such.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.evaluator.profiling.device import bottleneck, nsight, target
from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.profiling.device.launch_counters import Launch
from engine.evaluator.profiling.device.nsight import Run
from engine.evaluator.sandbox.child import Done
from storage.results import counters

MAX_TRACE = 64 << 20
TOOL_S = 60.0
_FUNCTION = re.compile(r"^\s*Function (\S+):\s*$")
_USAGE = re.compile(r"\b(REG|STACK|SHARED|LOCAL):(\d+)")


@dataclass(frozen=True, slots=True)
class Watched:
    """`latency_ms` by events is None where none came back."""

    launches: Sequence[Launch]
    latency_ms: float | None
    compiled: Sequence[Resources]
    text: str


def watch(folder: Path, run: Run, ceilings: DeviceCeilings, limit_s: float, python: str) -> tuple[Watched | None, Done]:
    """Call the candidate without the profiler; None when its process gave nothing."""
    for name in (target.EVENTS, target.TRACE):
        (folder / name).unlink(missing_ok=True)
    done = run(nsight.target_command(folder, "watch", python), limit_s)
    times = _json(folder / target.EVENTS)
    latency = times.get("latency_ms") if isinstance(times, dict) else None
    trace = _json(folder / target.TRACE)
    launches = list(_launches(trace, ceilings)) if isinstance(trace, dict) else []
    if not launches and not isinstance(latency, float):
        return None, done
    compiled = compiled_resources(_libraries(folder), run)
    text = "\n".join([done.output[-20_000:], json.dumps([dict(launch.values) for launch in launches], indent=1)])
    return Watched(launches, latency if isinstance(latency, float) else None, compiled, text), done


def _launches(trace: Mapping[str, Any], ceilings: DeviceCeilings) -> Iterator[Launch]:
    events = trace.get("traceEvents")
    kernels = (
        [e for e in events if isinstance(e, dict) and e.get("cat") == "kernel"] if isinstance(events, list) else []
    )
    for number, event in enumerate(sorted(kernels, key=lambda e: _number(e.get("ts")))):
        arguments = event.get("args")
        if isinstance(arguments, dict):
            seconds = _number(event.get("dur")) * 1e-6
            yield Launch(number, str(event.get("name"))[:2000], dict(_values(arguments, seconds, ceilings)))


def _values(
    arguments: Mapping[str, Any], seconds: float, ceilings: DeviceCeilings
) -> Iterator[tuple[str, tuple[str, float]]]:
    grid, block = (_product(arguments.get(name)) for name in ("grid", "block"))
    registers, shared = (_number(arguments.get(name)) for name in ("registers per thread", "shared memory"))
    yield counters.TIME, ("s", seconds)
    yield counters.GRID, ("1", grid)
    yield counters.BLOCK, ("1", block)
    yield counters.REGISTERS, ("1", registers)
    yield "shared memory per block", ("B", shared)
    fits = bottleneck.theoretical_occupancy(ceilings, int(block), int(registers), int(shared))
    yield counters.THEORETICAL, ("%", fits.percent)
    for name, blocks in fits.blocks_by.items():
        yield f"{counters.OCCUPANCY_LIMIT}{name.replace(' memory', '_mem')}", ("1", float(blocks))
    at_once = min(fits.blocks_by.values()) * ceilings.sm_count
    if at_once:
        yield counters.WAVES, ("1", grid / at_once)


def _libraries(folder: Path) -> list[str]:
    answers = _json(folder / "builds.json")
    rows = answers if isinstance(answers, list) else []
    return [str(row["library"]) for row in rows if isinstance(row, dict) and "library" in row]


def _json(file: Path) -> Any:
    try:
        if file.stat().st_size > MAX_TRACE:
            return None
        return json.loads(file.read_text(errors="replace"))
    except (OSError, ValueError):
        return None


def _product(value: object) -> float:
    result = 1.0
    for factor in value if isinstance(value, list) else []:
        result *= _number(factor)
    return result


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one compiled kernel, by its mangled name; bytes but for registers. Dynamic shared memory is not known here."""

    kernel: str
    registers: int
    stack_bytes: int
    shared_bytes: int


def compiled_resources(libraries: Iterable[str], run: Run) -> list[Resources]:
    """The resources of every kernel in the libraries; none where cuobjdump is missing or says nothing."""
    tool = shutil.which("cuobjdump") or next(
        (str(p) for p in [Path("/usr/local/cuda/bin/cuobjdump")] if p.exists()), ""
    )
    if not tool:
        return []
    outputs = (run([tool, "--dump-resource-usage", path], TOOL_S).output for path in libraries)
    return [resources for text in outputs for resources in parsed_resources(text)]


def parsed_resources(text: str) -> list[Resources]:
    """Read `cuobjdump --dump-resource-usage`."""
    resources, name = [], ""
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            name = match[1]
        elif name and (usage := dict(_USAGE.findall(line))):
            values = [int(usage.get(key, 0)) for key in ("REG", "STACK", "LOCAL", "SHARED")]
            resources.append(Resources(name, values[0], values[1] + values[2], values[3]))
            name = ""
    return resources
