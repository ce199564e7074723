"""Whose turn it is where several wait for a device of this host: a queue in front of the locks of `lease`.

First come those that a person waits for (`is_now`), then whoever has had the fewest seconds of the device by its weight
(start-time fair queueing), then who came first. A share is a run, or a suite with all its cells. One that comes anew
starts where those in line stand: at the least of them, so that it is not starved, and no further behind the last than
its own last turn, so that it starves nobody and old debts are forgotten. Of what it has not used it keeps one turn.
Among the processes of one share, the cells of a suite, the one goes first that is furthest from its end, then the one
that has had devices for the smallest part of its life: what slows it (its builds, its model) will do so again, and it
would end last, alone, beside idle devices.

Who waits has a ticket: a file in a folder beside the locks that everybody may write to, locked by its process, so that
it dies with it. What each share has had lies in a second such folder. A device that is free with nobody in line is had
with its own lock and one look into the folder; no ticket is made and nothing is written.

Nobody has to queue, and nobody can be kept out by a file: what cannot be read, is no ticket or is locked by nobody does
not count, without a usable folder the kernel decides as it does for a lock, and who is first and does not take the free
device (a process that was halted) is passed over after PATIENCE_S. As for a lock, it orders those who keep to it.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from engine.evaluator.machine import lease
from engine.evaluator.machine.lease import Files
from storage import codec
from storage.device_use import Place

QUEUE, USED = "tilewright.queue", "tilewright.used"  # folders of tickets, and of what each share has had
TICKET = "ticket-"
NAME = re.compile(r"[0-9a-f]{32}")  # of a file of figures
PATIENCE_S = 2.0
LOOK_S = 0.03  # how often one looks who is not first, or waits for whichever of several devices
TRIES = 50  # for the lock of a file of figures, a millisecond each: a stranger who holds it stops nobody
KEPT_S = 24 * 3600.0  # figures of a share that has not waited for so long are removed by their user
MOST = 1 << 16  # bytes that are read of a file of others


@dataclass(frozen=True, slots=True)
class Share:
    """On whose account a device is used. Processes with one `account` share `weight`; without a name each has its own.
    `is_now`: a person waits for what is asked. `done`: how much of its search who asks has behind it, 0 to 1."""

    account: str = ""
    weight: float = 1.0
    is_now: bool = False
    done: float = 0.0


@dataclass(frozen=True, slots=True)
class Had:
    """What a share has had of a device: seconds, its place in line (seconds by weight, from where it came in), and by
    how much its last turn moved that."""

    used_s: float = 0.0
    place: float = 0.0
    last: float = 0.0

    def after(self, held_s: float, weight: float) -> Had:
        """With one turn more."""
        last = held_s / weight
        return Had(self.used_s + held_s, self.place + last, last)

    def plus(self, turns: Had) -> Had:
        """With turns that were counted by themselves."""
        return Had(self.used_s + turns.used_s, self.place + turns.place, turns.last)

    def among(self, places: Sequence[float]) -> Had:
        """The figures as those of one of those who want the device, whose places are given."""
        if not places:
            return self
        return replace(self, place=min(max(self.place, min(places) - self.last), max(places) + self.last))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Locks that are taken together, by their names, and the file of what the share has had of them."""

    locks: tuple[str, ...]
    used: str


@dataclass(frozen=True, slots=True)
class Ticket:
    """What stands in a ticket: one of `wanted` is waited for since `since`, in seconds since the epoch, or held. Its
    process began at `began` and has held devices for `held_s` since."""

    share: Share
    wanted: tuple[Wanted, ...]
    since: float
    is_holding: bool = False
    began: float = 0.0
    held_s: float = 0.0

    def rival(self, wanted: Wanted) -> Wanted | None:
        """What it wants that cannot be had at the same time."""
        return next((need for need in self.wanted if set(need.locks) & set(wanted.locks)), None)


Turn = Callable[[], AbstractContextManager[object]]  # entered, one has the device
Told = Callable[[Place], object]
_share: ContextVar[Share | None] = ContextVar("on whose account a device is used", default=None)
_unwritten: dict[
    tuple[Path, str], tuple[Had, float]
] = {}  # turns that nobody waited for, and when the last one ended, by file
_guard = threading.Lock()
clock = time.monotonic  # by which turns are counted
_waiting = 0
_began = time.time()
_held_s = 0.0


@contextmanager
def on_account(share: Share) -> Iterator[None]:
    """Inside, devices are asked for on this account."""
    before = _share.set(share)
    try:
        yield
    finally:
        _share.reset(before)


def is_waiting() -> bool:
    """Whether this process is in line, for whatever."""
    return _waiting > 0


@contextmanager
def hold(*files: Path, told: Told = lambda place: None) -> Iterator[float]:
    """Wait for one's turn and hold all locks; yields the seconds waited. `told` hears how one stands, if one waits.

    Raises:
        ToolchainError: one of them is not a file that may be locked.
    """
    if not files:
        yield 0.0
        return
    folder, share = files[0].parent, _share.get() or Share()
    with lease.held_if_free(*files) as is_free:  # as below, but for what that costs each evaluation of a run alone
        if is_free and not _has_rivals(folder, wanted := _wanted(share.account, files)):
            began = clock()
            try:
                yield 0.0
            finally:
                _count(folder, wanted, share, began)
            return
    with hold_first([files], told=told) as (_, waited_s):
        yield waited_s


@contextmanager
def hold_first(
    groups: Sequence[Files], rest: Callable[[float], None] = time.sleep, told: Told = lambda place: None
) -> Iterator[tuple[int, float]]:
    """Wait for one's turn and hold the locks of the group that is free first; yields its number and the wait.

    Raises:
        ToolchainError: one of them is not a file that may be locked.
    """
    started, share = time.monotonic(), _share.get() or Share()
    folder = groups[0][0].parent
    wanted = tuple(_wanted(share.account, files) for files in groups)
    for number, files in enumerate(groups):
        with lease.held_if_free(*files) as is_free:
            if is_free and not _has_rivals(folder, wanted[number]):
                began = clock()
                try:
                    yield number, 0.0
                finally:
                    _count(folder, wanted[number], share, began)
                return
    with ExitStack() as held, _in_line(folder, _ticket(share, wanted)) as own:
        with _known_to_wait():
            number = held.enter_context(_turn(groups, own, rest, told))
        own.holds(wanted[number])
        began = clock()
        try:
            yield number, time.monotonic() - started
        finally:
            _count(folder, wanted[number], share, began)
            _change(folder, wanted[number].used, lambda had, turns, ended: had.plus(turns))


def _ticket(share: Share, wanted: tuple[Wanted, ...]) -> Ticket:
    with _guard:
        return Ticket(share, wanted, time.time(), began=_began, held_s=_held_s)


class Own:
    """A ticket of this process. `name` is empty where there is no folder to queue in."""

    def __init__(self, folder: Path, ticket: Ticket, name: str, file: int) -> None:
        self.folder, self.ticket, self.name, self._file, self._length = folder, ticket, name, file, 0

    def holds(self, wanted: Wanted) -> None:
        """It is no longer waited: others see who uses the device."""
        self.ticket = replace(self.ticket, wanted=(wanted,), is_holding=True)
        self.write()

    def write(self) -> None:
        """For others to read."""
        if self._file >= 0:
            with suppress(OSError):
                text = codec.dumps(self.ticket).encode().ljust(self._length)  # one write: never read in halves
                self._length = os.pwrite(self._file, text, 0)


@contextmanager
def _known_to_wait() -> Iterator[None]:
    global _waiting
    with _guard:
        _waiting += 1
    try:
        yield
    finally:
        with _guard:
            _waiting -= 1


@contextmanager
def _in_line(folder: Path, ticket: Ticket) -> Iterator[Own]:
    """A ticket, which is there with its content and its lock or not at all."""
    queue, name, file = folder / QUEUE, "", -1
    try:
        if _is_shared(queue):
            with suppress(OSError):
                name = f"{TICKET}{os.getpid()}-{os.urandom(6).hex()}"
                draft = queue / f".{name}"
                file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, lease.FOR_ALL)
                os.fchmod(file, lease.FOR_ALL)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        own = Own(folder, ticket, name, file)
        own.write()
        for wanted in ticket.wanted:
            _come_in(folder, wanted)
        if file >= 0:
            with suppress(OSError):
                draft.rename(queue / name)
        yield own
    finally:
        if file >= 0:
            for left in (queue / name, queue / f".{name}"):
                with suppress(OSError):
                    left.unlink()
            os.close(file)


@contextmanager
def _turn(groups: Sequence[Files], own: Own, rest: Callable[[float], None], told: Told) -> Iterator[int]:
    """Wait until a group is free and it is this ticket's turn; hold its locks."""
    free_since = last = None
    while True:
        is_free = False
        for number, files in enumerate(groups):
            with ExitStack() as held:
                if not held.enter_context(lease.held_if_free(*files)):
                    if len(groups) > 1:
                        continue
                    free_since = None
                    last = _tell(own, told, last)
                    held.enter_context(lease.hold(*files))  # the kernel wakes all who wait for one lock
                else:
                    is_free = True
                now = time.monotonic()
                if not _is_behind(own, own.ticket.wanted[number]) or now - (free_since or now) > PATIENCE_S:
                    yield number
                    return
        free_since = (free_since or time.monotonic()) if is_free else None
        last = _tell(own, told, last)
        rest(LOOK_S)


def _tell(own: Own, told: Told, last: Place | None) -> Place:
    place = _place(own.folder, own.ticket, own.ticket.wanted[0])
    if place != last:
        told(place)
    return place


def _is_behind(own: Own, wanted: Wanted) -> bool:
    """Whether somebody else's turn comes first."""
    rivals = [(ticket, rival) for ticket, rival in _rivals(own.folder, wanted, own.name) if not ticket.is_holding]
    if not rivals:
        return False
    now = time.time()
    mine = _place(own.folder, own.ticket, wanted).rank(now)
    return any(_place(own.folder, ticket, rival).rank(now) < mine for ticket, rival in rivals)


def _place(folder: Path, ticket: Ticket, wanted: Wanted) -> Place:
    share, had = ticket.share, _read_had(folder, wanted.used)
    life = ticket.since, ticket.began, ticket.held_s
    return Place(share.is_now, share.weight, had.used_s, had.place, share.done, *life)


def _has_rivals(folder: Path, wanted: Wanted) -> bool:
    return next(_rivals(folder, wanted), None) is not None


def _rivals(folder: Path, wanted: Wanted, own_name: str = "") -> Iterator[tuple[Ticket, Wanted]]:
    """Living tickets for what is wanted, with what of it each wants."""
    try:
        with os.scandir(f"{folder}/{QUEUE}") as entries:
            names = [entry.name for entry in entries if entry.name.startswith(TICKET) and entry.name != own_name]
    except OSError:
        return
    for name in names:
        ticket = _read_ticket(folder / QUEUE / name)
        if ticket is not None and (rival := ticket.rival(wanted)) is not None:
            yield ticket, rival


def _read_ticket(path: Path) -> Ticket | None:
    """What stands in it; None where its process is gone or it is none."""
    text = _read(path, is_locked=True)
    try:
        ticket: Ticket = codec.read_line(Ticket, text)
    except (ValueError, RecursionError):
        return None
    numbers = (ticket.since, ticket.began, ticket.held_s, ticket.share.done)
    is_whole = all(map(math.isfinite, numbers)) and all(NAME.fullmatch(need.used) for need in ticket.wanted)
    return ticket if is_whole else None


def _count(folder: Path, wanted: Wanted, share: Share, began: float) -> None:
    """A turn has ended. It is written when somebody is in line."""
    global _held_s
    held_s, key = clock() - began, (folder, wanted.used)
    with _guard:
        _held_s += held_s
        before, _ = _unwritten.get(key, (Had(), 0.0))
        _unwritten[key] = before.after(held_s, share.weight), time.time()


def _come_in(folder: Path, wanted: Wanted) -> None:
    """Take one's place among those who want the same. A turn that nobody waited for is not held against anyone."""
    rivals = list(_rivals(folder, wanted))
    places = [_read_had(folder, used).place for used in {rival.used for _, rival in rivals} - {wanted.used}]

    def change(had: Had, turns: Had, ended: float) -> Had:
        if not any(ticket.since < ended for ticket, _ in rivals):
            turns = Had(turns.used_s, 0.0, had.last)
        return had.plus(turns).among(places)

    _change(folder, wanted.used, change)


def _change(folder: Path, used: str, change: Callable[[Had, Had, float], Had]) -> None:
    """Write a share's figures anew, out of the old ones, the turns that were not written yet, and their end."""
    with _guard:
        turns, ended = _unwritten.pop((folder, used), (Had(), 0.0))
    if _is_shared(folder / USED):
        with suppress(OSError), _figures(folder / USED / used) as file:
            had = _had_of(os.pread(file, MOST, 0))
            text = codec.dumps(change(had, turns if turns.used_s else replace(turns, last=had.last), ended)).encode()
            os.pwrite(file, text.ljust(255) + b"\n", 0)  # one write of one length: never read in halves


@contextmanager
def _figures(path: Path) -> Iterator[int]:
    """The file open and locked, made if need be.

    Raises:
        OSError: it is not a file of this user's alone.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(path, flags)
    except FileNotFoundError:
        _forget_old(path.parent)
        file = os.open(path, flags | os.O_CREAT | os.O_EXCL, lease.FOR_ALL)
    try:
        there = os.fstat(file)
        if not stat.S_ISREG(there.st_mode) or there.st_uid != os.geteuid() or there.st_nlink != 1:
            raise OSError(f"{path} is not a file of this user's alone")  # a link to another file would be written over
        os.fchmod(file, lease.FOR_ALL)
        for _ in range(TRIES):
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.001)
        yield file
    finally:
        os.close(file)


def _forget_old(folder: Path) -> None:
    """Remove figures that nobody has changed for long, as far as they are this user's. By a descriptor of the folder:
    whoever made it could put a link in its place."""
    there = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for entry in os.scandir(there):
            with suppress(OSError):
                about = entry.stat(follow_symlinks=False)
                is_own = about.st_uid == os.geteuid() and NAME.fullmatch(entry.name)
                if is_own and about.st_mtime < time.time() - KEPT_S:
                    os.unlink(entry.name, dir_fd=there)
    finally:
        os.close(there)


def _read_had(folder: Path, used: str) -> Had:
    return _had_of(_read(folder / USED / used))


def _had_of(text: bytes) -> Had:
    try:
        had: Had = codec.read_line(Had, text)
    except (ValueError, RecursionError):
        return Had()
    return had if all(math.isfinite(figure) for figure in (had.used_s, had.place, had.last)) else Had()


def _read(path: Path, *, is_locked: bool = False) -> bytes:
    """A file of anybody; empty where it cannot be read or is no plain one, or is not locked though it should be."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return b""
        if is_locked:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return os.pread(file, MOST, 0)
            with suppress(OSError):
                path.unlink()  # of a process that is gone
            return b""
        return os.pread(file, MOST, 0)
    except OSError:
        return b""
    finally:
        os.close(file)


def _is_shared(folder: Path) -> bool:
    """Whether there is a folder, made if need be, in which everybody can have files of their own."""
    with suppress(OSError):
        if not folder.exists():
            with suppress(FileExistsError):
                folder.mkdir()
                folder.chmod(0o1777)  # whatever the umask is
        mode = folder.lstat().st_mode
        return stat.S_ISDIR(mode) and os.access(folder, os.W_OK)
    return False


@functools.lru_cache(256)
def _wanted(account: str, files: Files) -> Wanted:
    locks = tuple(sorted(file.name for file in files))
    account = account or f"process {os.getpid()}"
    key = json.dumps([os.getuid(), account, locks])
    return Wanted(locks, hashlib.sha256(key.encode()).hexdigest()[:32])
