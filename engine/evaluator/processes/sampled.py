"""One side of a timing, sampled from outside in every call: where its processor time went. Judges by the tables of
`engine.evaluator.checks.processor_time` and knows no other check.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from engine.evaluator.checks.processor_time import LEAST, ProcessorTime, Reading
from engine.evaluator.machine import processes, samples
from engine.evaluator.machine.samples import NotPermitted, Region, Sampling, Taken

TIMED = "timed calls"
# Of the processor time that the kernel has counted, what must have been under the sampling's eyes.
COVERED, LEAST_NS = 0.5, 50_000_000


class Sampled:
    """Samples of one worker, begun before it has a second thread; none where the system permits none."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._sampling: Sampling | None = None
        self._kept: list[Taken] = []
        self._why = ""
        self._counted = ProcessorTime((), {})
        try:
            self._sampling = Sampling(pid)
        except NotPermitted as error:
            self._why = f"this host does not let processes be sampled from outside ({error})"

    def begin(self) -> None:
        """The timing begins."""
        if self._sampling is None:
            return
        try:
            self._counted.begin(samples.executable(self._pid))
        except OSError as error:
            self._why = f"its memory map cannot be read ({error.strerror})"
        self._began_ns, self._seen_ns = processes.total_ns(self._pid), self._sampling.seen_ns
        self._sampling.start()

    def drain(self) -> None:
        """While a long call is under way, or the buffers would be full."""
        if self._sampling is not None:
            self._kept.append(self._sampling.take())

    def take(self, began_ns: int, ended_ns: int) -> None:
        """The samples of a call that has ended."""
        if self._sampling is None:
            return
        for taken in (*self._kept, self._sampling.take()):
            self._counted.add(taken, began_ns, ended_ns)
        self._kept = []

    def reading(self, built_files: Iterable[Path], *, moves: bool) -> Reading:
        """What samples tell; `built_files` are of the candidate's build. `moves` says that moving data is the task."""
        if self._sampling is None:
            return Reading("", why=self._why)
        if why := self._why or self._uncovered(self._sampling):
            return Reading("", why=why, is_prevented=True)
        counted, system_files = self._counted, _known(self._counted)
        counted.own, counted.known, counted.moves = {samples.file_of(path) for path in built_files}, system_files, moves
        if why := counted.blind:
            return Reading("", why=why)
        try:
            judged = counted.judged(samples.altered(self._pid))
        except OSError as error:
            return Reading("", why=f"its memory map cannot be read ({error.strerror})", is_prevented=True)
        failure = judged.failure(TIMED) if judged.is_library else None
        few = f"only {judged.computed} samples fall into calls" if judged.computed < LEAST else ""
        return Reading(str(judged), failure, "" if failure else few)

    def _uncovered(self, sampling: Sampling) -> str:
        """Whether it worked where nobody looked, or let more samples be lost than were read."""
        used_ns, seen_ns = processes.total_ns(self._pid) - self._began_ns, sampling.seen_ns - self._seen_ns
        if used_ns > LEAST_NS and seen_ns < COVERED * used_ns:
            return f"{seen_ns / 1e9:.2f} s of its {used_ns / 1e9:.2f} s on processors could be seen"
        if self._counted.lost > max(LEAST, self._counted.taken):
            return f"{self._counted.lost} samples were lost and {self._counted.taken} read"
        return ""

    def close(self) -> None:
        """The end of it."""
        if self._sampling is not None:
            self._sampling.close()
            self._sampling = None


def _known(counted: ProcessorTime) -> dict[tuple[int, int, int], str]:
    """Files of this system by what the kernel calls them: those that this process runs itself, and those beside them
    that the worker names, if they are what is found here under that name."""
    system_files = {region.file: region.path for region in samples.executable(os.getpid())}
    folders = {Path(path).parent for path in system_files.values()}
    for region in counted.used:
        if region.file not in system_files and Path(region.path).parent in folders and _is_here(region):
            system_files[region.file] = region.path
    return system_files


def _is_here(region: Region) -> bool:
    try:
        return samples.file_of(region.path) == region.file
    except (OSError, ValueError):
        return False
