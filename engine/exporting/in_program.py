"""A kernel against eager PyTorch inside one process, as a program that uses it has both. It judges nothing: the clock
is that process's own.

Run as a program it reads an order from standard input, calls both in turn in a sandbox, and prints what they took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from engine.errors import ToolchainError
from engine.evaluator import languages, sandbox, tasks
from engine.evaluator.build.host import installation
from engine.evaluator.toolchain_table import HOST, device_of
from storage.home import home
from storage.results.evaluation_results import TimingResult
from storage.run.settings import RunSettings

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLED_S, LEAST_PAIRS, MOST_PAIRS = 3.0, 5, 400
WARM_UP_CALLS = 2
ANSWER_S, LIMIT_S = 30.0, 45.0  # mostly for importing PyTorch and for a build that is not in the cache
# What keeps a kernel's timing in the evaluator undisturbed, and what no program of a user's has.
_OURS = ("MALLOC_", "GOMP_", "OMP_", "OPENBLAS_")


def measured(source: str, settings: RunSettings) -> str:
    """A sentence on what a kernel is worth in one process on this machine; empty where that is not measured: on a GPU,
    and of both passes."""
    if device_of(settings.toolchain) != HOST or settings.policy.backward or languages.written_in(source):
        return ""
    try:
        order = {
            "kernel": source,
            "task": settings.task_source,
            "dtype": settings.policy.dtype,
            "mode": settings.policy.mode,
            "installation": asdict(installation.find()),
            "cache": str(home() / "cache" / "cpu"),
        }
        timed = _timed(json.loads(_answer(json.dumps(order))))
    except subprocess.TimeoutExpired:
        return f"It was not measured in one process at export: that took longer than {LIMIT_S:.0f} s."
    except (OSError, ValueError, TypeError, KeyError, ToolchainError) as error:
        return f"It was not measured in one process at export: {' '.join(str(error).split())[:300]}."
    low, high = timed.speedup_interval
    took = f"{timed.latency_ms:.4g} ms against {timed.baseline_latency_ms:.4g} ms"
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    machine = f"{'busy' if load > processors else 'quiet'} machine (load {load:.1f}, {processors} processors)"
    return (
        f"Measured once at export in one process, in turn with eager: {timed.speedup:.3g}x (95 % interval {low:.3g} to "
        f"{high:.3g}x), {took}, {len(timed.candidate_ms)} pairs, on a {machine}."
    )


def _answer(order: str) -> str:
    environment = {name: value for name, value in sandbox.environment(1).items() if not name.startswith(_OURS)}
    command = [sys.executable, "-m", "engine.exporting.in_program"]
    done = subprocess.run(
        command, cwd=ROOT, input=order, capture_output=True, text=True, timeout=LIMIT_S, env=environment, check=False
    )
    if done.returncode:
        raise ValueError(done.stderr.strip().rpartition("\n")[2] or f"its process ended with {done.returncode}")
    return done.stdout


def _timed(answer: Mapping[str, Any]) -> TimingResult:
    """The answer comes from the kernel's process: it is numbers, or it is refused.

    Raises:
        ValueError: it is none.
    """
    if "failure" in answer:
        raise ValueError(str(answer["failure"]))
    pairs = [(float(kernel) / 1e6, float(eager) / 1e6) for kernel, eager in answer["pairs"][:MOST_PAIRS]]
    kernel, eager = zip(*pairs, strict=True)
    return TimingResult(kernel, eager)


def main() -> None:
    """Answer one order."""
    order = json.load(sys.stdin)
    with tempfile.TemporaryDirectory(prefix="tilewright.program.") as folder:
        print(json.dumps(_in_sandbox(order, Path(folder))))


def _in_sandbox(order: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    import torch  # noqa: F401 - a worker could not import it behind its walls
    from torch.utils import cpp_extension  # noqa: F401

    from engine.evaluator.build import request as build_request
    from engine.evaluator.build.host.build import Builder, BuildFailed
    from engine.evaluator.checks import arguments, dtypes, executed, weights  # noqa: F401 - likewise
    from engine.evaluator.checks.candidate_failures import WorkerEnded
    from engine.evaluator.machine.worker_limits import Limits
    from engine.evaluator.processes.worker import Worker
    from engine.evaluator.sandbox.probe import probe

    isolation = probe()
    if not isolation.is_wall:
        return {"failure": "this machine offers no sandbox to run a kernel in"}
    found = installation.Installation(**order["installation"])
    builder = Builder(found, Path(order["cache"]), ANSWER_S, isolation)
    (folder / "libraries").mkdir()

    def build(request: Mapping[str, Any]) -> Mapping[str, object]:
        try:
            built = builder.build(build_request.read(request["build"]), order["kernel"])
        except (BuildFailed, ValueError, KeyError, TypeError) as error:
            return {"excerpt": str(error)}
        target = folder / "libraries" / f"{time.monotonic_ns()}.so"
        target.write_bytes(Path(built.library).read_bytes())
        return {"library": str(target), "binding": str(built.binding), "namespace": built.namespace}

    worker = Worker.fork(
        lambda line: _answer_one(line, order), replace(Limits(), processor_s=int(4 * LIMIT_S)), folder / "program",
        on_request=build, isolation=isolation, readable=(folder / "libraries", *tasks.imported.files(order["task"])),
    )  # fmt: skip
    try:
        reply = worker.ask({"ask": "time"}, ANSWER_S)
    except WorkerEnded as ended:
        return {"failure": f"the kernel's process was ended: {ended.death.detail or 'it ended itself'}"}
    finally:
        worker.end()
    return {name: reply[name] for name in ("pairs", "failure") if name in reply}


def _answer_one(line: Any, order: Mapping[str, Any]) -> None:
    """In the sandbox: the module and the kernel, called in turn."""
    from engine.evaluator.build import request as build_request

    def ask(request: Mapping[str, object]) -> Mapping[str, Any]:
        line.send({"request": request})
        answer: Mapping[str, Any] = line.receive()
        return answer

    number = line.receive()["number"]
    build_request.intercept(ask)
    try:
        answer: dict[str, object] = {"pairs": _pairs(*_both(order))}
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything
        answer = {"failure": f"{type(error).__name__}: {error}"[:300]}
    line.send({**answer, "number": number})


def _both(order: Mapping[str, Any]) -> tuple[Callable[[], object], Callable[[], object]]:
    import torch

    from engine.evaluator.checks import dtypes, weights
    from engine.evaluator.checks.arguments import Arguments
    from engine.evaluator.checks.executed import executed

    task, candidate = types.SimpleNamespace(**executed(order["task"])), types.ModuleType("candidate")
    sys.modules["candidate"] = candidate
    exec(compile(order["kernel"], "candidate.py", "exec"), candidate.__dict__)
    torch.manual_seed(0)
    eager, kernel = (kind(*task.get_init_inputs()) for kind in (task.Model, candidate.ModelNew))
    weights.lay_out(kernel, weights.layout_of(lambda: eager))
    with suppress(RuntimeError):  # other names: then weights are the kernel's own, and take as long
        kernel.load_state_dict(eager.state_dict())
    sides = [dtypes.in_mode(order["mode"], dtypes.model_in(order["dtype"], side)) for side in (kernel, eager)]
    inputs = dtypes.arguments_in(order["dtype"], Arguments.of(task.get_inputs()), "cpu")
    return lambda: inputs.passed_to(sides[0]), lambda: inputs.passed_to(sides[1])


def _pairs(kernel: Callable[[], object], eager: Callable[[], object]) -> list[tuple[int, int]]:
    import torch

    pairs: list[tuple[int, int]] = []
    with torch.no_grad():
        for _ in range(WARM_UP_CALLS):
            kernel(), eager()
        deadline = time.monotonic() + SAMPLED_S
        while len(pairs) < LEAST_PAIRS or (time.monotonic() < deadline and len(pairs) < MOST_PAIRS):
            took = [0, 0]
            for side in (0, 1) if len(pairs) % 2 else (1, 0):
                started = time.perf_counter_ns()
                (kernel, eager)[side]()
                took[side] = time.perf_counter_ns() - started
            pairs.append((took[0], took[1]))
    return pairs


if __name__ == "__main__":
    main()
