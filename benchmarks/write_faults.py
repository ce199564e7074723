"""Let each system call of a run's write path fail once, in every way, resume the run, and compare it with a calm one.

    python -m benchmarks.write_faults                        each call fails in one way, in turn
    python -m benchmarks.write_faults --every                each call fails in every way
    python -m benchmarks.write_faults --points 24            smallest: this many calls, evenly spread

The calm run is judged by the real toolchain: a kernel that does not compile and its repair, a wrong one and its repair,
two depths, profiles, evidence for the knowledge base. In the others the same engine does everything but judge: what a
kernel came to is remembered. A library before libc (write_faults.cpp) counts the calls that write below the home
folder and lets one of them be killed before or in its middle, fail, be interrupted, or find a disk that is full for one
call, in the middle of a line, or until the process ends. Replies are paid: who delivers them counts them elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path

import engine.__main__ as command
from benchmarks.kill_engine import history
from engine.evaluator.profiling import cpu_profile
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains.cached import CachedToolchain
from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.daily import Ledger
from engine.search.llm import Completion, Message, OnText, Purpose, Terms, recorded
from engine.search.llm.recorded import RecordedModel
from engine.search.llm.recording import read_recording
from storage import codec, files
from storage.device_use import UNSEEN, Claim
from storage.home import home
from storage.knowledge import files as knowledge
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.settings import RunState
from tests.engine.contexts import write_recording
from tests.engine.swish_story import REPLIES

SOURCE = Path(__file__).with_name("write_faults.cpp")
PIECES = 2  # of a reply as it streams in: each is a write, and all are alike
RUN = ["run", "swish", "--depths", "2", "--base-policy", "latest", "--collect", "on", "--set", "batch_size=4"]
RUN += ["--set", "dim=1024"]
LONGEST_S = 500


class Fault(IntEnum):
    """How a call fails, as write_faults.cpp numbers it."""

    COUNT = 0
    KILL = 1
    NO_SPACE = 2
    FAILS = 3
    INTERRUPTED = 4
    IN_PART = 5
    TORN = 6
    FULL = 7


WORDS: Mapping[Fault, str] = {
    Fault.KILL: "killed before it",
    Fault.TORN: "killed in its middle",
    Fault.NO_SPACE: "ENOSPC",
    Fault.IN_PART: "ENOSPC in its middle",
    Fault.FULL: "ENOSPC from then on",
    Fault.FAILS: "EIO",
    Fault.INTERRUPTED: "EINTR",
}
OF_WRITES = (Fault.TORN, Fault.IN_PART)


class Paid(RecordedModel):
    """Recorded replies that cost something; each that was delivered whole is noted in a file outside the home."""

    def __init__(self, replies: Path, counter: Path) -> None:
        super().__init__(read_recording(replies))
        self._counter = counter

    def terms(self, purpose: Purpose) -> Terms | None:
        """One dollar per million tokens."""
        return Terms("recorded", 128_000, 32_000, input_price=1e-6, output_price=1e-6)

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """A recorded reply, counted."""
        reply = super().complete(messages, purpose, on_text)
        with open(self._counter, "a") as counter:
            counter.write(f"{purpose.role} {purpose.source_hash} {purpose.occurrence}\n")
        return replace(reply, input_tokens=100, output_tokens=50, cost_usd=150e-6, seconds=0.0)


class Judged(CachedToolchain):
    """What the calm run's kernels came to; asked by one engine after the other, so that none ends it."""

    claim: Claim = UNSEEN
    step: Callable[[], int] = staticmethod(lambda: 0)
    share: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, inner: CpuToolchain, folder: Path) -> None:
        super().__init__(inner, folder)
        self._limit = folder / "limit"

    def limit(self, task: Task) -> HardwareLimit:
        """Remembered too."""
        if not self._limit.exists():
            files.replace(self._limit, codec.dumps(super().limit(task)))
        kept: HardwareLimit = codec.from_plain(HardwareLimit, json.loads(self._limit.read_text()))
        return kept

    def close(self) -> None:
        """Not yet."""


@dataclass
class Bench:
    """Where it is done: the library that makes calls fail, the toolchain, and the replies."""

    place: Path
    shim: ctypes.CDLL
    toolchain: Judged
    replies: Path
    homes: int = 0

    def fresh(self) -> Trial:
        """A home without a run."""
        self.homes += 1
        place = self.place / f"home-{self.homes}"
        place.mkdir()
        return Trial(self, place)


@dataclass
class Trial:
    """One run in a home of its own, by as many engines as it takes."""

    bench: Bench
    home: Path
    said: list[str] = field(default_factory=list)

    @property
    def run(self) -> RunFolder | None:
        """The run, if there is one yet."""
        found = [path.parent for path in (self.home / "runs").glob("*/run.json")]
        return RunFolder(found[0]) if found else None

    @property
    def counter(self) -> Path:
        """What was delivered."""
        return self.home.with_suffix(".paid")

    @property
    def calls(self) -> Path:
        """The calls of the last engine."""
        return self.home.with_suffix(".calls")

    def engine(self, fault: Fault, number: int = 0) -> int:
        """An engine that begins the run or goes on with it; returns its exit code, negative where it was killed."""
        words = ["resume", self.run.run_id] if self.run else RUN
        self.calls.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            self._be_engine(words, fault, number)
        began = time.monotonic()
        while not (found := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() - began > LONGEST_S:
                os.kill(child, 9)
            time.sleep(0.005)
        return os.waitstatus_to_exitcode(found[1])

    def _be_engine(self, words: list[str], fault: Fault, number: int) -> None:
        output = os.open(self.home.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.environ["TILEWRIGHT_HOME"] = str(self.home)
        vars(command).update(_replay=lambda *_: Paid(self.bench.replies, self.counter))
        self.bench.shim.arm(f"{self.home}/".encode(), int(fault), number, str(self.calls).encode())
        try:
            os._exit(command.main(words))
        finally:
            os._exit(99)  # what main let through: never


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, help="so many calls, evenly spread (default: all)")
    parser.add_argument("--every", action="store_true", help="each call in every way, not in one of them in turn")
    options = parser.parse_args()
    with bench() as made:
        raise SystemExit(0 if report(made, options.points, options.every) else 1)


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Everything that trials need. This process has the library loaded, or is replaced by one that has."""
    place = Path(os.environ.get("WRITE_FAULTS") or tempfile.mkdtemp(prefix="write-faults."))
    library = place / "write_faults.so"
    if "WRITE_FAULTS" not in os.environ:
        subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        (place / "cache").symlink_to(home() / "cache")
        os.environ |= {"WRITE_FAULTS": str(place), "LD_PRELOAD": str(library), "TILEWRIGHT_HOME": str(place / "calm")}
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    del os.environ["LD_PRELOAD"]  # compilers and evaluators are none of its business
    recorded.PIECES = PIECES
    (place / "judged").mkdir()
    with CpuToolchain() as real:
        toolchain = Judged(real, place / "judged")
        vars(command).update(_pool=lambda *_: None, PooledToolchain=lambda *_: toolchain)
        vars(cpu_profile).update(disturbance=lambda *_: "")  # what was disturbed would not be remembered
        try:
            yield Bench(place, ctypes.CDLL(str(library)), toolchain, write_recording(place / "replies", REPLIES))
        finally:
            shutil.rmtree(place, ignore_errors=True)


def report(made: Bench, points: int | None, is_every: bool) -> bool:
    """Make every trial and say what came of them; True when all survived."""
    calm = made.fresh()
    (calm.home / "cache").symlink_to(made.place / "cache")
    print(f"calm run, judged by the real toolchain: exit code {calm.engine(Fault.COUNT)}", flush=True)
    expected = made.fresh()  # the same once more, from what is remembered: what a run writes, and what it says
    expected.engine(Fault.COUNT)
    assert not problems(expected, expected), problems(expected, expected)
    calls = [line.split(" ")[1:] for line in expected.calls.read_text().splitlines()]
    print(f"calls of its write path: {len(calls)}: {dict(Counter(name for name, *_ in calls))}", flush=True)
    step = max(1, len(calls) // points) if points else 1
    done, failed, window = Counter[Fault](), list[str](), 0
    for number in range(1, len(calls) + 1, step):
        for fault in ways(number // step, calls[number - 1][0], is_every):
            wrong, bought_again = survived(made, expected, fault, number)
            done[fault] += 1
            window += bought_again
            what = f"call {number} ({' '.join(calls[number - 1])}), {WORDS[fault]}"
            failed += [f"{what}: {'; '.join(wrong)}"] if wrong else []
            if wrong:
                print(failed[-1], flush=True)
    print(f"injected: {done.total()} ({', '.join(f'{WORDS[one]} {count}' for one, count in sorted(done.items()))})")
    print(f"survived: {done.total() - len(failed)}; killed before the write that keeps a whole reply: {window}")
    return not failed


def ways(turn: int, name: str, is_every: bool) -> Iterable[Fault]:
    """How a call is to fail."""
    possible = [one for one in WORDS if name == "write" or one not in OF_WRITES]
    return possible if is_every else [possible[turn % len(possible)]]


def survived(made: Bench, expected: Trial, fault: Fault, number: int) -> tuple[list[str], bool]:
    """What is wrong with a run after one call of it failed so; and whether the kill fell before the write that keeps a
    whole reply had ended, which is bought again then: nothing on disk tells it from one that never came."""
    trial = made.fresh()
    code = trial.engine(fault, number)
    wrong = [f"ended with {code}"] if code not in (0, 1, 4, -9) else []
    struck = (trial.calls.read_text().splitlines()[-1].split(" ") if trial.calls.exists() else [""] * 3)[1:]
    is_window = fault in (Fault.KILL, Fault.TORN) and struck[0] in ("open", "write") and struck[1].endswith("/arrived")
    for _ in range(3):
        if (again := trial.engine(Fault.COUNT)) == 0:
            break
    wrong += [f"resumed with {again}"] if again else []
    wrong += problems(trial, expected, spared=int(is_window))
    shutil.rmtree(trial.home)
    return wrong, is_window


def problems(trial: Trial, expected: Trial, spared: int = 0) -> list[str]:
    """How a run differs from the calm one; `spared` replies may have been bought twice."""
    run, calm = trial.run, expected.run
    if run is None or calm is None:
        return ["there is no run"]
    entries, faults = journal.survey(run.journal_file)
    wrong = [f"journal: {fault.kind}" for fault in faults]
    if told(run) != told(calm):
        wrong.append(f"another history: {first_difference(told(run), told(calm))}")
    ended = [entry.event.state for entry in entries if isinstance(entry.event, ev.RunEnded)]
    wrong += [] if ended[-1:] == [RunState.FINISHED] else [f"ended as {ended}"]
    paid, calls = trial.counter.read_text().splitlines(), expected.counter.read_text().splitlines()
    twice = len(paid) - len(set(paid))
    wrong += [f"{twice} replies paid twice"] if twice > spared else []
    wrong += ["replies not paid"] if set(paid) != set(calls) else []
    wrong += [f"spent {n} for {len(paid)}"] if (n := Ledger(trial.home).spent().calls) < len(paid) else []
    rows = [[row.evidence_id[1:] for row in knowledge.load(one.home / "knowledge").rows] for one in (trial, expected)]
    wrong += [f"evidence: {len(rows[0])} rows for {len(rows[1])}"] if rows[0] != rows[1] else []
    for folder in (run.path, run.blobs):
        files.sweep(folder)  # as the next engine would
    left = [path.name for path in (*run.path.glob(".*"), *run.blobs.glob(".*"))]
    wrong += [f"left behind: {left[0]}"] if left else []
    output = trial.home.with_suffix(".out").read_text()
    wrong += [f"a traceback: {output.splitlines()[-1]}"] if "Traceback" in output else []
    return wrong


def told(run: RunFolder) -> list[str]:
    """What happened in a run, without what engines that end and come back say of themselves."""
    silent = ("RunEnded failed", "CallFailed", "CallSent", "LimitMeasured")
    return [line for line in history(run) if not line.startswith(silent)]


def first_difference(one: list[str], other: list[str]) -> str:
    """Where two histories part."""
    pairs = ((a, b) for a, b in zip(one, other, strict=False) if a != b)
    a, b = next(pairs, (f"{len(one)} events", f"{len(other)} events"))
    return f"{a[:160]} | {b[:160]}"


if __name__ == "__main__":
    main()
