"""Whether judging a task fits into this host's memory, and at which sizes it does. Imports no torch."""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from engine.errors import TaskError
from engine.evaluator import sandbox
from engine.evaluator.tasks import Size, TaskFile, imported, set_constants
from storage import files
from storage.home import home

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "engine" / "evaluator" / "checks" / "estimate.py"
GROUP = Path("/sys/fs/cgroup")
MOST = 0.6  # of what is free: the rest is for what else runs here, and for the estimate's error
START_S, LIMIT_S = 60, 60  # the child ends a task that takes longer itself
ENDS_S = 2.0
SETTLED_S = 0.9  # so long a text must be asked about before it is run: one that is being typed is not
NICENESS = 10
UNUSABLE = "Model(*get_init_inputs()) ends in "  # as an estimate tells of a task that no run could use
FAILS = "this module fails when it is called: "  # likewise
REFUSED = "this task cannot be judged: "  # likewise, and tells the remedy itself
OVERFLOWS = 1 << 63  # as an estimate tells it: a tensor has more bytes than PyTorch can count
_UNITS = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"))


def see_that_it_fits(
    source: str, sizes: Mapping[str, int | float], needed: int | None = None, *, backward: bool = False
) -> None:
    """See that the host has the memory to judge a task; `needed` is the estimate, or None to have a child make it.

    Raises:
        TaskError: it has not; the message names the need, what is free and a size that would do. Or the module cannot
            be made or called at all.
    """
    if needed is None:
        needed = remembered(source, lambda: _asked(source, backward=backward), backward=backward)
        if reason := unusable(source, backward):
            raise TaskError(reason)
    if needed is not None and (reason := refusal(needed, free_bytes(), sizes)):
        raise TaskError(reason)


def refusal(needed: int, free: int, sizes: Mapping[str, int | float]) -> str:
    """Why a task is too large here, in one sentence with the remedy; empty when it fits."""
    if needed <= MOST * free:
        return ""
    if needed >= OVERFLOWS:
        listed = ", ".join(f"{name}={size:,}" for name, size in sizes.items() if isinstance(size, int))
        return (
            f"a tensor of this task is too large for PyTorch: use smaller sizes{f' ({listed} now)' if listed else ''}"
        )
    message = (
        f"checking this task needs about {_told(needed)} of memory, and at most {MOST * free / 1e9:.3g} of the "
        f"{free / 1e9:.3g} GB free here may be used"
    )
    whole = {name: size for name, size in sizes.items() if isinstance(size, int) and size > 1}
    if not whole:
        return f"{message}: use smaller sizes"
    name = max(whole, key=lambda constant: whole[constant])
    # One number alone is mostly the side of a square; where it is not, the next refusal names a smaller one.
    share = (MOST * free / needed) ** (0.5 if len(whole) == 1 else 1)
    less = 1 << max(0, int(whole[name] * share).bit_length() - 1)
    if less < LEAST:
        return f"{message}: use smaller sizes"
    return f"{message}: use smaller sizes, for example {name}={less} ({whole[name]:,} now)"


def _told(size: int) -> str:
    """Bytes in the unit that a person counts so many in."""
    unit, name = next((entry for entry in _UNITS if size >= entry[0]), _UNITS[-1])
    return f"{size / unit:.3g} {name}" if size < 1000 * unit else f"{size / unit:,.0f} {name}"


def free_bytes() -> int:
    """Memory that can be had without swapping, within what a container may use."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    with suppress(OSError, ValueError):  # no limit is told as the word `max`
        group = int((GROUP / "memory.max").read_text()) - int((GROUP / "memory.current").read_text())
        return min(free, max(0, group))
    return free


def remembered(source: str, estimate: Callable[[], int | None], *, backward: bool = False) -> int | None:
    """The estimate for a task, made once: importing torch for it takes seconds. None where there is none."""
    file = _estimate_file(source, backward)
    with suppress(OSError, ValueError):
        return int(file.read_text())
    if (needed := estimate()) is not None:
        with suppress(OSError):  # a home that cannot be written to, or a full disk, is told of by what must be kept
            file.parent.mkdir(parents=True, exist_ok=True)
            files.replace(file, str(needed))
    return needed


def _estimate_file(source: str, backward: bool) -> Path:
    text = f"{source}{imported.contents(source) or ''}"
    digest = hashlib.sha256(PROGRAM.read_bytes() + text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return home() / "cache" / "estimates" / f"{digest}{'-backward' if backward else ''}"


_estimates: dict[str, int | None] = {}
_not_followed: dict[str, str] = {}
_first_asked: dict[str, float] = {}
_worker: list[threading.Thread] = []
_lock = threading.Lock()


def estimated(source: str, backward: bool = False) -> tuple[bool, int | None]:
    """Whether the estimate for a task is made, and the bytes, None where there is none. Never waits: ask again.

    A thread makes one that is not, for one task at a time, and only for a text that is still asked about after
    SETTLED_S: versions that were typed over are never run.
    """
    file = _estimate_file(source, backward)
    name = file.name
    with _lock:
        if name in _estimates:
            return True, _estimates[name]
        with suppress(OSError, ValueError):
            return True, int(file.read_text())
        waited = time.monotonic() - _first_asked.setdefault(name, time.monotonic())
        if waited >= SETTLED_S and not any(thread.is_alive() for thread in _worker):
            _first_asked.clear()
            _worker[:] = [threading.Thread(target=_estimate, args=(name, source, backward), daemon=True)]
            _worker[0].start()
    return False, None


def why_unknown(source: str, backward: bool = False) -> str:
    """Why `estimated` has no bytes for a task; empty where it has, or the reason was not told."""
    return _not_followed.get(_estimate_file(source, backward).name, "")


def unusable(source: str, backward: bool = False) -> str:
    """Why no run could use a task, with the remedy, as far as following it has shown; else empty."""
    return remedied(why_unknown(source, backward))


def remedied(why: str) -> str:
    """What a meter's `failure` says, with the remedy; empty where a run may still be able to use the task."""
    if why.startswith(REFUSED):
        return why
    if why.startswith(FAILS):
        return f"{why}: correct forward, or what get_inputs returns"
    return f"{why}: correct the constructor, or what get_init_inputs returns" if why.startswith(UNUSABLE) else ""


def _estimate(name: str, source: str, backward: bool) -> None:
    needed = None
    try:
        with suppress(OSError):  # no process can be started
            needed = remembered(source, lambda: _asked(source, backward=backward), backward=backward)
    finally:  # whatever went wrong, who asks must not be put off for ever
        _estimates[name] = needed


def _asked(source: str, *, backward: bool) -> int | None:
    with CostMeter() as meter:
        return bytes_by(meter, source, backward=backward)


def bytes_by(meter: CostMeter, source: str, *, backward: bool) -> int | None:
    """The memory that a task needs; why it cannot be told is kept for `why_unknown`."""
    cost = meter.cost(source, backward=backward)
    if cost is None:
        _not_followed[_estimate_file(source, backward).name] = meter.failure
    return cost.bytes if cost else None


@dataclass(frozen=True, slots=True)
class Cost:
    """What judging a task on the host takes: memory in bytes, and operations of one call as far as they are counted."""

    bytes: int
    operations: int


# What sizes are chosen for: a call of a few milliseconds, so that all trials and the timing fit into their seconds.
SMALL = Cost(800 << 20, 400_000_000)
# More than this is no use to judge on a processor: a call takes seconds.
LARGE = 20_000_000_000
LEAST, LEAST_BATCH = 16, 2


class CostMeter:
    """A child process that has tasks followed, in a sandbox, with tensors that have shapes and no contents; one answers
    for many tasks.

    `failure` is why the last task could not be followed, as its own exception says; empty where that is not known.
    """

    def __init__(self) -> None:
        self.failure = ""
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> CostMeter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def cost(self, source: str, *, backward: bool = False) -> Cost | None:
        """None for a task that cannot be followed: it is no task, or it looks at values that are not there."""
        child = self._child = self._child or _started()
        self.failure = ""
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps([source, backward]) + "\n")
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], START_S + LIMIT_S)
            answer = json.loads(child.stdout.readline() if ready else "")
            if isinstance(answer, str):
                self.failure = answer
                return None
            return Cost(*answer)
        except (OSError, ValueError, TypeError):  # it broke or takes too long: the next task gets another child
            self._end()
            return None

    def _end(self) -> None:
        if self._child:
            assert self._child.stdin is not None
            assert self._child.stdout is not None
            with suppress(OSError):
                self._child.stdin.close()  # then it ends by itself, and leaves no folder behind
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(ENDS_S)
            self._child.kill()
            self._child.stdout.close()
            self._child.wait()
        self._child = None


def _started() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "engine.evaluator.processes.estimating"]
    child = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=sandbox.environment(1),
    )  # fmt: skip
    with suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
    return child


def sizes_that_fit(task: TaskFile, kept: Mapping[str, Size], meter: CostMeter) -> dict[str, Size]:
    """Smaller sizes for a file that states none for the cpu toolchain and is too large for it; empty where it is not.

    `kept` are sizes that a person has set: they stay. See `smaller`.

    Raises:
        TaskError: one of them is no number of the task's.
    """
    if "cpu" in task.presets:
        return {}

    def measure(sizes: Mapping[str, Size]) -> Cost | None:
        return meter.cost(set_constants(task.text, {**sizes, **kept}, task.path))

    whole = measure({})
    if whole is None or (whole.bytes <= MOST * free_bytes() and whole.operations <= LARGE):
        return {}
    return smaller({name: size for name, size in task.constants.items() if name not in kept}, measure)


def smaller(sizes: Mapping[str, Size], measure: Callable[[Mapping[str, Size]], Cost | None]) -> dict[str, Size]:
    """Sizes at which a task is small, those that changed.

    The largest whole number is halved again and again, odd ones stay odd, until the task needs no more than SMALL. A
    number that the module does not take at half its value (one that groups divide), or that changes nothing, stays; so
    does one that is small already (16, or 2 for a batch): strides, groups and kernel sizes are such.
    """
    current, cost = dict(sizes), measure(sizes)
    stays = set[str]()
    while cost is not None and (cost.bytes > SMALL.bytes or cost.operations > SMALL.operations):
        name = max(
            (constant for constant in current if _can_halve(constant, current[constant], stays)),
            key=lambda constant: current[constant],
            default="",
        )
        if not name:
            break
        half = int(current[name]) // 2
        tried = {**current, name: half | (int(current[name]) & 1)}
        reduced = measure(tried)
        if reduced is None or not (reduced.bytes < cost.bytes or reduced.operations < cost.operations):
            stays.add(name)
        else:
            current, cost = tried, reduced
    return {name: size for name, size in current.items() if size != sizes[name]}


def _can_halve(name: str, size: Size, stays: set[str]) -> bool:
    least = LEAST_BATCH if "batch" in name.lower() else LEAST
    return isinstance(size, int) and name not in stays and size // 2 >= least
