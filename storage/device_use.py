"""What the devices of this host do, in files that engines write and everybody reads. Knows no driver and no toolchain.

Under TILEWRIGHT_HOME in `pool/`: `devices/` what was found here, `claims/` evaluations at work or waiting, each with a
lock that its process holds, so that what a killed one leaves behind counts for nothing; `uses-*.jsonl` what ended, by
hours. All of it can be deleted. Nothing is decided by it but which device a new run settles on; leases decide the rest.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from storage import codec, files, locks
from storage.home import home

HOUR_S = 3600.0
KEPT_HOURS = 24
DEVICE = "device id"  # in the evidence of a result: where it was taken, where there is more than one such place
VERSIONS = "versions"  # beside it: of torch, and of a GPU's driver and compiler
_numbers = itertools.count()


WORDS = {
    "limit": "measuring the limit", "compile": "building", "compile_all": "building variants", "check": "checking",
    "time": "timing", "time_briefly": "timing a variant", "compiled_baseline": "timing torch.compile",
    "compiler_source": "asking torch.compile", "compiled_start": "asking torch.compile for a kernel",
    "profile": "profiling",
}  # fmt: skip


class Stage(StrEnum):
    """Where an evaluation stands."""

    BESIDE = "beside"
    """At work on what needs no device."""
    WAITING = "waiting"
    HOLDING = "holding"
    SETTLED = "settled"
    """A run's timings are taken on the device; nothing is at work."""


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """A device as it was found; `out` says why it was taken out, empty for one that is used. Times in epoch seconds.
    `host` is empty for this one."""

    device: str
    model: str
    memory_mib: int = 0
    driver: str = ""
    seen_at: float = 0.0
    out: str = ""
    out_since: float = 0.0
    host: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """How one stands in the line for a device since `since`: the run or suite has had it for `used_s` seconds and goes
    by `position`, the least first; before all of those who go by it comes what a person waits for (`is_now`). Of a
    suite's runs, which have one position, the one comes first that has least of its search `done`, 0 to 1, then the one
    that has had devices for the smallest part of its life: for `held_s` seconds since `began`."""

    is_now: bool = False
    weight: float = 1.0
    used_s: float = 0.0
    position: float = 0.0
    done: float = 0.0
    since: float = 0.0
    began: float = 0.0
    held_s: float = 0.0

    def part(self, now: float) -> float:
        """Of its life until `now`, that with a device."""
        return self.held_s / max(now - self.began, 1.0)

    def rank(self, now: float) -> tuple[bool, float, float, float, float]:
        """Sorts a line: the first is next. Places that are compared need one `now`: lives grow, and of two that are
        alike each would find the other's part, looked at later, the smaller one."""
        return not self.is_now, self.position, self.done, self.part(now), self.since

    @property
    def words(self) -> str:
        """Why it stands there, for people."""
        had = f"weight {self.weight:g}, {self.used_s:.0f} s of the device so far"
        if self.done or self.held_s:
            had += f", {self.done:.0%} of its search done, a device for {self.part(time.time()):.0%} of its time"
        return f"first, a person waits for it; {had}" if self.is_now else had


@dataclass(frozen=True, slots=True)
class Claimed:
    """An evaluation: `act` of the run `run_id` in its `step`, both empty outside a run. `device` is empty while it may
    be any. `since` is when its stage began. `place` is that of one that waits, `task` that of a run that settled."""

    act: str
    run_id: str = ""
    step: int = 0
    device: str = ""
    stage: Stage = Stage.BESIDE
    since: float = 0.0
    place: Place | None = None
    task: str = ""

    @property
    def words(self) -> str:
        """What is done, for people."""
        return WORDS.get(self.act, self.act.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Use:
    """A device was held from `began` to `ended`, after `waited_s`."""

    device: str
    act: str
    run_id: str
    step: int
    began: float
    ended: float
    waited_s: float = 0.0


def folder() -> Path:
    """Where all of it lies."""
    return home() / "pool"


class Claim:
    """One evaluation's line for others to read. A disk that cannot be written stops no evaluation."""

    def __init__(self, claimed: Claimed, file: int | None, path: Path | None) -> None:
        self.claimed, self._file, self._path = claimed, file, path
        self._asked_at = 0.0

    def on(self, device: str) -> None:
        """Which device it is about from now on."""
        self.claimed = replace(self.claimed, device=device)

    def waits(self, place: Place | None = None) -> None:
        """It waits for its device, or for any; asked again, it stands elsewhere in line."""
        place = place or Place(since=time.time())
        self.claimed = replace(self.claimed, place=place)
        self._asked_at = place.since
        self.tell(Stage.WAITING)

    def holds(self) -> None:
        """It has its device."""
        self.tell(Stage.HOLDING)

    def lets_go(self) -> None:
        """It goes on without the device."""
        was = self.claimed
        self.tell(Stage.BESIDE)
        if was.stage is Stage.HOLDING and self._file is not None:
            waited_s = max(0.0, was.since - self._asked_at) if self._asked_at else 0.0
            self._asked_at = 0.0
            _keep(Use(was.device, was.act, was.run_id, was.step, was.since, time.time(), waited_s))

    def settles(self, device: str) -> None:
        """A run's timings are taken there from now on."""
        self.on(device)
        self.tell(Stage.SETTLED)

    def end(self) -> None:
        """Nothing is claimed any more."""
        if self._file is not None:
            if self._path is not None:
                self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = None

    def tell(self, stage: Stage) -> None:
        """Where it stands from now on, for others to read."""
        place = self.claimed.place if stage is Stage.WAITING else None
        self.claimed = replace(self.claimed, stage=stage, since=time.time(), place=place)
        if self._file is not None:
            line = codec.dumps(self.claimed).encode()
            with suppress(OSError):
                os.pwrite(self._file, line.ljust(LINE - 1) + b"\n", 0)  # one write of one length: never read in halves


LINE = 1024
UNSEEN = Claim(Claimed(""), None, None)


def claim(act: str, run_id: str = "", step: int = 0, device: str = "", task: str = "") -> Claim:
    """Begin a claim; `end` must follow."""
    claimed = Claimed(act, run_id, step, device, task=task)
    try:
        place = folder() / "claims"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{os.getpid()}-{next(_numbers)}"
        file = locks.hold_file(path)
    except (OSError, locks.AlreadyRunningError):
        return Claim(claimed, None, None)
    made = Claim(claimed, file, path)
    made.tell(Stage.BESIDE)
    return made


@contextmanager
def claimed(act: str, run_id: str = "", step: int = 0, device: str = "") -> Iterator[Claim]:
    """A claim for as long as the block lasts."""
    made = claim(act, run_id, step, device)
    try:
        yield made
    finally:
        if made.claimed.stage is Stage.HOLDING:
            made.lets_go()
        made.end()


def claims() -> list[Claimed]:
    """Those of living processes, the oldest first; what others left is removed."""
    found = []
    for path in sorted((folder() / "claims").glob("*")):
        with suppress(OSError, ValueError):
            if locks.is_file_held(path):
                found.append(codec.read_line(Claimed, path.read_bytes()))
            elif time.time() - path.stat().st_mtime > LEFT_S:
                path.unlink()
    return sorted(found, key=lambda one: one.since)


LEFT_S = 60.0  # a file that was made and is not locked yet is younger


def found_here(device: KnownDevice) -> None:
    """Keep what is known of a device, for those who cannot ask the driver."""
    with suppress(OSError):
        place = folder() / "devices"
        place.mkdir(parents=True, exist_ok=True)
        files.replace(place / f"{device.device}.json", codec.dumps(replace(device, seen_at=time.time())))


def take_out(device: KnownDevice, why: str) -> None:
    """Keep everybody from a device, until an engine that starts finds it well again."""
    found_here(replace(device, out=why, out_since=time.time()))


def devices() -> list[KnownDevice]:
    """Every device that an engine has found on this host, by name."""
    known = []
    for path in sorted((folder() / "devices").glob("*.json")):
        with suppress(OSError, ValueError):
            known.append(codec.read_line(KnownDevice, path.read_bytes()))
    return known


def uses(since: float, until: float) -> list[Use]:
    """What ended after `since` and before `until`, in the order it ended."""
    known = []
    for path, hour in _hour_files():
        if not since // HOUR_S <= hour <= until // HOUR_S:
            continue
        with suppress(OSError):
            for line in path.read_bytes().splitlines():
                with suppress(ValueError):
                    known.append(codec.read_line(Use, line))
    return sorted((one for one in known if since < one.ended <= until), key=lambda one: one.ended)


def _keep(use: Use) -> None:
    hour = int(use.ended // HOUR_S)
    with suppress(OSError):
        is_new = not _hour_file(hour).exists()
        with files.Lines(_hour_file(hour)) as file:
            file.append([codec.dumps(use)], is_durable=False)
        for old, its_hour in _hour_files() if is_new else ():
            if its_hour <= hour - KEPT_HOURS:
                old.unlink(missing_ok=True)


def _hour_files() -> list[tuple[Path, int]]:
    found = [(path, path.stem.removeprefix("uses-")) for path in folder().glob("uses-*.jsonl")]
    return [(path, int(hour)) for path, hour in found if hour.isdecimal()]


def _hour_file(hour: int) -> Path:
    return folder() / f"uses-{hour}.jsonl"


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """A device and what became of it in the last hour: `busy` is the share of the time that it was held, `acts` how
    often, `waited_s` the mean wait for it. `now` holds it, `queue` waits for it, the next first; `runs` at work have
    settled there, hold it or wait for it.
    """

    known: KnownDevice
    busy: float = 0.0
    acts: int = 0
    waited_s: float = 0.0
    now: tuple[Claimed, ...] = ()
    queue: tuple[Claimed, ...] = ()
    runs: int = 0


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """Every device; evaluations that wait for any; and those at work on what needs no device."""

    devices: tuple[DeviceStanding, ...] = ()
    queue: tuple[Claimed, ...] = ()
    beside: tuple[Claimed, ...] = ()
    at: float = field(default_factory=time.time)


def standing(now: float | None = None) -> PoolStanding:
    """What all devices of this host do."""
    at = time.time() if now is None else now
    since, at_work, ended, found = at - HOUR_S, claims(), uses(at - HOUR_S, at), devices()
    names = {one.device for one in found}
    in_use = {one.device for one in at_work} | {one.device for one in ended}

    def of(known: KnownDevice) -> DeviceStanding:
        own = [one for one in at_work if one.device == known.device]
        used = [one for one in ended if one.device == known.device]
        holding = tuple(one for one in own if one.stage is Stage.HOLDING)
        held_s = sum(one.ended - max(one.began, since) for one in used)
        held_s += sum(max(0.0, at - max(one.since, since)) for one in holding)
        return DeviceStanding(
            known, min(1.0, held_s / HOUR_S), len(used),
            sum(one.waited_s for one in used) / len(used) if used else 0.0, holding,
            _line(one for one in own if one.stage is Stage.WAITING),
            len({one.run_id for one in own if one.run_id and one.stage is not Stage.BESIDE}),
        )  # fmt: skip

    return PoolStanding(
        tuple(of(one) for one in found if not one.host or one.device in in_use or one.seen_at > since),
        _line(one for one in at_work if one.stage is Stage.WAITING and one.device not in names),
        tuple(one for one in at_work if one.stage is Stage.BESIDE), at,
    )  # fmt: skip


def _line(waiting: Iterable[Claimed]) -> tuple[Claimed, ...]:
    now = time.time()
    return tuple(sorted(waiting, key=lambda one: (one.place or Place(since=one.since)).rank(now)))
