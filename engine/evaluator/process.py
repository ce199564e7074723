"""The evaluator: answers one request of the engine in a process of its own. Makes the verdict, runs no candidate."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import tasks
from engine.build import builders
from engine.errors import TaskError
from engine.evaluation import failures
from engine.evaluation.failures import CandidateFailed, Failure, WorkerEnded
from engine.evaluation.findings import OTHER_SHAPES
from engine.evaluation.trials import PLAN, SHORT_PLAN, Trial
from engine.evaluator import observing, staged
from engine.evaluator.checking import Check
from engine.evaluator.gate import Gate
from engine.evaluator.reference import UnusableTask
from engine.evaluator.staged import Staged
from engine.evaluator.timing import Timing
from engine.evaluator.worker_pair import EvaluationRequest, WorkerPair
from engine.machine import processes, quiet
from engine.machine.worker_limits import Limits, Times
from engine.sandbox import Isolation, OwnFailure
from storage import codec
from storage.policy import Policy
from storage.proof import Group, Proof, Standing
from storage.records import CheckResult, CompileResult, TimingResult, Verdict

ONE_SHAPE = "one shape tested: the task names no other sizes"


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


def compile_candidate(case: EvaluationRequest, folder: Path) -> CompileResult:
    """Screen, build and import."""
    started = time.monotonic()
    gate = Gate(case)
    gate.read_text(folder)
    if gate.is_shut:
        seconds, proofs = time.monotonic() - started, (*gate.proofs, *case.walls.proofs())
        return CompileResult(False, seconds, gate.message, gate.message, verdict=Verdict.REFUSED, proofs=proofs)
    with WorkerPair(case, folder, with_reference=False, inspect=gate.read_library) as bench:
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


def check(case: EvaluationRequest, folder: Path) -> CheckResult:
    """Correct or not, at the task's sizes and at the others its policy names."""
    result = _check_apart(case, folder, PLAN)
    return with_other_sizes(result, case, lambda resized: _check_apart(resized, folder, SHORT_PLAN))


def _check_apart(case: EvaluationRequest, folder: Path, plan: tuple[Trial, ...]) -> CheckResult:
    """In a process of its own on a GPU: workers must be forked before the judge itself has used the device."""
    if case.device == "cpu":
        return _check(case, folder, plan)
    plain = run_apart(lambda: codec.to_plain(_check(case, folder, plan)))
    result: CheckResult = codec.from_plain(CheckResult, plain)
    return result


def _check(case: EvaluationRequest, folder: Path, plan: tuple[Trial, ...]) -> CheckResult:
    started = time.monotonic()
    with WorkerPair(case, folder) as bench:
        outcome = _prepared(bench, lambda: Check(bench, _seed(), plan).run())
        return _finished(outcome, bench, time.monotonic() - started)


def time_candidate(case: EvaluationRequest, folder: Path) -> TimingResult | CheckResult:
    """How fast, against the reference."""
    started = time.monotonic()
    is_first = quiet.raise_priority()
    busy = quiet.wait()
    with WorkerPair(case, folder) as bench:
        outcome = _prepared(bench, lambda: Timing(bench).run())
        if isinstance(outcome, TimingResult):
            machine = {"others before": f"{busy:.0%} of the processors", "priority": "raised" if is_first else "normal"}
            return replace(outcome, evidence={**outcome.evidence, **machine})
        return _finished(outcome, bench, time.monotonic() - started)


def describe(case: EvaluationRequest, folder: Path) -> dict[str, int]:
    """Bytes and operations the task needs at least: inputs, parameters and outputs once; products as counted."""
    with WorkerPair(case, folder) as bench:
        bench.describe()
        groups = [bench.trusted[name] for name in ("inputs", "own", "weights")]
        operations = bench.flop if case.policy.counts_operations else 0
        return {"min_bytes": sum(t.nbytes for group in groups for t in group), "min_flop": operations}


def measure(case: EvaluationRequest, folder: Path) -> dict[str, Any]:
    """Raw observations for a profile, in the same quiet as a timing."""
    quiet.raise_priority()
    quiet.wait()
    with WorkerPair(case, folder) as bench:
        outcome = _prepared(bench, lambda: observing.observe(bench, folder))
        return {"failure": outcome.message} if isinstance(outcome, Failure) else outcome


def profile(case: EvaluationRequest, folder: Path) -> Any:
    """A profile of the candidate on its device, from a process of its own under the profiler."""
    quiet.raise_priority()
    quiet.wait()
    laid_out = _staged(case, folder)
    return {"failure": laid_out.message} if isinstance(laid_out, Failure) else staged.profile(case, laid_out)


def sanitize(case: EvaluationRequest, folder: Path) -> dict[str, str]:
    """What compute-sanitizer finds in one call; an empty text where it finds nothing or is not to be had."""
    laid_out = _staged(case, folder)
    return {"found": "" if isinstance(laid_out, Failure) else staged.sanitize(case, laid_out)}


def _staged(case: EvaluationRequest, folder: Path) -> Staged | Failure:
    with WorkerPair(case, folder, with_reference=False) as bench:
        return _import(bench) or Staged.of(bench, folder / "target")


def estimate(case: EvaluationRequest, folder: Path) -> dict[str, int | None]:
    """Memory that the other acts will need."""
    from engine.evaluation.estimate import bytes_needed  # a second to import, and asked once per task

    return {"bytes": bytes_needed(case.task_source)}


def prepare(case: EvaluationRequest, folder: Path) -> dict[str, str]:
    """Build the common precompiled header."""
    case.builder.prepare()
    return {}


ACTS: Mapping[str, Callable[[EvaluationRequest, Path], Any]] = {
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


def _prepared(bench: WorkerPair, act: Callable[[], Any]) -> Any:
    """Import, describe and construct, then act; a candidate that fails on the way yields its Failure."""
    if failure := _import(bench):
        return failure
    bench.describe()
    return _guarded(bench, bench.construct) or _guarded(bench, act)


def _import(bench: WorkerPair) -> Failure | None:
    """Import the candidate. A build that failed counts even when the module carried on without it."""
    failure: Failure | None = _guarded(bench, bench.import_candidate)
    return failures.of_build(bench.failed_build) if bench.failed_build else failure


def _guarded(bench: WorkerPair, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except CandidateFailed as failed:
        return failures.of_build(bench.failed_build) if bench.failed_build else failures.of_candidate(failed)
    except WorkerEnded as ended:
        return failures.of_death(ended, bench.stage)


def _finished(outcome: CheckResult | Failure, bench: WorkerPair, seconds: float) -> CheckResult:
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


def _case(request: Mapping[str, Any], walls: Isolation) -> EvaluationRequest:
    device = str(request.get("device", "cpu"))
    builder = builders.of(device, request["installation"], Path(request["cache"]), request["times"]["build_s"], walls)
    return EvaluationRequest(
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


def with_other_sizes(
    result: CheckResult, case: EvaluationRequest, check: Callable[[EvaluationRequest], CheckResult]
) -> CheckResult:
    """A passed result, extended by a short check at each of the policy's other sizes; the first failure decides.

    Raises:
        UnusableTask: the task cannot be had at a size.
    """
    sizes = case.policy.other_sizes
    if result.verdict is not Verdict.PASSED or not sizes:
        return _with(result, Standing.ABSENT, ONE_SHAPE if not sizes else "not reached")
    for one in sizes:
        found = check(_resized(case, one))
        if found.verdict is not Verdict.PASSED:
            message = f"right at the task's own sizes, but not with {_named(one)}: {found.message}"
            failed = replace(
                result, verdict=found.verdict, message=message, mismatch=found.mismatch, precision="",
                max_error=found.max_error, max_abs_error=found.max_abs_error, tolerance=found.tolerance,
                reference_error=found.reference_error, seconds=result.seconds + found.seconds,
            )  # fmt: skip
            return _with(failed, Standing.BROKEN, message)
        result = replace(result, seconds=result.seconds + found.seconds)
    return _with(result, Standing.HELD, "; ".join(_named(one) for one in sizes))


def _resized(case: EvaluationRequest, sizes: Mapping[str, int | float]) -> EvaluationRequest:
    try:
        source = tasks.set_constants(case.task_source, sizes)
    except TaskError as error:
        raise UnusableTask(f"other_sizes of the task's policy: {error}") from error
    return replace(case, task_source=source, policy=replace(case.policy, other_sizes=()))


def _named(sizes: Mapping[str, int | float]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def _with(result: CheckResult, standing: Standing, detail: str) -> CheckResult:
    return replace(result, proofs=(*result.proofs, Proof(Group.CORRECTNESS, OTHER_SHAPES, standing, detail)))


def run_apart(work: Callable[[], Any]) -> Any:
    """What `work` returns, as plain JSON.

    Raises:
        UnusableTask, OwnFailure: as `work` raised them; the latter also when its process died.
    """
    read_from, write_to = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(read_from)
        _be_child(work, write_to, parent)
    os.close(write_to)
    with os.fdopen(read_from, "rb") as file:
        text = file.read()
    os.waitpid(pid, 0)
    if not text:
        raise OwnFailure("a part of the judge was killed")
    answer = json.loads(text)
    if "task" in answer:
        raise UnusableTask(answer["task"])
    if "own" in answer:
        raise OwnFailure(answer["own"])
    return answer["result"]


def _be_child(work: Callable[[], Any], write_to: int, parent: int) -> None:
    """Never returns: a forked child must not run its parent's code or exit handlers."""
    try:
        processes.die_with_parent(parent)
        processes.adopt_orphans()
        answer = {"result": work()}
    except UnusableTask as error:
        answer = {"task": str(error)}
    except BaseException:  # noqa: BLE001 - the only other way out would be up into the judge's own frames
        answer = {"own": f"the judge broke:\n{traceback.format_exc()}"}
    processes.end_descendants()
    with os.fdopen(write_to, "wb") as file:
        file.write(json.dumps(answer).encode())
    os._exit(0)
