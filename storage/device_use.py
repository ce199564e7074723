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
    "time": "timing", "time_again": "timing once more", "time_briefly": "timing a variant",
    "baseline": "timing a baseline", "baseline_again": "timing a baseline once more",
    "compiler_source": "asking torch.compile", "compiled_start": "asking torch.compile for a kernel",
    "profile": "profiling", "deploy": "looking at deployment",
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
        """The part of its life until `now` that it had a device."""
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
        claims_folder = folder() / "claims"
        claims_folder.mkdir(parents=True, exist_ok=True)
        path = claims_folder / f"{os.getpid()}-{next(_numbers)}"
        file = locks.hold_file(path)
    except (OSError, locks.AlreadyRunningError):
        return Claim(claimed, None, None)
    begun = Claim(claimed, file, path)
    begun.tell(Stage.BESIDE)
    return begun


@contextmanager
def claimed(act: str, run_id: str = "", step: int = 0, device: str = "") -> Iterator[Claim]:
    """A claim for as long as the block lasts."""
    begun = claim(act, run_id, step, device)
    try:
        yield begun
    finally:
        if begun.claimed.stage is Stage.HOLDING:
            begun.lets_go()
        begun.end()


def claims() -> list[Claimed]:
    """The claims of living processes, the oldest first; what others left is removed."""
    living = []
    for path in sorted((folder() / "claims").glob("*")):
        with suppress(OSError, ValueError):
            if locks.is_file_held(path):
                living.append(codec.read_line(Claimed, path.read_bytes()))
            elif time.time() - path.stat().st_mtime > LEFT_S:
                path.unlink()
    return sorted(living, key=lambda entry: entry.since)


LEFT_S = 60.0  # a file that was made and is not locked yet is younger


def found_here(device: KnownDevice) -> None:
    """Keep what is known of a device, for those who cannot ask the driver."""
    with suppress(OSError):
        devices_folder = folder() / "devices"
        devices_folder.mkdir(parents=True, exist_ok=True)
        files.replace(devices_folder / f"{device.device}.json", codec.dumps(replace(device, seen_at=time.time())))


def take_out(device: KnownDevice, why: str) -> None:
    """Keep everybody from a device, until an engine that starts finds it well again."""
    found_here(replace(device, out=why, out_since=time.time()))


def devices() -> list[KnownDevice]:
    """Every device that an engine has found on this host, by name."""
    kept = []
    for path in sorted((folder() / "devices").glob("*.json")):
        with suppress(OSError, ValueError):
            kept.append(codec.read_line(KnownDevice, path.read_bytes()))
    return kept


def uses(since: float, until: float) -> list[Use]:
    """What ended after `since` and before `until`, in the order it ended."""
    kept = []
    for path, hour in _hour_files():
        if not since // HOUR_S <= hour <= until // HOUR_S:
            continue
        with suppress(OSError):
            for line in path.read_bytes().splitlines():
                with suppress(ValueError):
                    kept.append(codec.read_line(Use, line))
    return sorted((use for use in kept if since < use.ended <= until), key=lambda use: use.ended)


def last_held(now: float) -> float:
    """When a device of this host was held last: `now` while one is, 0.0 where none was in the last hour."""
    if any(entry.stage is Stage.HOLDING for entry in claims()):
        return now
    return max((use.ended for use in uses(now - HOUR_S, now)), default=0.0)


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
    named = [(path, path.stem.removeprefix("uses-")) for path in folder().glob("uses-*.jsonl")]
    return [(path, int(hour)) for path, hour in named if hour.isdecimal()]


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
    since, at_work, ended, on_host = at - HOUR_S, claims(), uses(at - HOUR_S, at), devices()
    names = {device.device for device in on_host}
    in_use = {entry.device for entry in at_work} | {entry.device for entry in ended}

    def of(device: KnownDevice) -> DeviceStanding:
        its_claims = [entry for entry in at_work if entry.device == device.device]
        used = [use for use in ended if use.device == device.device]
        holding = tuple(entry for entry in its_claims if entry.stage is Stage.HOLDING)
        held_s = sum(use.ended - max(use.began, since) for use in used)
        held_s += sum(max(0.0, at - max(entry.since, since)) for entry in holding)
        return DeviceStanding(
            device, min(1.0, held_s / HOUR_S), len(used),
            sum(use.waited_s for use in used) / len(used) if used else 0.0, holding,
            _line(entry for entry in its_claims if entry.stage is Stage.WAITING),
            len({entry.run_id for entry in its_claims if entry.run_id and entry.stage is not Stage.BESIDE}),
        )  # fmt: skip

    return PoolStanding(
        tuple(of(device) for device in on_host if not device.host or device.device in in_use or device.seen_at > since),
        _line(entry for entry in at_work if entry.stage is Stage.WAITING and entry.device not in names),
        tuple(entry for entry in at_work if entry.stage is Stage.BESIDE), at,
    )  # fmt: skip


def _line(waiting: Iterable[Claimed]) -> tuple[Claimed, ...]:
    now = time.time()
    return tuple(sorted(waiting, key=lambda entry: (entry.place or Place(since=entry.since)).rank(now)))
