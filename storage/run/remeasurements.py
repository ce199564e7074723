"""Two kernels timed again, one after the other on this machine: what was asked, how far it is, what came of it.

One folder each under the home: request.json, fixed at start, and progress.json, replaced as a whole.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from storage import codec, files
from storage.home import home
from storage.results.evaluation_results import median_ranks
from storage.run import liveness
from storage.run.folder import RUN_ID, RunFolder

ROUNDS = 6
"""So many that the lowest and the highest ratio hold the median with 95 % confidence."""


STARTING_S = 20.0


class RemeasureState(StrEnum):
    """How far it is. LOST is never written: it is what a free lock without an end means."""

    STARTING = "starting"
    BUILDING = "building and checking"
    WAITING = "waiting for the machine"
    MEASURING = "measuring"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_finished(self) -> bool:
        """True when nothing more will come."""
        return self in (RemeasureState.DONE, RemeasureState.FAILED, RemeasureState.LOST)


@dataclass(frozen=True, slots=True)
class KernelName:
    """One kernel and what its run had measured: its speed-up over eager with the relative noise."""

    run_id: str
    candidate_id: str
    number: int
    speedup: float
    noise: float


@dataclass(frozen=True, slots=True)
class RemeasureRequest:
    """What was asked for."""

    remeasure_id: str
    task_name: str
    toolchain: str
    first: KernelName
    second: KernelName
    rounds: int
    asked_by: str
    asked_at: float


@dataclass(frozen=True, slots=True)
class Round:
    """One session of each kernel, one right after the other: speed-ups over eager and median latencies."""

    first_speedup: float
    second_speedup: float
    first_ms: float
    second_ms: float

    @property
    def ratio(self) -> float:
        """How fast the first is over the second; the baseline cancels out."""
        return self.first_speedup / self.second_speedup


@dataclass(frozen=True, slots=True)
class Ratio:
    """How fast the first kernel is over the second: the median of the rounds with its interval.

    Of too few rounds, the lowest and the highest are no interval of 95 %: `is_sound` is False then.
    """

    value: float
    low: float
    high: float
    rounds: int

    @property
    def is_sound(self) -> bool:
        """True when the interval holds the median with 95 % confidence."""
        return self.rounds >= ROUNDS

    @property
    def is_difference(self) -> bool:
        """False when the interval holds 1: none that could be told from noise."""
        return not self.low <= 1.0 <= self.high


@dataclass(frozen=True, slots=True)
class RemeasureProgress:
    """How far it is. `message` says what went wrong, or what is done now."""

    state: RemeasureState
    at: float
    rounds: tuple[Round, ...] = ()
    message: str = ""

    @property
    def ratio(self) -> Ratio | None:
        """None before the first round."""
        if not self.rounds:
            return None
        ratios = sorted(round_.ratio for round_ in self.rounds)
        low, high = median_ranks(len(ratios))
        return Ratio(statistics.median(ratios), ratios[low], ratios[high], len(ratios))


@dataclass(frozen=True, slots=True)
class Remeasurement:
    """One re-measurement as it stands."""

    request: RemeasureRequest
    progress: RemeasureProgress


def folder_of(remeasure_id: str) -> RunFolder:
    """Where one is kept; it has a lock, a log and work space as a run's folder has."""
    return RunFolder(home() / "remeasurements" / remeasure_id)


def create(request: RemeasureRequest) -> RunFolder:
    """Make the folder of a remeasurement, with its request and its first state."""
    folder = folder_of(request.remeasure_id)
    files.make_folder(folder.path)
    _write(folder.path / "request.json", codec.to_plain(request))
    tell(folder, RemeasureProgress(RemeasureState.STARTING, request.asked_at))
    return folder


def tell(folder: RunFolder, progress: RemeasureProgress) -> None:
    """Say how far it is."""
    _write(folder.path / "progress.json", codec.to_plain(progress))


def read(remeasure_id: str) -> Remeasurement:
    """One re-measurement; LOST when its process is gone before the end.

    Raises:
        FileNotFoundError: there is none of that id.
        codec.DecodeError: its files are damaged.
    """
    if not RUN_ID.fullmatch(remeasure_id):
        raise FileNotFoundError(f"no re-measurement {remeasure_id!r}")
    folder = folder_of(remeasure_id)
    is_alive = liveness.is_held(folder)  # asked first: an end that comes meanwhile is then read, not missed
    request = codec.from_plain(RemeasureRequest, _plain(folder.path / "request.json"))
    progress = codec.from_plain(RemeasureProgress, _plain(folder.path / "progress.json"))
    is_begun = progress.state is not RemeasureState.STARTING or time.time() - progress.at > STARTING_S
    is_gone = not is_alive and not progress.state.is_finished and is_begun
    return Remeasurement(request, replace(progress, state=RemeasureState.LOST) if is_gone else progress)


def newest(limit: int = 50) -> Iterator[Remeasurement]:
    """The last ones asked for, newest first; a damaged one is left out."""
    root = home() / "remeasurements"
    names = sorted((path.name for path in root.iterdir() if path.is_dir()), reverse=True) if root.is_dir() else []
    for name in names[:limit]:
        try:
            yield read(name)
        except (FileNotFoundError, codec.DecodeError):
            continue


def concerning(run_ids: Collection[str]) -> list[Remeasurement]:
    """The newest remeasurements whose two kernels are of these runs."""
    return [
        remeasurement
        for remeasurement in newest()
        if {remeasurement.request.first.run_id, remeasurement.request.second.run_id} <= set(run_ids)
    ]


def _write(path: Path, plain: object) -> None:
    files.replace(path, json.dumps(plain, ensure_ascii=False))


def _plain(path: Path) -> object:
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise codec.DecodeError(f"{path}: {error}") from error
