"""What the evaluator is asked: one message a question, which knows its answer's type. Whoever answers has one method,
`evaluate`: the toolchains do the work; a cache, a pool of devices and a cluster pass the message on.

A message holds values and texts alone, no path of this host, so that any host can answer it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from engine.evaluator.machine import lease
from engine.evaluator.tasks import Task
from storage import codec
from storage.results.baselines import Instead
from storage.results.deployment import Deployment
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CompiledStart:
    """What torch.compile writes for a task: a text to show, and a candidate made of it, or why there is none: the end
    of a sentence about what it writes."""

    shown: str
    kernel: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Request(Generic[Result]):
    """A question about a task. `act` names it in files and to people (`storage.device_use.WORDS`), `answer` is the type
    of its result. What `is_measuring` is compared with other figures of the run, and therefore taken where they were.
    """

    task: Task
    act: ClassVar[str]
    answer: ClassVar[Any]
    is_measuring: ClassVar[bool] = False

    @property
    def sources(self) -> tuple[str, ...]:
        """The candidates that it is about."""
        return ()

    @classmethod
    def read(cls, plain: Any) -> Any:
        """A result out of what `codec.to_plain` makes of it."""
        return plain if cls.answer is str else codec.from_plain(cls.answer, plain)


@dataclass(frozen=True, slots=True)
class _OfOneCandidate(Request[Result]):
    source: str

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,)


@dataclass(frozen=True, slots=True)
class Examine(Request[Examination]):
    """Whether kernels can be judged on the task. Before a run is started the reference runs in the sandbox that kernels
    run in, and nowhere else (`is_confined`)."""

    is_confined: bool = False
    act, answer = "examine", Examination


@dataclass(frozen=True, slots=True)
class Limit(Request[HardwareLimit]):
    """What the hardware can do, and what the task needs at least."""

    act, answer, is_measuring = "limit", HardwareLimit, True


@dataclass(frozen=True, slots=True)
class Compile(_OfOneCandidate[CompileResult]):
    """Screen the text, build it and import the module."""

    act, answer = "compile", CompileResult


@dataclass(frozen=True, slots=True)
class CompileAll(Request[list[CompileResult]]):
    """Compile several candidates at once, as many compilers as candidates."""

    candidates: tuple[str, ...]
    act, answer = "compile_all", list[CompileResult]

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all candidates."""
        return self.candidates


@dataclass(frozen=True, slots=True)
class Check(_OfOneCandidate[CheckResult]):
    """Compare with the float64 reference."""

    act, answer = "check", CheckResult


@dataclass(frozen=True, slots=True)
class Time(_OfOneCandidate[TimingResult | CheckResult]):
    """Time candidate and reference in alternation; what turns out wrong gives a CheckResult."""

    act, answer, is_measuring = "time", TimingResult, True

    @classmethod
    def read(cls, plain: Any) -> Any:
        """The result as that of the two kinds that it is."""
        return codec.from_plain(CheckResult if "verdict" in plain else TimingResult, plain)


@dataclass(frozen=True, slots=True)
class TimeAgain(Time):
    """Time a kernel that was timed before, whatever is remembered of it."""

    act = "time_again"


@dataclass(frozen=True, slots=True)
class TimeBriefly(Time):
    """Time a kernel in a fraction of the time: to choose what is worth a timing."""

    act = "time_briefly"


@dataclass(frozen=True, slots=True)
class Baseline(Request[TimingResult]):
    """Time what a user would run instead, in the candidate's place: by `how`, one of storage.results.baselines.Instead,
    or a person's own `source`, which defines ModelNew."""

    how: str = ""
    source: str = ""
    act, answer, is_measuring = "baseline", TimingResult, True

    @property
    def sources(self) -> tuple[str, ...]:
        """A person's own."""
        return (self.source,) if self.source else ()


@dataclass(frozen=True, slots=True)
class BaselineAgain(Baseline):
    """Time it once more, whatever is remembered of it."""

    act = "baseline_again"


@dataclass(frozen=True, slots=True)
class CompilerSource(Request[str]):
    """The kernels that torch.compile writes for the task, as text."""

    act, answer = "compiler_source", str


@dataclass(frozen=True, slots=True)
class StartFromCompiler(Request[CompiledStart]):
    """The compiler's text, with a candidate made of the kernels."""

    act, answer = "compiled_start", CompiledStart


@dataclass(frozen=True, slots=True)
class Profile(_OfOneCandidate[ProfileResult]):
    """Profile a candidate that passed. Its timing says how long a call takes that nothing disturbs."""

    timed: TimingResult | None = None
    act, answer, is_measuring = "profile", ProfileResult, True


@dataclass(frozen=True, slots=True)
class Deploy(_OfOneCandidate[Deployment]):
    """What is told of a kernel's deployment: capture in a CUDA graph, the stream, memory of a call."""

    act, answer = "deploy", Deployment


KINDS: dict[str, type[Request[Any]]] = {
    kind.act: kind
    for kind in (
        Examine, Limit, Compile, CompileAll, Check, Time, TimeAgain, TimeBriefly, Baseline, BaselineAgain,
        CompilerSource, StartFromCompiler, Profile, Deploy,
    )
}  # fmt: skip


class Evaluator(ABC):
    """Whoever answers. Each question may start child processes that die with the caller.

    `source` is a whole candidate file: a Python module in the KernelBench convention that defines ModelNew. A bad one
    is a result whatever it does, text that is no Python included. Raised are TaskError where the task's reference fails
    or kernels cannot be judged on it, and ToolchainError for what the machine or we ourselves got wrong; a machine that
    lacks something says so at the first request, not when it is made. One thread asks, one request at a time.
    """

    name: str

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Changes with whatever can change a result: versions, flags, machine, limits. Results are remembered by it."""

    @property
    @abstractmethod
    def lease_files(self) -> lease.Files:
        """What is locked while timing and profiling, one such job at a time; empty where nothing is shared."""

    @abstractmethod
    def evaluate(self, request: Request[Result]) -> Result:
        """The answer."""

    @abstractmethod
    def close(self) -> None:
        """End every child process and remove what they left; twice does no harm, and the next request begins anew.

        From another thread it ends the request in flight, which raises ToolchainError.
        """

    def examine(self, task: Task) -> Examination:
        """Whether kernels can be judged on a task at its sizes; asked first, and raised as a TaskError by what judges
        where they cannot."""
        return self.evaluate(Examine(task))

    def examine_confined(self, task: Task) -> Examination:
        """Examine a task before a run is started: the reference runs in the sandbox that kernels run in, and nowhere
        else."""
        return self.evaluate(Examine(task, is_confined=True))

    def limit(self, task: Task) -> HardwareLimit:
        """Measure what the hardware can do, and say what this task needs at least. Asked again, it is never lower."""
        return self.evaluate(Limit(task))

    def compile(self, task: Task, source: str) -> CompileResult:
        """Screen the text, build the candidate's extensions and import the module; the same text again is not built.

        It comes first: the other questions build what is not built, but screen nothing. Hand them only what compiled.
        """
        return self.evaluate(Compile(task, source))

    def compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        """Compile several sources at once, as many compilers as sources; the results in their order."""
        return self.evaluate(CompileAll(task, tuple(sources)))

    def check(self, task: Task, source: str) -> CheckResult:
        """Compare the candidate with the float64 reference over several seeds and value distributions.

        One that does not build has the verdict of its build.
        """
        return self.evaluate(Check(task, source))

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        """Time candidate and eager reference in alternation; one that turns out wrong or dies yields a CheckResult."""
        return self.evaluate(Time(task, source))

    def time_again(self, task: Task, source: str) -> TimingResult | CheckResult:
        """Time as `time` does, whatever is remembered of the kernel."""
        return self.evaluate(TimeAgain(task, source))

    def time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        """Time a kernel in a fraction of the time: to choose what is worth a timing, not to be told as one."""
        return self.evaluate(TimeBriefly(task, source))

    def baseline(self, task: Task, how: str = Instead.COMPILE, source: str = "") -> TimingResult:
        """Time what a user would run instead, in the candidate's place, against eager: as `how` says, or a person's own
        source that defines ModelNew.

        Raises:
            BaselineUnavailable: it cannot be compiled, is wrong, or is switched off.
        """
        return self.evaluate(Baseline(task, "" if source else how, source))

    def baseline_again(self, task: Task, how: str, source: str = "") -> TimingResult:
        """The same, timed once more."""
        return self.evaluate(BaselineAgain(task, "" if source else how, source))

    def compiler_source(self, task: Task) -> str:
        """The kernels that torch.compile writes for the task, as text to show to a model.

        Raises:
            BaselineUnavailable: it writes none.
            ToolchainError: it took too long, or was killed.
        """
        return self.evaluate(CompilerSource(task))

    def compiled_start(self, task: Task) -> CompiledStart:
        """The compiler's text, with a candidate made of the kernels where they are all there is to it.

        Raises:
            BaselineUnavailable: it writes none.
            ToolchainError: it took too long, or was killed.
        """
        return self.evaluate(StartFromCompiler(task))

    def profile(self, task: Task, source: str, timed: TimingResult | None = None) -> ProfileResult:
        """Profile a candidate that passed. Its timing says how long a call takes that nothing disturbs.

        Raises:
            ProfileUnavailable: none can be had of this kernel or on this machine; the run goes on without it.
        """
        return self.evaluate(Profile(task, source, timed))

    def deploy(self, task: Task, source: str) -> Deployment:
        """What is told of the deployment of a candidate that passed; no verdict depends on it."""
        return self.evaluate(Deploy(task, source))
