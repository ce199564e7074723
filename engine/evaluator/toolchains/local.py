"""What every toolchain that judges on this machine shares: it asks the evaluator processes. Imports no torch."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import tempfile
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from engine.errors import BaselineUnavailable, TaskError
from engine.evaluator import languages, tasks
from engine.evaluator.build import just_in_time
from engine.evaluator.checks import timing_checks
from engine.evaluator.checks.timing_checks import Bounds
from engine.evaluator.machine import lease, turns
from engine.evaluator.machine.stopwatch import Stopwatch
from engine.evaluator.machine.turns import Turn
from engine.evaluator.machine.worker_limits import Limits, Times
from engine.evaluator.processes.client import REQUEST_FOLDER, EvaluatorClient
from engine.evaluator.request import (
    Baseline,
    Check,
    Compile,
    CompileAll,
    CompiledStart,
    CompilerSource,
    Deploy,
    Evaluator,
    Examine,
    Limit,
    Profile,
    Request,
    Result,
    StartFromCompiler,
    Time,
    TimeBriefly,
)
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains import remembered
from storage import codec, locks
from storage.device_use import UNSEEN, Claim
from storage.results.baselines import NO_SCALED_PRODUCT, Instead
from storage.results.deployment import Deployment
from storage.results.evaluation_results import CheckResult, CompileResult, TimedWorkload, TimingResult
from storage.results.examination import Examination
from storage.results.hardware_limit import CalledOperator, HardwareLimit, LaidOut
from storage.results.policy import EVERYTHING, Policy
from storage.results.profile_results import ProfileResult
from storage.results.timeline import Part
from storage.results.vocabulary import Verdict

Timed = TypeVar(
    "Timed", CompileResult, CheckResult, TimingResult, TimingResult | CheckResult, ProfileResult, Deployment
)
KnownLimits = dict[tuple[str, str], HardwareLimit]  # by the task's source and what is measured of it

REQUEST_S = 900.0
SCRATCH, YOUNG_S = "tilewright.", 60.0
BRIEF_S = 0.5
SESSIONS = 3  # of a timing, as long as others take the processors
REPEATED_S = 1.0  # of sampling: who samples for less wants no sure figure, and starting processes would take longer
DEPTHS = (1, 2, 3)  # of modules that are compared, as far as they are tried
NO_MODULES = "modules are compared one by one, and a compiled network has none"
SHARE_S = 0.5  # of timing samples, for one of several workloads at least
HINT_S = 120.0  # what torch.compile writes is a hint: it is not worth a longer wait
SWITCH = "TILEWRIGHT_COMPILED_BASELINE"
ENGINE = Path(__file__).resolve().parents[1]
EVALUATOR_FOLDERS = (
    "processes",
    "checks",
    "languages",
    "sandbox",
    "machine",
)  # folders of the code that a verdict depends on
CALLING = ("check", "time", "measure", "deploy")  # acts that call reference and candidate on the same weights
AMPLE = 1 << 45  # bytes; what we compile ourselves needs no limit
_TAIL = """

import os as _os

_os.environ["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"  # for one kernel in a new folder they cost more

# In this process: a pool of compiling processes would outlive the call and be taken for a candidate's stray children.
import torch._inductor.config as _config
from engine.evaluator.processes import compiler_source as _compiler_source

_config.compile_threads = 1
_compiler_source.take_first_instruction_set()
_os.environ["TORCHINDUCTOR_CACHE_DIR"] = _os.path.join(_os.environ["TMPDIR"], "inductor")
"""
_INSTEAD = """
from engine.evaluator.processes import alternatives as _alternatives


class ModelNew(torch.nn.Module):
    def __new__(cls, *arguments):  # Model may be a function that makes a module
        model = Model(*arguments)
        model.forward = _alternatives.instead({how!r}, model.forward, {is_half})
        return model
"""


class LocalToolchain(Evaluator):
    """Answers through processes of this machine. A kind of machine adds installation, limit and profiler."""

    name = ""
    device = "cpu"

    def __init__(self, scratch: Path | None, times: Times, limits: Limits) -> None:
        self.claim: Claim = UNSEEN
        self._is_alone, self._waited_s = False, 0.0
        self._own_scratch = scratch is None
        self._scratch = scratch or Path(tempfile.mkdtemp(prefix=SCRATCH))
        self._hold: int | None = locks.hold_file(self._scratch / "lock") if self._own_scratch else None
        if self._own_scratch:
            _sweep(self._scratch.parent)
        self._scratch.mkdir(parents=True, exist_ok=True)
        self._times = times
        self._limits = limits
        interpreting = just_in_time.INTERPRET if self.device == "cpu" else {}
        self._spent = Stopwatch()
        self._evaluator = EvaluatorClient(len(os.sched_getaffinity(0)), interpreting, self._spent)
        self._turn = threading.Lock()
        self._known_limits: KnownLimits = {}
        self._examined: dict[str, Examination] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    @abstractmethod
    def cache(self) -> Path:
        """Libraries, precompiled headers and machine measurements; safe to delete."""

    @property
    @abstractmethod
    def installation(self) -> Any:
        """Compiler and headers of this machine, a dataclass with a `fingerprint`.

        Raises:
            ToolchainError: something is missing.
        """

    @property
    def variables(self) -> Mapping[str, str]:
        """What is set for processes that use the device, beside what the engine's own environment says."""
        return {}

    @contextmanager
    def alone(self, waited_s: float) -> Iterator[None]:
        """While inside, the caller holds the lease of the device, for which it waited; nothing here lets it go."""
        self._is_alone, self._waited_s = True, waited_s
        try:
            yield
        finally:
            self._is_alone, self._waited_s = False, 0.0

    @property
    def _locks(self) -> lease.Files:
        return () if self._is_alone else self.lease_files

    @property
    def device_files(self) -> tuple[str, ...]:
        """Device nodes that a candidate needs."""
        return ()

    def evaluate(self, request: Request[Result]) -> Result:
        """The answer, with where its time went."""
        task, answer = request.task, cast(Any, None)
        match request:
            case Examine():
                answer = self._examine(task, is_confined=request.is_confined)
            case Limit():
                answer = self._limit_of_all(task)
            case Compile():
                answer = self._with_timeline(lambda: self._compile(task, request.source))
            case CompileAll():
                answer = self._compile_all(task, request.candidates)
            case Check():
                self._see_that_it_is_decided(task)
                answer = self._with_timeline(
                    lambda: replace(self._check(task, request.source), rules=task.policy.rules)
                )
            case TimeBriefly():
                answer = self._with_timeline(lambda: self._time_briefly(task, request.source))
            case Time():
                answer = self._with_timeline(lambda: self._time(task, request.source))
            case Baseline():
                answer = self._baseline(request)
            case CompilerSource():
                answer = self._compiler_source(task)
            case StartFromCompiler():
                answer = self._compiled_start(task)
            case Profile():
                timed_ms = tasks.workloads.own_latency_ms(task, request.timed) if request.timed else None
                answer = self._with_timeline(lambda: self._undisturbed(task, request.source, timed_ms))
            case Deploy():
                self._see_that_it_is_decided(task)
                answer = self._with_timeline(lambda: self._deploy(task, request.source))
        return cast(Result, answer)

    def _limit_of_all(self, task: Task) -> HardwareLimit:
        """What this machine can do at the task's sizes, and what the task needs at least."""
        for _, sized_task in tasks.workloads.each(task):
            self._see_that_it_is_decided(sized_task)
        # What the machine can do is measured again once, whatever the number of workloads.
        limits = [
            self._limit(sized_task, again=not number)
            for number, (_, sized_task) in enumerate(tasks.workloads.each(task))
        ]
        return tasks.workloads.limit_of(limits)

    @abstractmethod
    def _limit(self, task: Task, *, again: bool) -> HardwareLimit:
        """The limit at the task's own sizes, from what was measured before unless `again`."""

    @property
    def fingerprint(self) -> str:
        """Changes with everything that can change a result, the evaluator's own code included."""
        threads = len(os.sched_getaffinity(0))
        key_parts = [
            self.installation.fingerprint,
            asdict(self._times),
            asdict(self._limits),
            threads,
            _evaluator_code(),
        ]
        key_parts += [
            version
            for language in languages.LANGUAGES.values()
            if language.compiler and (version := language.compiler.version())
        ]
        return hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()

    def _examine(self, task: Task, *, is_confined: bool) -> Examination:
        """The examination of a task, made once."""
        name = self._examination_name(task)
        if name not in self._examined:
            file = self.cache / "examinations" / f"{name}.json"
            examination = remembered.read(file, Examination)
            if examination is None:
                examination = self._examination(task, is_confined)
                remembered.keep(file, examination)
            self._examined[name] = examination
        return self._examined[name]

    def _examination_name(self, task: Task) -> str:
        imported = tasks.imported.contents(task.source)
        words = [self.fingerprint, task.source, imported, codec.to_plain(_what_matters(task.policy))]
        return hashlib.sha256(json.dumps(words).encode()).hexdigest()

    def _examination(self, task: Task, is_confined: bool) -> Examination:
        policy = _what_matters(task.policy)
        examination = self._ask_examination(replace(task, policy=policy), is_confined)
        if examination.is_decided or policy.mode:
            return examination
        in_evaluation = self._ask_examination(replace(task, policy=replace(policy, mode="eval")), is_confined)
        mends = ["evaluation mode (--mode eval), in which it is decided"] if in_evaluation.is_decided else []
        mends += self._module_by_module(task, policy, is_confined) if examination.is_blurred else []
        return replace(examination, remedies=(*mends, *examination.remedies))

    def _module_by_module(self, task: Task, policy: Policy, is_confined: bool) -> Iterator[str]:
        """The least depth at which that decides it, as what mends it."""
        if policy.backward or policy.precision == "half" or policy.compare_modules:
            return
        for depth in DEPTHS:
            examination = self._ask_examination(
                replace(task, policy=replace(policy, compare_modules=depth)), is_confined
            )
            if examination.is_decided:
                yield f"comparison module by module (--compare-modules {depth}), by which it is decided"
                return

    def _ask_examination(self, task: Task, is_confined: bool) -> Examination:
        # On a GPU the reference's calls are work on the device.
        with nullcontext() if self.device == "cpu" else self._leased():
            examination: Examination = codec.from_plain(
                Examination, self._ask("examine", task, "", confined=is_confined)
            )
        return examination

    def _see_that_it_is_decided(self, task: Task) -> None:
        """Before a kernel is judged on a task.

        Raises:
            TaskError: none can be.
        """
        if not task.policy.is_judged_as_constructed and (refusal := self.examine(task).refusal):
            raise TaskError(refusal)

    def _compile(self, task: Task, source: str) -> CompileResult:
        result: CompileResult = codec.from_plain(CompileResult, self._ask("compile", task, source))
        return result

    def _with_timeline(self, act: Callable[[], Timed]) -> Timed:
        """The result, with where its time went."""
        self._spent.restart()
        if self._waited_s:
            self._spent.add_before(Part.LEASE, self._waited_s)
        result = act()
        return replace(result, timeline=self._spent.timeline())

    @contextmanager
    def _leased(self) -> Iterator[float]:
        """Alone on the device as far as Tilewright goes; yields the seconds waited for that."""
        with turns.hold(*self._locks, told=self.claim.waits) as waited_s:
            if not self._is_alone:
                self.claim.holds()
            self._spent.add(Part.LEASE, waited_s)
            began = time.monotonic()
            try:
                yield waited_s
            finally:
                self._spent.lease_s += time.monotonic() - began
                if not self._is_alone:
                    self.claim.lets_go()

    def _compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        """Compile all sources at once; one by one where building means to call the kernel."""
        if any(languages.of(source, task.language).compiler is not None for source in sources):
            return [self.compile(task, source) for source in sources]
        plain = self._ask("compile_all", task, "", details={"sources": list(sources)})
        return [codec.from_plain(CompileResult, result) for result in plain]

    def _check(self, task: Task, source: str) -> CheckResult:
        sizes = 1 + len(task.policy.other_sizes) + len(task.policy.workloads)
        plain = self._ask("check", task, source, limit_s=REQUEST_S * sizes)
        result: CheckResult = codec.from_plain(CheckResult, plain)
        return result

    def _time(self, task: Task, source: str) -> TimingResult | CheckResult:
        """In alternation with the reference; once more, in a fresh process, what is hard to believe.

        Several workloads are timed in turn and share the time there is.
        """
        return self._in_turn(task, functools.partial(self._believed, source=source), self._times.timing_s)

    def _believed(self, task: Task, timing_s: float, source: str) -> TimingResult | CheckResult:
        first = self._undisturbed_timing(lambda: self._time_once(task, source, timing_s))
        if isinstance(first, CheckResult) or first.untrusted:
            return first
        limit = self._known_limit(task)
        if first.latency_ms < limit.limit_ms:  # the machine may have been busy when it was measured
            limit = self._limit(task, again=True)
        bounds = Bounds(task.policy, limit)
        if not (reason := bounds.reason(first)):
            return timing_checks.unsuspicious(first, bounds)
        return timing_checks.settled(first, self._time_once(task, source, timing_s), bounds, reason)

    def _undisturbed_timing(self, once: Callable[[], TimingResult | CheckResult]) -> TimingResult | CheckResult:
        """Again in fresh processes while others take the processors, and then all of that together."""
        sessions: list[TimingResult] = []
        most = SESSIONS if self._times.timing_s >= REPEATED_S else 1
        while len(sessions) < most and (not sessions or timing_checks.is_disturbed(sessions[-1])):
            timed = once()
            if isinstance(timed, CheckResult):
                return timed
            sessions.append(timed)
        return timing_checks.of_sessions(sessions)

    def _time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        """One session with few pairs, believed as it is."""
        brief_s = min(BRIEF_S, self._times.timing_s)
        return self._in_turn(task, lambda sized_task, share_s: self._time_once(sized_task, source, share_s), brief_s)

    def _in_turn(
        self, task: Task, time: Callable[[Task, float], TimingResult | CheckResult], timing_s: float
    ) -> TimingResult | CheckResult:
        """One workload after the other, and the first that fails ends it."""
        if not task.policy.workloads:
            return time(task, timing_s)
        workloads = list[TimedWorkload]()
        share_s = max(timing_s / len(task.policy.workloads), min(SHARE_S, timing_s))
        for sizes, sized_task in tasks.workloads.each(task):
            timed = time(sized_task, share_s)
            if isinstance(timed, CheckResult):
                return replace(timed, message=f"with {tasks.workloads.named(sizes)}: {timed.message}")
            workloads.append(TimedWorkload(sizes, timed))
        return tasks.workloads.together(workloads)

    def _baseline(self, request: Baseline) -> TimingResult:
        """The first call compiles."""
        task = request.task
        if request.how and os.environ.get(SWITCH) == "off":
            raise BaselineUnavailable(f"switched off by {SWITCH}")
        if task.policy.compare_modules:
            raise BaselineUnavailable(NO_MODULES)
        if request.how == Instead.GRAPH and (self.device == "cpu" or task.policy.backward):
            raise BaselineUnavailable("a graph of both passes is not timed" if task.policy.backward else "needs a GPU")
        if request.how == Instead.SCALED and task.policy.backward:
            raise BaselineUnavailable("torch._scaled_mm has no backward pass")
        timing = self._with_timeline(
            lambda: self._in_turn(task, functools.partial(self._instead, request), self._times.timing_s)
        )
        if isinstance(timing, CheckResult):
            raise BaselineUnavailable(_why_not(request.how, timing))
        if timing.untrusted:
            raise BaselineUnavailable(timing.untrusted)
        return timing

    def _instead(self, request: Baseline, task: Task, timing_s: float) -> TimingResult | CheckResult:
        times = replace(self._times, call_s=self._times.reference_s, timing_s=timing_s)
        limits = replace(self._limits, address_space=AMPLE, tree_memory=AMPLE)
        # It is the library's own work that is timed here.
        free = replace(task, policy=replace(task.policy, library_operators=(EVERYTHING,)), language="")
        self._see_that_it_is_decided(free)
        source = baseline_source(task, request.how) if request.how else request.source

        def once() -> TimingResult | CheckResult:
            with self._leased():
                reply = self._ask(
                    "time", free, source, times=asdict(times), limits=asdict(limits), details={"imports_freely": True}
                )
                return _timed(reply)

        return self._undisturbed_timing(once)

    def _compiler_source(self, task: Task) -> str:
        """What torch.compile writes for the task, in a process that has run no candidate."""
        with self._leased():
            reply = self._ask("compiler_source", task, "", limit_s=HINT_S)
        if not reply.get("source"):
            raise BaselineUnavailable(str(reply.get("failure") or "the compiler wrote no kernel"))
        return str(reply["source"])

    def _compiled_start(self, task: Task) -> CompiledStart:
        """What torch.compile writes for the task, with a candidate out of it, at all sizes of the task."""
        if task.policy.compare_modules:
            raise BaselineUnavailable(NO_MODULES)
        with self._leased():
            reply = self._ask("compiler_source", task, "", limit_s=HINT_S, details={"as_start": True})
        if "source" not in reply:
            raise BaselineUnavailable(str(reply.get("failure") or "the compiler wrote no kernel"))
        return CompiledStart(str(reply["source"]), str(reply.get("kernel", "")), str(reply.get("no_start", "")))

    def _undisturbed(self, task: Task, source: str, timed_ms: float | None) -> ProfileResult:
        """What was disturbed once more, and then it says so."""
        result = self._profile(task, source, timed_ms)
        return self._profile(task, source, timed_ms) if result.disturbance else result

    def _deploy(self, task: Task, source: str) -> Deployment:
        """On a GPU its calls are work on the device."""
        with nullcontext() if self.device == "cpu" else self._leased():
            seen: Deployment = codec.from_plain(Deployment, self._ask("deploy", task, source))
        return seen

    @abstractmethod
    def _profile(self, task: Task, source: str, timed_ms: float | None) -> ProfileResult:
        """Profile a kernel once; `timed_ms` is what it was timed at, where it was."""

    def start(self) -> None:
        """Have the server ready that forks the processes of each request; it uses no device.

        Raises:
            ToolchainError: it does not start.
        """
        with self._turn:
            self._evaluator.start()

    def begin(self) -> None:
        """Have that server started without waiting until it is ready."""
        with self._turn:
            self._evaluator.begin()

    def close(self) -> None:
        """End every child process and remove what they left; a request in flight in another thread fails at once."""
        self._evaluator.interrupt()
        with self._turn:
            self._evaluator.close()
            # An evaluator that was killed in the middle of a request could not tidy up after itself.
            for folder in (self._scratch,) if self._own_scratch else self._scratch.glob(f"{REQUEST_FOLDER}*"):
                shutil.rmtree(folder, ignore_errors=True)
            if self._hold is not None:
                os.close(self._hold)
                self._hold = None

    def _time_once(self, task: Task, source: str, timing_s: float) -> TimingResult | CheckResult:
        """One session, alone on the device as far as Tilewright goes."""
        self._see_that_it_is_decided(task)
        before_s = self._spent.parts.get(Part.LEASE, 0.0)
        timing = _timed(self._session(task, source, asdict(replace(self._times, timing_s=timing_s))))
        timing = replace(timing, rules=task.policy.rules)
        if isinstance(timing, CheckResult):
            return timing
        waited_s = self._spent.parts.get(Part.LEASE, 0.0) - before_s
        return replace(timing, evidence={**timing.evidence, "lease wait": f"{waited_s:.2f} s"})

    @abstractmethod
    def _session(self, task: Task, source: str, times: Mapping[str, object]) -> Any:
        """The evaluator's answer to a timing, with the device leased while calls are timed at least."""

    def _known_limit(self, task: Task) -> HardwareLimit:
        return self._known_limits.get((task.source, task.policy.measured)) or self._limit(task, again=False)

    def _ask(
        self,
        act: str,
        task: Task,
        source: str,
        *,
        limit_s: float = REQUEST_S,
        turn: Turn = nullcontext,
        **changed: object,
    ) -> Any:
        """`turn` is entered when the evaluator needs the device, and left when it has answered."""
        request = {
            "act": act,
            "device": self.device,
            "device_files": self.device_files,
            "variables": dict(self.variables),
            "task_source": task.source,
            "policy": codec.to_plain(task.policy),
            "language": task.language,
            "source": source,
            "installation": asdict(self.installation),
            "cache": str(self.cache),
            "scratch": str(self._scratch),
            "times": asdict(self._times),
            "limits": asdict(self._limits),
            "examined": codec.to_plain(self._examined.get(self._examination_name(task))) if act in CALLING else None,
            **changed,
        }
        with self._turn:
            self._scratch.mkdir(parents=True, exist_ok=True)
            return self._evaluator.ask(request, limit_s, turn)


def _sweep(folder: Path) -> None:
    """Remove work spaces of killed processes, whose locks are free. One made a moment ago may not be held yet."""
    for lock in folder.glob(f"{SCRATCH}*/lock"):
        with suppress(OSError):
            status = lock.stat()
            is_left = status.st_uid == os.getuid() and time.time() - status.st_mtime > YOUNG_S
            if is_left and not locks.is_file_held(lock):
                shutil.rmtree(lock.parent, ignore_errors=True)


def _what_matters(policy: Policy) -> Policy:
    """Of a policy what an examination depends on."""
    return Policy(
        precision=policy.precision, dtype=policy.dtype, backward=policy.backward, mode=policy.mode,
        weights=policy.weights, draws=policy.draws, rules=policy.rules, compare_modules=policy.compare_modules,
    )  # fmt: skip


def _timed(plain: Mapping[str, Any]) -> TimingResult | CheckResult:
    if "verdict" in plain:
        failed: CheckResult = codec.from_plain(CheckResult, plain)
        return failed
    timing: TimingResult = codec.from_plain(TimingResult, plain)
    return timing


@functools.cache
def _evaluator_code() -> str:
    """The hash of the code that judges: what an older version let through must be judged again."""
    code = hashlib.sha256()
    for folder in EVALUATOR_FOLDERS:
        for path in sorted((ENGINE / folder).rglob("*.py")):
            code.update(path.read_bytes())
    return code.hexdigest()


def called(needs: Mapping[str, Any]) -> tuple[CalledOperator, ...]:
    """What one call of a reference runs, as `describe` tells it."""
    return tuple(CalledOperator(str(name), int(calls), int(size)) for name, calls, size in needs["operators"])


def _why_not(how: str, failed: CheckResult) -> str:
    """Why what one would run instead has no timing: a product in FP8 may be too inexact for the task."""
    if how == Instead.SCALED and NO_SCALED_PRODUCT in failed.message:
        return NO_SCALED_PRODUCT
    if how == Instead.SCALED and failed.verdict is Verdict.INCORRECT:
        return f"not comparable, it is further off than the task allows: {failed.message}"
    return failed.message


def laid_out(needs: Mapping[str, Any]) -> tuple[LaidOut, ...]:
    """Weights of a reference that lie in another order than the usual one, as `describe` tells them."""
    return tuple(LaidOut(str(name), tuple(shape), tuple(stride)) for name, shape, stride in needs["laid_out"])


def baseline_source(task: Task, how: str) -> str:
    """A module whose ModelNew is the task's Model as a baseline has it; it compiles at its first call."""
    is_half = task.policy.precision == "half"
    return f"{task.source.rstrip()}\n\nimport torch\n{_TAIL}{_INSTEAD.format(how=str(how), is_half=is_half)}"
