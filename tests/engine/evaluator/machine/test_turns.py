"""Whose turn it is: real processes that want a device which is no device, and what strangers put in their way."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.evaluator.machine import lease, turns
from engine.evaluator.machine.turns import Had, Share
from storage.device_use import Place

ROOT = Path(__file__).resolve().parents[4]
# Every turn counts one second, and ends when all that are left are in line again: so what is shared is turns, however
# busy the machine is.
CHILD = """
import itertools, json, sys, time
from pathlib import Path
from engine.evaluator.machine import turns

me, share, files, most, company, turns.PATIENCE_S, turns._began = json.loads(sys.argv[1])
files, log = [tuple(map(Path, group)) for group in files], Path(sys.argv[2])
turns.clock = itertools.count().__next__

def lines():
    return log.read_text().count(chr(10))

def others():
    found = (turns._rivals(group[0].parent, turns._wanted("", group)) for group in files)
    return sum(not ticket.is_holding for rivals in found for ticket, _ in rivals)

print("ready", flush=True)
sys.stdin.readline()
with turns.on_account(turns.Share(**share)):
    is_over = False
    while not is_over:
        with turns.hold_first(files) as _, log.open("a") as file:
            file.write(f"{me}\\n")
            file.flush()
            while not (is_over := lines() >= most) and others() < company:
                time.sleep(0.001)
"""


class Line:
    """Processes that want devices, and who had a turn."""

    def __init__(self, folder: Path, held: ExitStack) -> None:
        self.folder, self._held = folder, held
        self.log = folder / "log"
        self.log.touch()
        self.patience_s = 120.0  # a busy machine halts processes too
        self.began = time.time()  # the lives of all, however long each takes to start

    def device(self, name: str = "a") -> tuple[Path, ...]:
        """A lock that stands for a device."""
        return (self.folder / f"{name}.lock",)

    def add(
        self, me: str, share: Share, *groups: tuple[Path, ...], most: int = 1, company: int = 0
    ) -> subprocess.Popen[str]:
        """A process that begins to ask when it is told to `go`; it ends with the turn in which `most` were had in all,
        by whomever, and ends each when so many others are in line."""
        wanted = [[str(path) for path in group] for group in groups or (self.device(),)]
        asked = json.dumps([me, asdict(share), wanted, most, company, self.patience_s, self.began])
        words = [sys.executable, "-c", CHILD, asked, str(self.log)]
        child = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._held.enter_context(child)
        self._held.callback(child.kill)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    def go(self, *children: subprocess.Popen[str]) -> None:
        """Let them ask, all at once."""
        for child in children:
            assert child.stdin is not None
            child.stdin.write("\n")
            child.stdin.flush()

    def wait(self, me: str, share: Share, *groups: tuple[Path, ...]) -> subprocess.Popen[str]:
        """One that wants a single turn, in line by the time that this returns."""
        before = len(self.tickets)
        child = self.add(me, share, *groups)
        self.go(child)
        until(lambda: len(self.tickets) > before)
        return child

    @property
    def tickets(self) -> list[Path]:
        """All there are."""
        return list((self.folder / turns.QUEUE).glob(f"{turns.TICKET}*"))

    @property
    def had(self) -> list[str]:
        """Who had a turn, in order."""
        return self.log.read_text().splitlines()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with ExitStack() as held:
        yield Line(tmp_path, held)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def shares(line: Line, most: int, *shares: tuple[str, Share]) -> Counter[str]:
    """How many turns each had while all of them wanted one all the time."""
    children = [line.add(me, share, most=most, company=len(shares) - 1) for me, share in shares]
    line.go(*children)
    assert [child.wait(120) for child in children] == [0] * len(children)
    assert not line.tickets
    return Counter(line.had[:most])


def test_weights_of_one_one_and_two_have_a_quarter_a_quarter_and_a_half_of_the_turns(line: Line) -> None:
    found = shares(line, 80, ("a", Share("a")), ("b", Share("b")), ("c", Share("c", 2.0)))
    assert {me: round(count / 80, 2) for me, count in found.items()} == pytest.approx(
        {"a": 0.25, "b": 0.25, "c": 0.5}, abs=0.05
    )


@pytest.mark.parametrize(("weight", "of_the_run"), [(1.0, 30), (2.0, 20)])
def test_a_suite_has_as_much_as_one_run_of_its_weight_however_many_its_cells(
    line: Line, weight: float, of_the_run: int
) -> None:
    cells = [(f"cell {n}", Share("suite", weight)) for n in range(3)]
    found = shares(line, 60, ("run", Share("run")), *cells)
    assert found["run"] == pytest.approx(of_the_run, abs=3)
    assert all(found[name] == pytest.approx((60 - of_the_run) / 3, abs=3) for name, _ in cells)


def test_what_a_person_waits_for_goes_first_then_who_came_first(line: Line) -> None:
    with lease.hold(*line.device()):
        children = [
            line.wait("first", Share("1")), line.wait("second", Share("2")), line.wait("now", Share("3", is_now=True)),
        ]  # fmt: skip
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert line.had == ["now", "first", "second"]


def test_of_a_suites_runs_the_one_goes_first_that_is_furthest_from_its_end(line: Line) -> None:
    with lease.hold(*line.device()):
        children = [line.wait(str(done), Share("suite", done=done)) for done in (0.75, 0.5, 0.25, 0.25)]
        other = line.wait("other", Share("other"))
    assert [child.wait(60) for child in (*children, other)] == [0] * 5
    assert [one for one in line.had if one != "other"] == ["0.25", "0.25", "0.5", "0.75"]
    assert line.had.index("other") <= 2, "a suite's own order takes nothing from others"


def test_of_runs_equally_far_from_their_end_the_one_goes_first_that_had_the_device_for_less_of_its_time(
    line: Line,
) -> None:
    suite = Share("suite", done=0.5)
    line.go(line.add("has it all the time", suite, most=1 << 30))
    until(lambda: bool(line.had))
    with lease.hold(*line.device()):
        until(lambda: len(line.tickets) == 1)
        builds = line.wait("builds most of the time", suite)
        before = len(line.had)
    assert builds.wait(60) == 0
    assert line.had[before] == "builds most of the time"


def test_a_killed_process_that_waited_is_passed_over(line: Line) -> None:
    with lease.hold(*line.device()):
        first, second = line.wait("first", Share("1")), line.wait("second", Share("2"))
        first.kill()
        first.wait()
        assert len(line.tickets) == 2  # what it leaves behind counts for nothing
    assert second.wait(60) == 0
    assert line.had == ["second"]
    assert not line.tickets


def test_a_halted_process_at_the_head_of_the_line_does_not_keep_the_device_free(line: Line) -> None:
    line.patience_s = 0.1
    with lease.hold(*line.device()):
        first = line.wait("first", Share("1", is_now=True))
        first.send_signal(signal.SIGSTOP)
        until(lambda: "T (stopped)" in Path(f"/proc/{first.pid}/status").read_text())
        second = line.wait("second", Share("2"))
    assert second.wait(60) == 0
    assert line.had == ["second"]


def test_each_of_two_devices_has_its_own_line_and_one_may_stand_in_both(line: Line) -> None:
    one, two = line.device("one"), line.device("two")
    with ExitStack() as held:
        held.enter_context(lease.hold(*one))
        first = line.wait("waits for one", Share("1", is_now=True), one)
        second = held.enter_context(ExitStack())
        assert second.enter_context(turns.hold(*two)) == 0  # nobody waits for this one
        either = line.wait("waits for either", Share("2"), one, two)
        second.close()
        assert either.wait(60) == 0
        assert line.had == ["waits for either"]
    assert first.wait(60) == 0


def test_of_several_devices_the_first_that_is_free_is_had(tmp_path: Path) -> None:
    one, two = (tmp_path / "one",), (tmp_path / "two",)
    looks = 0
    with ExitStack() as held:
        assert held.enter_context(turns.hold_first([one, two]))[0] == 0
        second = held.enter_context(ExitStack())
        assert second.enter_context(turns.hold_first([one, two]))[0] == 1

        def rest(seconds: float) -> None:
            nonlocal looks
            looks += 1
            if looks == 2:
                second.close()

        with turns.hold_first([one, two], rest) as (which, waited_s):
            assert (which, looks) == (1, 2)
            assert waited_s >= 0
    assert all(is_free(*files) for files in (one, two))


def is_free(*files: Path) -> bool:
    with lease.held_if_free(*files) as free:
        return free


def test_a_device_that_nobody_waits_for_is_had_with_its_lock_alone(tmp_path: Path) -> None:
    told: list[Place] = []
    with turns.hold(tmp_path / "a.lock", told=told.append) as waited_s:
        assert waited_s == 0
        assert [one.name for one in tmp_path.iterdir()] == ["a.lock"]
    assert [one.name for one in tmp_path.iterdir()] == ["a.lock"]
    assert told == []


def test_who_waits_is_told_how_it_stands(line: Line) -> None:
    told: list[Place] = []
    with ExitStack() as held:
        held.enter_context(lease.hold(*line.device()))

        def hear(place: Place) -> None:
            told.append(place)
            held.close()

        share = Share("told", 2.0, is_now=True)
        with turns.on_account(share), turns.hold(*line.device(), told=hear):
            assert len(line.tickets) == 1  # of one who uses it, so that those who come anew see where it stands
    assert [(one.is_now, one.weight, one.used_s) for one in told] == [(True, 2.0, 0.0)]
    assert "a person waits for it" in told[0].words
    assert not line.tickets


def test_one_that_comes_anew_starts_where_those_in_line_stand() -> None:
    assert Had().among([]) == Had()
    assert Had().among([70.0, 50.0]).place == 50.0
    assert Had(9.0, 45.0, 10.0).among([70.0, 50.0]).place == 45.0, "of what it has not used it keeps one turn"
    assert Had(9.0, 3.0, 10.0).among([70.0, 50.0]).place == 40.0
    assert Had(9.0, 1000.0, 10.0).among([70.0, 50.0]).place == 80.0, "old debts are forgotten but for one turn"
    assert Had(5.0, 1.0, 1.0).after(6.0, 2.0) == Had(11.0, 4.0, 3.0)


def test_what_was_used_while_nobody_waited_is_counted_and_held_against_nobody(line: Line) -> None:
    with turns.on_account(Share("alone")):
        for _ in range(3):
            with turns.hold(*line.device()):
                time.sleep(0.002)
        told: list[Place] = []
        with ExitStack() as held:
            held.enter_context(lease.hold(*line.device()))
            with turns.hold(*line.device(), told=lambda place: (told.append(place), held.close())):  # type: ignore[func-returns-value]
                pass
    assert told[0].used_s >= 0.006
    assert told[0].position == 0.0


@contextmanager
def locked(path: Path, text: str) -> Iterator[None]:
    """A file as a living stranger may leave it in the line."""
    with path.open("w") as file:
        file.write(text)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_what_strangers_put_into_the_folder_of_tickets_blocks_nobody(line: Line, tmp_path: Path) -> None:
    with lease.hold(*line.device()):
        first = line.wait("first", Share("1"))
    assert first.wait(60) == 0
    queue = tmp_path / turns.QUEUE
    assert queue.stat().st_mode & 0o7777 == 0o1777
    secret = tmp_path / "secret"
    secret.write_text("{}")
    (queue / "ticket-link").symlink_to(secret)
    os.mkfifo(queue / "ticket-pipe")
    (queue / "ticket-folder").mkdir()
    lock = line.device()[0].name
    evil = {"share": {"is_now": True}, "wanted": [{"locks": [lock], "used": "../secret"}], "since": 0.0}
    with ExitStack() as held:
        for number, text in enumerate(("", "{", "[]", "null", "{}", "[" * 99999, json.dumps(evil), "\0" * 99)):
            held.enter_context(locked(queue / f"ticket-{number}", text))
        with turns.hold(*line.device()) as waited_s:
            assert waited_s == 0
    assert secret.read_text() == "{}"


def test_without_a_folder_to_queue_in_the_kernel_decides(line: Line) -> None:
    for name in (turns.QUEUE, turns.USED):
        (line.folder / name).symlink_to(line.folder)
    child = line.add("one", Share("1"))
    with lease.hold(*line.device()):
        line.go(child)
    assert child.wait(60) == 0
    assert line.had == ["one"]
    assert {one.name for one in line.folder.iterdir()} == {"log", "a.lock", turns.QUEUE, turns.USED}


def test_figures_are_written_into_no_file_that_has_another_name(line: Line) -> None:
    """A stranger may link any file of ours under the name that our figures would have."""
    precious, used = line.folder / "precious", line.folder / turns.USED
    precious.write_text("mine")
    used.mkdir()
    with turns.on_account(Share("linked")), ExitStack() as held:
        os.link(precious, used / turns._wanted("linked", line.device()).used)
        held.enter_context(lease.hold(*line.device()))
        with turns.hold(*line.device(), told=lambda place: held.close()):
            pass
    assert precious.read_text() == "mine"


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become other users")
def test_a_ticket_of_another_user_that_cannot_be_read_does_not_count_and_one_that_can_does() -> None:
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path"
        "\nfrom engine.evaluator.machine import turns"
        "\nos.setgroups([]); os.setgid(65534); os.setuid(65534)"
        "\npath = Path(sys.argv[1])"
        '\nprint(len(list(turns._rivals(path.parent, turns._wanted("", (path,))))), flush=True)'
        "\nwith turns.hold(path): print('held')"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as name, ExitStack() as held:  # pytest's own are closed to others
        folder = Path(name)
        folder.chmod(0o1777)
        line = Line(folder, held)
        words = [sys.executable, "-c", program, str(*line.device()), str(ROOT)]
        with lease.hold(*line.device()):
            waiting = line.wait("root", Share("1"))
            other = held.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            assert other.stdout is not None
            assert other.stdout.readline() == "1\n"
        assert (waiting.wait(60), other.wait(60), other.stdout.read()) == (0, 0, "held\n")
        with lease.hold(*line.device()):
            line.wait("root", Share("1"))
            line.tickets[0].chmod(0o600)
            other = held.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            assert other.stdout is not None
            assert other.stdout.readline() == "0\n"
        assert (other.wait(60), other.stdout.read()) == (0, "held\n")
