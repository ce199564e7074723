"""The seam between loop and machine: build, judge, time and profile one candidate. Knows no model and no run.

cpu.py, cuda.py, local.py       the two toolchains and what they share
cached.py                       a toolchain that remembers
complete.py                     all steps on one candidate in order
requirements.py                 whether this machine has what they need
"""

from __future__ import annotations

from typing import Protocol

from engine.tasks import Task
from storage.records import CheckResult, CompileResult, HardwareLimit, ProfileResult, TimingResult


class Toolchain(Protocol):
    """One way to turn candidate sources into verdicts. Every method may start child processes that die with the caller.

    A bad kernel is a result. Methods raise ToolchainError only for what the machine or we ourselves got wrong.
    `source` is the whole candidate file: a Python module in the KernelBench convention that defines ModelNew.
    """

    name: str

    def limit(self, task: Task) -> HardwareLimit:
        """Measure (once per machine, then kept) what the hardware can do, and what this task needs at least."""
        ...

    def compile(self, task: Task, source: str) -> CompileResult:
        """Build the candidate's extensions and import the module."""
        ...

    def check(self, task: Task, source: str) -> CheckResult:
        """Compare the candidate with the float64 reference over several seeds and value distributions."""
        ...

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        """Time candidate and eager reference in alternation; a candidate that fails here yields a CheckResult."""
        ...

    def compiled_baseline(self, task: Task) -> TimingResult:
        """Time the reference through torch.compile, in the candidate's place, against eager.

        Raises:
            BaselineUnavailable: it cannot be compiled or is wrong.
        """
        ...

    def profile(self, task: Task, source: str, timed: TimingResult | None = None) -> ProfileResult:
        """Profile a candidate that passed. Its timing says how long a call takes that nothing disturbs.

        Raises:
            ProfileUnavailable: no profile can be had; the run goes on without it.
        """
        ...

    def close(self) -> None:
        """End every child process."""
        ...
