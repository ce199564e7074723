"""Times two kernels again, in sessions that take turns on this machine. Knows the toolchain only by its protocol.

A candidate is never timed against another one directly: the baseline's place is that of a process that is trusted. Each
kernel is timed against the same eager baseline instead, right after the other, and the baseline cancels out.
"""

from __future__ import annotations

import getpass
import os
import secrets
import time
from collections.abc import Callable, Sequence

from engine.errors import EngineError
from engine.evaluator.machine import turns
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from storage.results.evaluation_results import TimingResult
from storage.results.policy import as_of_now
from storage.results.vocabulary import Verdict
from storage.run import journal, remeasurements
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder, find_run
from storage.run.record import Candidate, Record
from storage.run.remeasurements import KernelName, RemeasureProgress, RemeasureRequest, RemeasureState, Round
from storage.run.settings import RunSettings

Kernel = tuple[str, str]


def request_of(first: Kernel, second: Kernel, rounds: int = remeasurements.ROUNDS) -> RemeasureRequest:
    """A request for two kernels, each a run and a kernel's number or id.

    Raises:
        FileNotFoundError: no such run.
        EngineError: a kernel is not there or not correct, both are one, or they solve different tasks.
    """
    (settings, kernel), (other, other_kernel) = _chosen(*first), _chosen(*second)
    if kernel == other_kernel:
        raise EngineError("both kernels are the same: choose two different ones")
    is_one_task = settings.task_name == other.task_name
    for what, a, b in (
        ("size or version of the task" if is_one_task else "task", settings.task_source, other.task_source),
        ("precision policy", as_of_now(settings.policy), as_of_now(other.policy)),
        ("toolchain", settings.toolchain, other.toolchain),
    ):
        if a != b:
            raise EngineError(
                f"these kernels have a different {what}, so they share no baseline: choose two of the same {what}"
            )
    if rounds < 1:
        raise EngineError("rounds must be at least 1")
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    return RemeasureRequest(
        name, settings.task_name, settings.toolchain, kernel, other_kernel, rounds, _user(), time.time()
    )


def _chosen(run_id: str, kernel: str) -> tuple[RunSettings, KernelName]:
    folder = find_run(run_id)
    record = _record(folder)
    named = {name: record.number(name) for name in record.candidates}
    candidate = next((record.candidates[name] for name, i in named.items() if kernel in (name, str(i))), None)
    if candidate is None:
        raise EngineError(f"run {run_id} has no kernel {kernel}")
    number = named[candidate.candidate_id]
    if candidate.verdict is not Verdict.PASSED or candidate.timed is None:
        raise EngineError(f"kernel {number} of run {run_id} has no correct timing: choose a correct, timed kernel")
    return record.settings, KernelName(
        run_id, candidate.candidate_id, number, candidate.timed.speedup, candidate.timed.noise
    )


def _record(folder: RunFolder) -> Record:
    return Record.of(folder.read_settings(), list(journal.read(folder.journal_file)))


def task_and_sources(request: RemeasureRequest) -> tuple[Task, tuple[str, str]]:
    """What is measured, read from the runs.

    Raises:
        EngineError: a run or a source is gone meanwhile.
    """
    try:
        folders = [find_run(kernel.run_id) for kernel in (request.first, request.second)]
        record = _record(folders[0])
        settings = record.settings
        fields = (settings.task_name, settings.task_source, settings.sizes, record.kernel_class)
        is_alike = folders[1].read_settings().policy == settings.policy
        # Both are judged again: by their own rules, or where those are two, by the ones that hold now.
        policy = settings.policy if is_alike else as_of_now(settings.policy)
        task = Task(*fields, policy=policy)  # two runs may have two languages: any
        return task, (_source(folders[0], request.first), _source(folders[1], request.second))
    except FileNotFoundError as error:
        raise EngineError(f"a kernel to measure is no longer there: {error}") from error


def _source(folder: RunFolder, kernel: KernelName) -> str:
    candidate: Candidate = _record(folder).candidates[kernel.candidate_id]
    return Blobs(folder.blobs).get(candidate.created.source_blob)


class Measuring:
    """One re-measurement at work. `listen` hears every change."""

    def __init__(
        self,
        request: RemeasureRequest,
        toolchain: Evaluator,
        listen: Callable[[RemeasureProgress], None],
    ) -> None:
        self._request, self._toolchain, self._listen = request, toolchain, listen
        self._rounds: tuple[Round, ...] = ()

    def run(self) -> RemeasureProgress:
        """Build and check both, then take turns; returns the last word."""
        try:
            task, sources = task_and_sources(self._request)
            failure = self._prepare(task, sources) or self._take_turns(task, sources)
        except EngineError as error:
            failure = str(error)
        return self._tell(RemeasureState.FAILED if failure else RemeasureState.DONE, failure)

    def _tell(self, state: RemeasureState, message: str = "") -> RemeasureProgress:
        progress = RemeasureProgress(state, time.time(), self._rounds, message)
        self._listen(progress)
        return progress

    def _names(self) -> list[str]:
        return [f"kernel {kernel.number}" for kernel in (self._request.first, self._request.second)]

    def _prepare(self, task: Task, sources: Sequence[str]) -> str:
        """Why one of them does not hold on this machine; empty when both do."""
        for name, source in zip(self._names(), sources, strict=True):
            self._tell(RemeasureState.BUILDING, name)
            built = self._toolchain.compile(task, source)
            if not built.is_ok:
                return f"{name} cannot be built here: {built.diagnostics}"
            checked = self._toolchain.check(task, source)
            if checked.verdict is not Verdict.PASSED:
                return f"{name} is not correct here: {checked.message}"
        return ""

    def _take_turns(self, task: Task, sources: Sequence[str]) -> str:
        for number in range(self._request.rounds):
            timed: dict[int, TimingResult] = {}
            for which in (0, 1) if number % 2 == 0 else (1, 0):  # drift of the machine must favour neither
                result = self._time(task, sources[which], number, which)
                if not isinstance(result, TimingResult):
                    return result
                timed[which] = result
            first, second = timed[0], timed[1]
            self._rounds += (Round(first.speedup, second.speedup, first.latency_ms, second.latency_ms),)
        return ""

    def _time(self, task: Task, source: str, number: int, which: int) -> TimingResult | str:
        name = self._names()[which]
        where = f"{name}, round {number + 1} of {self._request.rounds}"
        self._tell(RemeasureState.WAITING, where)
        # Only to say truly whether it waits: the toolchain takes the lease itself.
        with turns.hold(*self._toolchain.lease_files):
            pass
        self._tell(RemeasureState.MEASURING, where)
        result = self._toolchain.time(task, source)
        return result if isinstance(result, TimingResult) else f"{name} failed while it was timed: {result.message}"


def _user() -> str:
    try:
        return os.environ.get("USER") or getpass.getuser()
    except (OSError, KeyError):
        return "someone"
