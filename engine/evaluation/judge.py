"""Answers one request of the engine in a process of its own. Never loads candidate code; makes the verdict."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.build import builders
from engine.evaluation import apart, failures, resizing
from engine.evaluation.bench import Bench, Case
from engine.evaluation.checking import Check
from engine.evaluation.device import profiled, sanitizer
from engine.evaluation.device.staged import Staged
from engine.evaluation.failures import CandidateFailed, Failure, WorkerEnded
from engine.evaluation.gate import Gate
from engine.evaluation.reference import UnusableTask
from engine.evaluation.timing import Timing
from engine.evaluation.trials import PLAN, SHORT_PLAN, Trial
from engine.machine import processes, quiet
from engine.machine.worker_limits import Limits, Times
from engine.profiling import observing
from engine.sandbox import Isolation, OwnFailure
from storage import codec
from storage.policy import Policy
from storage.records import CheckResult, CompileResult, TimingResult, Verdict


def answer(request: Mapping[str, Any], walls: Isolation) -> dict[str, Any]:
    """The result of one request as plain JSON, or `failed` with the kind of our own failure."""
    processes.adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix="judge.", dir=request["scratch"]))
    try:
        return {"result": codec.to_plain(ACTS[request["act"]](_case(request, walls), folder))}
    except UnusableTask as error:
        return {"failed": "task", "message": str(error)}
    except OwnFailure as error:
        return {"failed": "toolchain", "message": str(error)}
    finally:
        processes.end_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def compile_candidate(case: Case, folder: Path) -> CompileResult:
    """Screen, build and import."""
    started = time.monotonic()
    gate = Gate(case)
    gate.read_text(folder)
    if gate.is_shut:
        seconds, proofs = time.monotonic() - started, (*gate.proofs, *case.walls.proofs())
        return CompileResult(False, seconds, gate.message, gate.message, verdict=Verdict.REFUSED, proofs=proofs)
    with Bench(case, folder, with_reference=False, inspect=gate.read_library) as bench:
        failure = _import(bench)
        seconds = time.monotonic() - started
        built, proofs = bench.builds, (*gate.proofs, *case.walls.proofs())
        log = "\n".join(one.log for one in built)
        if failure:
            log = bench.failed_build.log if bench.failed_build else log
            return CompileResult(
                False, seconds, failure.message, log or failure.message, verdict=failure.verdict, proofs=proofs
            )
        return CompileResult(
            True,
            seconds,
            log=log,
            remarks=tuple(remark for one in built for remark in one.remarks),
            is_cached=bool(built) and all(one.is_cached for one in built),
            proofs=proofs,
            resources=tuple(kernel for one in built for kernel in one.resources),
        )


def check(case: Case, folder: Path) -> CheckResult:
    """Correct or not, at the task's sizes and at the others its policy names."""
    result = _check_apart(case, folder, PLAN)
    return resizing.with_other_sizes(result, case, lambda resized: _check_apart(resized, folder, SHORT_PLAN))


def _check_apart(case: Case, folder: Path, plan: tuple[Trial, ...]) -> CheckResult:
    """In a process of its own on a GPU: workers must be forked before the judge itself has used the device."""
    if case.device == "cpu":
        return _check(case, folder, plan)
    plain = apart.run(lambda: codec.to_plain(_check(case, folder, plan)))
    result: CheckResult = codec.from_plain(CheckResult, plain)
    return result


def _check(case: Case, folder: Path, plan: tuple[Trial, ...]) -> CheckResult:
    started = time.monotonic()
    with Bench(case, folder) as bench:
        outcome = _prepared(bench, lambda: Check(bench, _seed(), plan).run())
        return _finished(outcome, bench, time.monotonic() - started)


def time_candidate(case: Case, folder: Path) -> TimingResult | CheckResult:
    """How fast, against the reference."""
    started = time.monotonic()
    is_first = quiet.raise_priority()
    busy = quiet.wait()
    with Bench(case, folder) as bench:
        outcome = _prepared(bench, lambda: Timing(bench).run())
        if isinstance(outcome, TimingResult):
            machine = {"others before": f"{busy:.0%} of the processors", "priority": "raised" if is_first else "normal"}
            return replace(outcome, evidence={**outcome.evidence, **machine})
        return _finished(outcome, bench, time.monotonic() - started)


def describe(case: Case, folder: Path) -> dict[str, int]:
    """Bytes and operations the task needs at least: inputs, parameters and outputs once; products as counted."""
    with Bench(case, folder) as bench:
        bench.describe()
        groups = [bench.trusted[name] for name in ("inputs", "own", "weights")]
        operations = bench.flop if case.policy.counts_operations else 0
        return {"min_bytes": sum(t.nbytes for group in groups for t in group), "min_flop": operations}


def measure(case: Case, folder: Path) -> dict[str, Any]:
    """Raw observations for a profile, in the same quiet as a timing."""
    quiet.raise_priority()
    quiet.wait()
    with Bench(case, folder) as bench:
        outcome = _prepared(bench, lambda: observing.observe(bench, folder))
        return {"failure": outcome.message} if isinstance(outcome, Failure) else outcome


def profile(case: Case, folder: Path) -> Any:
    """A profile of the candidate on its device, from a process of its own under the profiler."""
    quiet.raise_priority()
    quiet.wait()
    laid_out = _staged(case, folder)
    return {"failure": laid_out.message} if isinstance(laid_out, Failure) else profiled.profile(case, laid_out)


def sanitize(case: Case, folder: Path) -> dict[str, str]:
    """What compute-sanitizer finds in one call; an empty text where it finds nothing or is not to be had."""
    laid_out = _staged(case, folder)
    return {"found": "" if isinstance(laid_out, Failure) else sanitizer.examine(case, laid_out)}


def _staged(case: Case, folder: Path) -> Staged | Failure:
    with Bench(case, folder, with_reference=False) as bench:
        return _import(bench) or Staged.of(bench, folder / "target")


def estimate(case: Case, folder: Path) -> dict[str, int | None]:
    """Memory that the other acts will need."""
    from engine.evaluation.estimate import bytes_needed  # a second to import, and asked once per task

    return {"bytes": bytes_needed(case.task_source)}


def prepare(case: Case, folder: Path) -> dict[str, str]:
    """Build the common precompiled header."""
    case.builder.prepare()
    return {}


ACTS: Mapping[str, Callable[[Case, Path], Any]] = {
    "compile": compile_candidate,
    "check": check,
    "time": time_candidate,
    "describe": describe,
    "measure": measure,
    "profile": profile,
    "sanitize": sanitize,
    "prepare": prepare,
    "estimate": estimate,
}


def _prepared(bench: Bench, act: Callable[[], Any]) -> Any:
    """Import, describe and construct, then act; a candidate that fails on the way yields its Failure."""
    if failure := _import(bench):
        return failure
    bench.describe()
    return _guarded(bench, bench.construct) or _guarded(bench, act)


def _import(bench: Bench) -> Failure | None:
    """Import the candidate. A build that failed counts even when the module carried on without it."""
    failure: Failure | None = _guarded(bench, bench.import_candidate)
    return failures.of_build(bench.failed_build) if bench.failed_build else failure


def _guarded(bench: Bench, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except CandidateFailed as failed:
        return failures.of_build(bench.failed_build) if bench.failed_build else failures.of_candidate(failed)
    except WorkerEnded as ended:
        return failures.of_death(ended, bench.stage)


def _finished(outcome: CheckResult | Failure, bench: Bench, seconds: float) -> CheckResult:
    evidence = {
        "threads": os.environ.get("OMP_NUM_THREADS", "?"),
        "weights": bench.weights,
        "build": "cached" if bench.builds and all(one.is_cached for one in bench.builds) else "built here",
    }
    if printed := failures.printed(bench.candidate.output)[:500].strip():
        evidence["printed"] = printed
    if bench.device != "cpu":
        evidence["device"] = bench.device_name
    if isinstance(outcome, Failure):
        outcome = CheckResult(outcome.verdict, seconds, message=outcome.message)
    proofs = (*outcome.proofs, *bench.case.walls.proofs())
    return replace(outcome, evidence={**evidence, **outcome.evidence}, proofs=proofs)


def _case(request: Mapping[str, Any], walls: Isolation) -> Case:
    device = str(request.get("device", "cpu"))
    builder = builders.of(device, request["installation"], Path(request["cache"]), request["times"]["build_s"], walls)
    return Case(
        task_source=request["task_source"],
        policy=codec.from_plain(Policy, request["policy"]),
        source=request["source"],
        builder=builder,
        times=Times(**request["times"]),
        limits=Limits(**request["limits"]),
        walls=replace(walls, devices=tuple(request.get("device_files", ()))),
        device=device,
        details=request.get("details", {}),
    )


def _seed() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1
