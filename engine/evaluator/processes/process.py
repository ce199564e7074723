"""The evaluator: answers one request of the engine in a process of its own. Makes the verdict, runs no candidate."""

from __future__ import annotations

import functools
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.build import tunables
from engine.evaluator.checks import candidate_failures, recordings
from engine.evaluator.checks.candidate_failures import CandidateFailed, Failure, WorkerEnded
from engine.evaluator.checks.findings import OTHER_SHAPES
from engine.evaluator.checks.recordings import Recording, Unreadable
from engine.evaluator.checks.screening import (
    Finding,
    Rule,
    read_for,
    rule_checks,
    screen,
    screen_cpp,
    screen_library,
    symbols,
    verdict_message,
)
from engine.evaluator.checks.trials import PLAN, SHORT_PLAN, STRIDED, Trial
from engine.evaluator.machine import processes, quiet
from engine.evaluator.machine.stopwatch import Stopwatch
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.processes import estimating, evaluation_request, first_calls, observing
from engine.evaluator.processes.apart import run_apart, run_beside
from engine.evaluator.processes.channel import Channel
from engine.evaluator.processes.checking import Check
from engine.evaluator.processes.client import REQUEST_FOLDER
from engine.evaluator.processes.deploying import Deploying
from engine.evaluator.processes.evaluation_request import EvaluationRequest, FirstCalls
from engine.evaluator.processes.examining import Examining
from engine.evaluator.processes.observing import Staged
from engine.evaluator.processes.task_facts import UnusableTask
from engine.evaluator.processes.timing import Timing
from engine.evaluator.processes.worker import Worker
from engine.evaluator.processes.worker_pair import WorkerPair
from engine.evaluator.sandbox import Isolation, OwnFailure
from storage import codec, files
from storage.results import observed
from storage.results.check_records import CheckOutcome, CheckRecord, Group
from storage.results.deployment import Deployment, Trait
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination, Standing
from storage.results.policy import Policy, Strides
from storage.results.timeline import Part
from storage.results.vocabulary import Verdict

SCREEN_S = 30.0
MOST_OPERATORS = 40  # kinds that are told of a reference


class Gate:
    """The findings on one candidate: of its text, and of each library as it is built."""

    def __init__(self, request: EvaluationRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self.findings: list[Finding] = []

    @property
    def is_shut(self) -> bool:
        """True when something found is a breach."""
        return any(finding.is_refusal for finding in self.findings)

    @property
    def message(self) -> str:
        """What the model is told."""
        return verdict_message(self.findings)

    @property
    def checks(self) -> tuple[CheckRecord, ...]:
        """One per rule."""
        return rule_checks(self.findings, self._request.language)

    def read_text(self) -> None:
        """Screen the source; one that breaks or outlasts the reader is refused."""
        self._read(())

    def _read(self, texts: tuple[str, ...]) -> None:
        """The source, or the C++ texts it built, in a process of their own: a text can be made to break its reader."""
        request = self._request
        with request.spent.on(Part.SCREENING):
            self._ask_reader(request, texts)

    def _ask_reader(self, request: EvaluationRequest, texts: tuple[str, ...]) -> None:
        body = functools.partial(
            _answer, request.source, read_for(request.policy, request.task_source), request.language, texts
        )
        reader = Worker.fork(body, request.limits, self._folder / "screening", isolation=request.isolation)
        try:
            reply = reader.ask({"ask": "screen"}, SCREEN_S)
            self.findings += [codec.from_plain(Finding, plain) for plain in reply["findings"]]
        except WorkerEnded as ended:
            why = f"the file cannot be read within limits ({ended.death.ending}): write the candidate plainly"
            self.findings.append(Finding(Rule.DYNAMIC, None, why, is_refusal=True))
        finally:
            reader.end()

    def read_library(self, library: Path, sources: tuple[str, ...]) -> str:
        """Screen the C++ that was built and what the library links; returns the refusal, or an empty text."""
        self._read(sources)
        try:
            self.findings += screen_library(*symbols(library))
        except ValueError as error:
            why = f"the built library cannot be read: {error}"
            self.findings.append(Finding(Rule.DYNAMIC, None, why, is_refusal=True))
        return self.message if self.is_shut else ""


def _answer(source: str, policy: Policy, language: str, texts: tuple[str, ...], line: Channel) -> None:
    number = line.receive()["number"]
    findings = screen_cpp(texts, policy) if texts else screen(source, policy, language)
    line.send({"findings": codec.to_plain(findings), "number": number})


LEAST_SIZE, SECRET_TRIES = 8, 4
ONE_SHAPE = "one shape tested: the task names no other sizes"


def answer(request: Mapping[str, Any], isolation: Isolation, turn: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The result of one request as plain JSON, or `failed` with the kind of our own failure.

    `turn` waits for the device, and is called at most once.
    """
    spent = Stopwatch()
    spent.add(Part.FORKING, max(0.0, time.monotonic() - request["sent_at"]))  # one clock for all processes of a host
    processes.adopt_orphans()
    folder = Path(tempfile.mkdtemp(prefix=REQUEST_FOLDER, dir=request["scratch"]))
    try:
        evaluation = replace(_request(request, isolation, spent), turn=turn)
        if evaluation.is_confined and not isolation.is_wall:
            raise OwnFailure(estimating.NO_SANDBOX)
        if request["act"] in CALLING:
            evaluation = first_calls.ahead(evaluation, folder)
        result = codec.to_plain(ACTS[request["act"]](evaluation, folder))
        return {"result": result, "spent": spent.parts}
    except UnusableTask as error:
        return {"failed": "task", "message": str(error)}
    except OwnFailure as error:
        return {"failed": "toolchain", "message": str(error)}
    except OSError as error:  # a full disk, no right to a folder: nobody needs a traceback for that
        return {"failed": "toolchain", "message": files.explained(error)}
    finally:
        processes.end_descendants()
        shutil.rmtree(folder, ignore_errors=True)


def compile_candidate(request: EvaluationRequest, folder: Path) -> CompileResult:
    """Screen, build and import."""
    started = time.monotonic()
    gate = Gate(request, folder)
    gate.read_text()
    if gate.is_shut:
        seconds, checks = time.monotonic() - started, (*gate.checks, *request.isolation.checks())
        return CompileResult(False, seconds, gate.message, gate.message, verdict=Verdict.REFUSED, proofs=checks)
    request = first_calls.ahead(request, folder, gate.read_library)
    first = request.first_calls or FirstCalls(None)
    with WorkerPair(request, folder, with_reference=False, inspect=gate.read_library) as workers:
        failure = _import(workers)
        seconds = time.monotonic() - started
        built, checks = workers.builds, (*gate.checks, *request.isolation.checks())
        log = "\n".join(library.log for library in built)
        if failure:
            log = workers.failed_build.log if workers.failed_build else log
            return CompileResult(
                False, seconds, failure.message, log or failure.message, verdict=failure.verdict, proofs=checks
            )
        return CompileResult(
            True,
            seconds,
            log=log,
            remarks=(
                *first.remarks,
                *tunables.read(request.source).remarks,
                *(remark for library in built for remark in library.remarks),
            ),
            is_cached=first.is_cached or (bool(built) and all(library.is_cached for library in built)),
            proofs=checks,
            resources=(*first.resources, *(kernel for library in built for kernel in library.resources)),
        )


def compile_all(request: EvaluationRequest, folder: Path) -> list[Any]:
    """Screen, build and import several sources at the same time, each in a process of its own."""
    places = [folder / f"source.{number}" for number in range(len(request.details["sources"]))]
    for subfolder in places:
        subfolder.mkdir()
    return run_beside(
        [
            functools.partial(_compiled, replace(request, source=source), subfolder)
            for source, subfolder in zip(request.details["sources"], places, strict=True)
        ]
    )


def _compiled(request: EvaluationRequest, folder: Path) -> Any:
    return codec.to_plain(compile_candidate(request, folder))


def check(request: EvaluationRequest, folder: Path) -> CheckResult:
    """Correct or not, at the task's sizes and at the others its policy names."""
    plan = (*PLAN, STRIDED) if request.policy.strides is Strides.ANY else PLAN
    result = _check_apart(request, folder, plan, request.policy.recorded)
    return with_other_sizes(result, request, lambda resized: _check_apart(resized, folder, SHORT_PLAN))


def _check_apart(request: EvaluationRequest, folder: Path, plan: tuple[Trial, ...], recorded: str = "") -> CheckResult:
    """In a process of its own on a GPU: workers must be forked before the evaluator itself has used the device."""
    if request.device == "cpu":
        return _check(request, folder, plan, recorded)
    apart = replace(request, spent=Stopwatch())
    plain = run_apart(
        lambda: {"checked": codec.to_plain(_check(apart, folder, plan, recorded)), "spent": apart.spent.parts}
    )
    request.spent.take(plain["spent"])
    result: CheckResult = codec.from_plain(CheckResult, plain["checked"])
    return result


def _check(request: EvaluationRequest, folder: Path, plan: tuple[Trial, ...], recorded: str) -> CheckResult:
    started = time.monotonic()
    recording = _recording(recorded)
    with WorkerPair(request, folder, is_timed=False) as workers:
        outcome = _prepared(workers, lambda: _compared(workers, plan, recording))
        return _finished(outcome, workers, time.monotonic() - started)


def _recording(path: str) -> Recording | None:
    try:
        return recordings.read(path) if path else None
    except Unreadable as error:
        raise UnusableTask(str(error)) from error


def _compared(workers: WorkerPair, plan: tuple[Trial, ...], recording: Recording | None) -> CheckResult:
    with workers.spent.on(Part.COMPARING):
        return Check(workers, _seed(), plan, recording).run()


def time_candidate(request: EvaluationRequest, folder: Path) -> TimingResult | CheckResult:
    """How fast, against the reference."""
    started = time.monotonic()
    with WorkerPair(request, folder) as workers:
        outcome = _prepared(workers, lambda: Timing(workers).run())
        if isinstance(outcome, TimingResult):
            return outcome
        return _finished(outcome, workers, time.monotonic() - started)


def describe(request: EvaluationRequest, folder: Path) -> dict[str, Any]:
    """Bytes and operations the task needs at least: inputs, parameters and outputs once; products as counted, without
    what masks make needless. And how forward is called, where the task's text does not tell plainly."""
    with WorkerPair(request, folder, with_candidate=False, is_timed=False) as workers:
        size, operations, is_masked, signature, rows, lying = workers.needs()
        ran = [[row.leaf, row.calls, row.elements] for row in rows[:MOST_OPERATORS]]
        laid_out = [[name, spec.shape, spec.stride] for name, spec in lying.items()]
        return {
            "min_bytes": size, "min_flop": operations, "signature": signature, "operators": ran, "laid_out": laid_out,
            "leaves_masked_out": is_masked,
        }  # fmt: skip


def examine(request: EvaluationRequest, folder: Path) -> Examination:
    """Whether kernels can be judged on the task, and what may vary."""
    if not request.policy.compare_modules:
        return _examined(request, folder)[0]
    names = run_apart(lambda: _inner_modules(request, folder))
    while names:
        examined = Examination(Standing.DECIDED, inner=tuple(names))
        examination, idle = _examined(replace(request, examined=examined), folder)
        if not idle:
            return examination
        names = [name for name in names if name not in idle]
    return Examination(
        Standing.UNDECIDABLE,
        f"no module up to {request.policy.compare_modules} names deep is called once and returns one tensor of its own "
        "that a kernel must compute",
        ("another depth (--compare-modules)",),
    )


def _examined(request: EvaluationRequest, folder: Path) -> tuple[Examination, list[str]]:
    """In a process of its own where others are forked later; with the modules for which doing nothing would pass."""
    if request.device == "cpu" and not request.policy.compare_modules:
        return _examined_here(request, folder)
    apart = replace(request, spent=Stopwatch())
    plain, idle = run_apart(lambda: codec.to_plain(_examined_here(apart, folder)))
    examination: Examination = codec.from_plain(Examination, plain)
    return examination, idle


def _examined_here(request: EvaluationRequest, folder: Path) -> tuple[Examination, list[str]]:
    with WorkerPair(request, folder, with_candidate=False, is_timed=False) as workers:
        workers.describe()
        examining = Examining(workers, _seed() >> 16)
        return examining.run(), examining.idle_modules


def _inner_modules(request: EvaluationRequest, folder: Path) -> list[str]:
    with WorkerPair(request, folder, with_candidate=False, is_timed=False) as workers:
        workers.describe()
        depth = request.policy.compare_modules
        names: list[str] = workers.ask_reference("inner_modules", depth=depth, seed=workers.call_seed)["names"]
        return names


def measure(request: EvaluationRequest, folder: Path) -> dict[str, Any]:
    """Raw observations for a profile, in the same quiet as a timing."""
    with WorkerPair(request, folder) as workers:
        outcome = _prepared(workers, lambda: _observed(workers, folder))
        return {"failure": outcome.message} if isinstance(outcome, Failure) else outcome


def _observed(workers: WorkerPair, folder: Path) -> Any:
    workers.take_turn()
    with workers.spent.on(Part.PROFILING):
        return observing.observe(workers, folder)


def profile(request: EvaluationRequest, folder: Path) -> Any:
    """A profile of the candidate on its device, from a process of its own under the profiler."""
    with request.spent.on(Part.QUIET):
        quiet.raise_priority()
        quiet.wait(request.times.timing_s, quiet.BESIDE_A_DEVICE)
    laid_out = _staged(request, folder)
    if isinstance(laid_out, Failure):
        return {"failure": laid_out.message}
    with request.spent.on(Part.PROFILING):
        return observing.profile(request, laid_out)


def deploy(request: EvaluationRequest, folder: Path) -> Deployment:
    """What is told of a kernel's deployment; one that fails on the way has no verdict of it."""
    examined = request.examined and replace(request.examined, inner=())  # a caller gets the result alone
    with WorkerPair(replace(request, examined=examined), folder, is_timed=False) as workers:
        outcome = _prepared(workers, lambda: Deploying(workers).run())
    if isinstance(outcome, Failure):
        return Deployment(Trait.NOT_TRIED, outcome.message, unseen=outcome.message)
    seen: Deployment = outcome
    return seen


def sanitize(request: EvaluationRequest, folder: Path) -> dict[str, str]:
    """What compute-sanitizer finds in one call; an empty text where it finds nothing or is not to be had."""
    laid_out = _staged(request, folder)
    with request.spent.on(Part.SANITIZING):
        return {"found": "" if isinstance(laid_out, Failure) else observing.sanitize(request, laid_out)}


def _staged(request: EvaluationRequest, folder: Path) -> Staged | Failure:
    with WorkerPair(request, folder, with_reference=False) as workers:
        return _import(workers) or Staged.of(workers, folder / "target")


def compiler_source(request: EvaluationRequest, folder: Path) -> dict[str, str]:
    """What torch.compile writes for the task, or why it writes nothing; with `details` a candidate out of it too."""

    def work() -> dict[str, str]:
        from engine.evaluator.processes import (
            compiler_source as compiler,  # imports the compiler, and is asked once a run
        )

        about = request.task_source, request.device, folder, request.policy
        try:
            return compiler.start_of_task(*about) if request.details else {"source": compiler.of_task(*about)}
        except Exception as error:  # noqa: BLE001 - whatever the compiler or the module raises is why there is none
            return {"failure": f"{type(error).__name__}: {error}"}

    result: dict[str, str] = run_apart(work)
    return result


def estimate(request: EvaluationRequest, folder: Path) -> dict[str, int | None]:
    """Memory that the other acts will need; None for a task that cannot be followed."""
    cost = estimating.cost(request.task_source, request.policy.backward, request.isolation, folder)
    return {"bytes": None if isinstance(cost, str) else cost[0]}


def prepare(request: EvaluationRequest, folder: Path) -> dict[str, str]:
    """Build the common precompiled header."""
    request.builder.prepare()
    return {}


CALLING = ("check", "time", "measure", "profile", "deploy", "sanitize")
"""Acts that call the candidate: what its compile step did not give, because it was not asked or lost, is made first."""
ACTS: Mapping[str, Callable[[EvaluationRequest, Path], Any]] = {
    "compile": compile_candidate,
    "compile_all": compile_all,
    "check": check,
    "time": time_candidate,
    "describe": describe,
    "examine": examine,
    "measure": measure,
    "profile": profile,
    "deploy": deploy,
    "sanitize": sanitize,
    "prepare": prepare,
    "compiler_source": compiler_source,
    "estimate": estimate,
}


def _prepared(workers: WorkerPair, act: Callable[[], Any]) -> Any:
    """Import, describe and construct, then act; a candidate that fails on the way yields its Failure."""
    if failure := _import(workers):
        return failure
    workers.describe()
    return _guarded(workers, workers.construct) or _guarded(workers, act)


def _import(workers: WorkerPair) -> Failure | None:
    """Import the candidate. A build that failed counts even when the module carried on without it."""
    failure: Failure | None = _guarded(workers, workers.import_candidate)
    return candidate_failures.of_build(workers.failed_build) if workers.failed_build else failure


def _guarded(workers: WorkerPair, act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (CandidateFailed, WorkerEnded) as error:
        return candidate_failures.of_error(error, workers.stage, workers.failed_build)


def _finished(outcome: CheckResult | Failure, workers: WorkerPair, seconds: float) -> CheckResult:
    evidence = {
        "threads": os.environ.get("OMP_NUM_THREADS", "?"),
        "weights": workers.weights,
        "build": "cached" if workers.builds and all(library.is_cached for library in workers.builds) else "built here",
    }
    if printed := candidate_failures.printed(workers.candidate.output)[:500].strip():
        evidence["printed"] = printed
    if workers.device != "cpu":
        evidence["device"] = workers.device_name
    if workers.observed.calls:
        evidence[observed.KEY] = observed.to_text(workers.observed.table)
    if workers.launches.calls:
        evidence[observed.KERNELS] = observed.to_text(workers.launches.table)
    if isinstance(outcome, Failure):
        outcome = CheckResult(outcome.verdict, seconds, message=outcome.message)
    checks = (*outcome.proofs, *workers.request.isolation.checks())
    return replace(outcome, evidence={**evidence, **outcome.evidence}, proofs=checks)


def _request(request: Mapping[str, Any], isolation: Isolation, spent: Stopwatch) -> EvaluationRequest:
    device = str(request.get("device", "cpu"))
    builder = evaluation_request.builder_for(
        device, request["installation"], Path(request["cache"]), request["times"]["build_s"], isolation
    )
    return EvaluationRequest(
        task_source=request["task_source"],
        policy=codec.from_plain(Policy, request["policy"]),
        source=request["source"],
        builder=builder,
        times=Times(**request["times"]),
        limits=Limits(**request["limits"]),
        isolation=replace(isolation, devices=tuple(request.get("device_files", ()))),
        device=device,
        language=request.get("language", ""),
        details=request.get("details", {}),
        spent=spent,
        examined=codec.from_plain(Examination, request["examined"]) if request.get("examined") else None,
        is_confined=bool(request.get("confined")),
    )


def _seed() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1


def with_other_sizes(
    result: CheckResult, request: EvaluationRequest, check: Callable[[EvaluationRequest], CheckResult]
) -> CheckResult:
    """A passed result, extended by a short check at each other size and workload of the policy; the first
    failure decides.

    Raises:
        UnusableTask: the task cannot be had at a size.
    """
    sizes = (*request.policy.other_sizes, *tasks.workloads.others(request.task_source, request.policy))
    is_secret = request.policy.secret_sizes
    if result.verdict is not Verdict.PASSED or not (sizes or is_secret):
        return _with(result, CheckOutcome.ABSENT, "not reached" if sizes or is_secret else ONE_SHAPE)
    tried = []
    for fixed in (*sizes, *([None] if is_secret else [])):
        checked, size = _at_secret_size(request, check) if fixed is None else (check(_resized(request, fixed)), fixed)
        tried.append(f"{'secretly ' if fixed is None else ''}{_named(size)}")
        if checked is None:
            tried[-1] = "no other size that the module takes was found for a secret one"
        elif checked.verdict is not Verdict.PASSED:
            message = f"right at the task's own sizes, but not with {_named(size)}: {checked.message}"
            failed = replace(
                result, verdict=checked.verdict, message=message, mismatch=checked.mismatch, precision="",
                max_error=checked.max_error, max_abs_error=checked.max_abs_error, tolerance=checked.tolerance,
                reference_error=checked.reference_error, seconds=result.seconds + checked.seconds,
            )  # fmt: skip
            return _with(failed, CheckOutcome.BROKEN, message)
        else:
            result = replace(result, seconds=result.seconds + checked.seconds)
    return _with(result, CheckOutcome.HELD, "; ".join(tried))


def _at_secret_size(
    request: EvaluationRequest, check: Callable[[EvaluationRequest], CheckResult]
) -> tuple[CheckResult | None, Mapping[str, int | float]]:
    """A check at a size near the task's own; nothing where the module takes none of those tried."""
    choose = random.Random(os.urandom(16))
    sizes = tasks.sizes_of(request.task_source)
    names = [name for name, size in sizes.items() if isinstance(size, int) and size >= LEAST_SIZE]
    for name in choose.sample(names, min(SECRET_TRIES, len(names))):
        size = sizes[name]
        near = {name: choose.choice([size - 1, size + 1, size - choose.randint(2, 7), int(size * 0.75)])}
        with suppress(UnusableTask):
            return check(_resized(request, near)), near
    return None, {}


def _resized(request: EvaluationRequest, sizes: Mapping[str, int | float]) -> EvaluationRequest:
    try:
        source = tasks.set_constants(request.task_source, sizes)
    except TaskError as error:
        where = "a workload" if sizes in request.policy.workloads else "other_sizes of the task's policy"
        raise UnusableTask(f"{where}: {error}") from error
    return replace(request, task_source=source, policy=replace(request.policy, other_sizes=(), workloads=()))


def _named(sizes: Mapping[str, int | float]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def _with(result: CheckResult, outcome: CheckOutcome, detail: str) -> CheckResult:
    return replace(result, proofs=(*result.proofs, CheckRecord(Group.CORRECTNESS, OTHER_SHAPES, outcome, detail)))
