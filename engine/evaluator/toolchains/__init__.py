"""The seam between loop and machine: build, judge, time and profile one candidate. Knows no model and no run.

cpu.py, cuda.py, local.py       the two toolchains and what they share
cached.py, remembered.py        a toolchain that remembers, and how records are kept
evaluating.py                   all stages on one candidate, as one answer
requirements.py                 whether this machine has what they need
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.evaluator.machine import lease
from engine.evaluator.tasks import Task
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.examination import Examination
from storage.results.hardware_limit import HardwareLimit
from storage.results.profile_results import ProfileResult


@dataclass(frozen=True, slots=True)
class CompiledStart:
    """What torch.compile writes for a task: a text to show, and a candidate made of it, or why there is none: the end
    of a sentence about what it writes."""

    shown: str
    kernel: str = ""
    reason: str = ""


class Toolchain(Protocol):
    """One way to turn candidate sources into verdicts. Every method may start child processes that die with the caller.

    `source` is the whole candidate file: a Python module in the KernelBench convention that defines ModelNew. A bad
    one is a result whatever it does, text that is no Python included. Methods raise TaskError where the task's
    reference fails, and ToolchainError for what the machine or we ourselves got wrong; a machine that lacks something
    says so at the first request, not when the toolchain is made. One thread asks, one request at a time.
    """

    name: str

    @property
    def fingerprint(self) -> str:
        """Changes with whatever can change a result: versions, flags, machine, limits. Results are remembered by it."""
        ...

    @property
    def lease_files(self) -> lease.Files:
        """What is locked while timing and profiling, one such job at a time; empty where nothing is shared."""
        ...

    def examine(self, task: Task) -> Examination:
        """Whether kernels can be judged on a task at its sizes; asked first, and raised as a TaskError by what judges
        where they cannot."""
        ...

    def examine_confined(self, task: Task) -> Examination:
        """The same before a run is started: the reference runs in the sandbox that kernels run in, and nowhere else."""
        ...

    def limit(self, task: Task) -> HardwareLimit:
        """Measure what the hardware can do, and say what this task needs at least. Asked again, it is never lower."""
        ...

    def compile(self, task: Task, source: str) -> CompileResult:
        """Screen the text, build the candidate's extensions and import the module; the same text again is not built.

        It comes first: the other methods build what is not built, but screen nothing. Hand them only what compiled.
        """
        ...

    def compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        """The same for several sources at once, as many compilers as sources; the results in their order."""
        ...

    def check(self, task: Task, source: str) -> CheckResult:
        """Compare the candidate with the float64 reference over several seeds and value distributions.

        One that does not build has the verdict of its build.
        """
        ...

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        """Time candidate and eager reference in alternation; one that turns out wrong or dies yields a CheckResult."""
        ...

    def time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        """The same in a fraction of the time: to choose what is worth a timing, not to be told as one."""
        ...

    def compiled_baseline(self, task: Task) -> TimingResult:
        """Time the reference through torch.compile, in the candidate's place, against eager.

        Raises:
            BaselineUnavailable: it cannot be compiled or is wrong.
        """
        ...

    def compiler_source(self, task: Task) -> str:
        """The kernels that torch.compile writes for the task, as text to show to a model.

        Raises:
            BaselineUnavailable: it writes none.
            ToolchainError: it took too long, or was killed.
        """
        ...

    def compiled_start(self, task: Task) -> CompiledStart:
        """The same text, with a candidate made of the kernels where they are all there is to it.

        Raises:
            BaselineUnavailable: it writes none.
            ToolchainError: it took too long, or was killed.
        """
        ...

    def profile(self, task: Task, source: str, timed: TimingResult | None = None) -> ProfileResult:
        """Profile a candidate that passed. Its timing says how long a call takes that nothing disturbs.

        Raises:
            ProfileUnavailable: none can be had of this kernel or on this machine; the run goes on without it.
        """
        ...

    def close(self) -> None:
        """End every child process and remove what they left; twice does no harm, and the next request begins anew.

        From another thread it ends the request in flight, which raises ToolchainError.
        """
        ...
