"""What trust costs: one honest evaluation against a bare check in one process, and where it goes.

    python -m benchmarks.cost_of_trust [--task swish] [--set batch_size=256] [--source FILE] [--rounds 5]

The bare check does what a simple harness does: import the candidate, five random trials with allclose, thirty timed
calls of each side. Both find the built library in the cache. Rounds alternate; ratios are of medians in one run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.argument_types import size
from engine.evaluator import tasks
from engine.evaluator.machine.worker_limits import Limits
from engine.evaluator.sandbox import ChildSpec, Isolation, SandboxFilesystem, start
from engine.evaluator.sandbox.probe import probe
from engine.evaluator.toolchains.cpu import CpuToolchain
from storage.results.evaluation_results import TimingResult
from tests.engine.evaluator.toolchains import kernels

BARE = """
import json, sys, time, torch
from pathlib import Path
from torch.utils import cpp_extension
from engine.evaluator.toolchains.cpu import cache_folder
from engine.evaluator.build import request as build_request
from engine.evaluator.build.host import installation
from engine.evaluator.build.host.build import Builder

task, source = json.load(sys.stdin)
builder = Builder(installation.find(), cache_folder())

def build(request):
    built = builder.build(build_request.read(request["build"]), source)
    return {"library": built.library, "binding": built.binding, "namespace": built.namespace}

build_request.intercept(build)
started = time.perf_counter()
reference, candidate = {}, {}
exec(task, reference)
exec(source, candidate)
imported = time.perf_counter()
arguments = reference["get_init_inputs"]()
mine, theirs = candidate["ModelNew"](*arguments), reference["Model"](*arguments)
with torch.no_grad():
    for _ in range(5):
        inputs = reference["get_inputs"]()
        assert torch.allclose(mine(*inputs), theirs(*inputs), rtol=1e-4, atol=1e-4)
    checked = time.perf_counter()
    for model in (mine, theirs):
        for _ in range(33):
            model(*inputs)
timed = time.perf_counter()
print(json.dumps({"import": imported - started, "check": checked - imported, "time": timed - checked}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="swish")
    parser.add_argument("--set", dest="overrides", action="append", type=size, default=[])
    parser.add_argument("--source", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    task = tasks.find(options.task).task("cpu", dict(options.overrides))
    source = options.source.read_text() if options.source else kernels.SWISH
    bare: list[dict[str, float]] = []
    ours: list[dict[str, float]] = []
    with CpuToolchain() as toolchain:
        _ours(toolchain, task, source)
        for _ in range(options.rounds):
            bare.append(_bare(task, source))
            ours.append(_ours(toolchain, task, source))
    _report(bare, ours)


def _bare(task: tasks.Task, source: str) -> dict[str, float]:
    text = json.dumps([task.source, source])
    done = subprocess.run([sys.executable, "-c", BARE], input=text, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _ours(toolchain: CpuToolchain, task: tasks.Task, source: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("compile", "check", "time"):
        started = time.perf_counter()
        result: Any = getattr(toolchain, name)(task, source)
        found[name] = time.perf_counter() - started
        assert isinstance(result, TimingResult) or str(result.verdict) == "passed", result
    return found


def _report(bare: list[dict[str, float]], ours: list[dict[str, float]]) -> None:
    for name, rounds in (("bare", bare), ("ours", ours)):
        parts = ", ".join(f"{part} {statistics.median(one[part] for one in rounds):.2f} s" for part in rounds[0])
        print(f"{name}: {statistics.median(sum(one.values()) for one in rounds):.2f} s ({parts})")
    ratios = [sum(mine.values()) / sum(other.values()) for mine, other in zip(ours, bare, strict=True)]
    print(f"ours over bare: median {statistics.median(ratios):.1f}, {min(ratios):.1f} to {max(ratios):.1f}")
    isolation = probe()
    bare_ms, full_ms = _spawn_ms(Isolation()), _spawn_ms(isolation)
    print(f"a child behind limits alone {bare_ms:.0f} ms, behind every wall {full_ms:.0f} ms; "
          "three children per evaluation, and one per build")  # fmt: skip


def _spawn_ms(isolation: Isolation) -> float:
    """Start to end of a child that does nothing; here without torch in its memory, which is forked cheaply."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as output:
        for _ in range(9):
            started = time.perf_counter()
            spec = ChildSpec(
                isolation, SandboxFilesystem(Path(name) / "room"), Limits(), Path(name) / "scratch", output.fileno()
            )
            start(spec, lambda: None).kill()
            taken.append((time.perf_counter() - started) * 1e3)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
