"""The program under the profiler: makes the candidate's model from a prepared folder and calls it. Judges nothing.

The folder holds candidate.py, task.py, builds.json (the answers to the candidate's build requests, in order) and
request.json (seed, calls, precision class, and `kernels`: what the compile step of a just-in-time language left). torch
is imported only here, in the process that needs it.
"""

from __future__ import annotations

import functools
import json
import os
import random
import statistics
import sys
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

TRACE = "trace.json"
EVENTS = "events.json"
TIMED_CALLS = 20

Call = Callable[[], object]


def main(folder: str, mode: str) -> None:
    """Call the candidate as `mode` says: `profile` under Nsight Compute, `watch` on its own with a trace and events."""
    started = time.monotonic()
    os.environ.setdefault("LOGNAME", "candidate")  # its user number has no name, and some of torch asks for one
    import torch

    work_folder, imported = Path(folder), time.monotonic()
    call, warm_up = prepare(work_folder)
    prepared = time.monotonic()
    with torch.no_grad():
        for _ in range(warm_up):
            call()
        torch.cuda.synchronize()
        warm = time.monotonic()
        {"profile": _profiled, "watch": _watched}[mode](call, work_folder)
    spans = (imported - started, prepared - imported, warm - prepared, time.monotonic() - warm)
    names = ("import", "prepare", "warm up", mode)
    seconds = ", ".join(f"{name} {span:.2f} s" for name, span in zip(names, spans, strict=True))
    print(f"target: {seconds}", flush=True)


def prepare(folder: Path, device: str = "cuda") -> tuple[Call, int]:
    """The candidate's model on freshly drawn inputs, ready to call, and how often to call it first."""
    import torch

    request = json.loads((folder / "request.json").read_text())
    seed = int(request["seed"])
    torch.set_default_device(device)
    task = _executed("task", folder / "task.py", functools.partial(compile, mode="exec"))
    if "kernels" in request:
        from engine.evaluator import languages
        from engine.evaluator.build.just_in_time import Place

        kept = Path(request["kernels"]) if request["kernels"] else None
        if (compiler := languages.find(str(request["language"])).compiler) is not None:
            compiler.prepare(Place(str(request["language"]), kept))
    _replay_builds(json.loads((folder / "builds.json").read_text()))
    from engine.evaluator.checks import dtypes, live_code, weights
    from engine.evaluator.checks.arguments import Arguments

    dtypes.compute_within(str(request.get("precision", "")))
    candidate = _executed("candidate", folder / "candidate.py", live_code.code)
    layout = weights.layout_of(lambda: task.Model(*task.get_init_inputs()))
    _seed(seed)
    dtype = str(request.get("dtype", ""))
    model = dtypes.model_in(dtype, candidate.ModelNew(*task.get_init_inputs()).to(device))
    model = dtypes.in_mode(str(request.get("mode", "")), model)
    weights.lay_out(model, layout)
    _seed(seed)
    inputs = dtypes.arguments_in(dtype, Arguments.of(task.get_inputs()), device)
    calls = int(request.get("calls", 3))
    if request.get("backward"):
        from engine.evaluator.checks.gradients import both_passes

        return both_passes(model, inputs), calls
    return lambda: inputs.passed_to(model), calls


def _profiled(call: Call, _folder: Path) -> None:
    """One call between start and stop: only what is launched there is profiled."""
    import torch

    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    runtime.cudaProfilerStart()
    call()
    torch.cuda.synchronize()
    runtime.cudaProfilerStop()


def _watched(call: Call, folder: Path) -> None:
    """Watch a call without hardware counters: time by events, and what the tracing interface tells of each launch."""
    import torch

    times_ms = []
    for _ in range(TIMED_CALLS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        call()
        end.record()
        end.synchronize()
        times_ms.append(begin.elapsed_time(end))
    (folder / EVENTS).write_text(json.dumps({"latency_ms": statistics.median(times_ms), "calls": len(times_ms)}))
    # torch.profiler would import the whole of torch.compile first.
    with torch.autograd.profiler.profile(use_cpu=False, use_device="cuda", use_kineto=True) as trace:
        call()
        torch.cuda.synchronize()
    trace.export_chrome_trace(str(folder / TRACE))


def _replay_builds(answers: list[Mapping[str, Any]]) -> None:
    """Hand the candidate the libraries that were built for it, in the order in which it asks."""
    from engine.evaluator.build import request as build_request

    left = iter(answers)
    build_request.intercept(
        lambda _order: next(left, {"excerpt": "this extension was not built when the kernel was judged"})
    )


def _executed(name: str, file: Path, compiled: Callable[[str, str], types.CodeType]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    exec(compiled(file.read_text(), str(file)), module.__dict__)
    return module


def _seed(seed: int) -> None:
    import torch

    random.seed(seed)
    torch.manual_seed(seed)
