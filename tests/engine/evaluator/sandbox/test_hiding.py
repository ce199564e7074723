"""Folders hidden from programs of this user's, by each way that this system offers: the program tries to reach them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.evaluator.machine import processes
from engine.evaluator.sandbox import filters, hiding
from engine.evaluator.sandbox.hiding import HidingError, Way
from tests.engine.test_supervisor import until

ROOT = Path(__file__).resolve().parents[4]
TRIES = """
import os, sys
from pathlib import Path
secret, other, outside = (Path(word) for word in sys.argv[1:4])
parent = int(sys.argv[4])
def outcome(act):
    try:
        act()
    except OSError:
        return "refused"
    return "done"
print(
    outcome(secret.read_text), outcome(lambda: secret.write_text("x")),
    outcome(lambda: (secret.parent / "new").write_text("x")), outcome(secret.unlink),
    outcome(Path(f"/proc/{parent}/root{secret}").read_text), outcome(Path(f"/proc/{parent}/environ").read_text),
    outcome(lambda: os.rename(secret.parent, other / "moved")),
    outcome(lambda: os.link(secret, other / "linked")), outcome((other / "file").read_text),
    outcome(lambda: outside.write_text("mine")), outcome(outside.read_text), outcome(lambda: os.listdir("/")),
)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("home/keys", "home/runs", "other", "scratch"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/keys/work").write_text("sk-planted")
    (tmp_path / "other/file").write_text("open")
    return tmp_path


@pytest.fixture(params=[*Way])
def way(request: pytest.FixtureRequest) -> Way:
    if request.param is Way.LANDLOCK and not filters.landlock_version():
        pytest.skip("this system has no Landlock")
    return Way(request.param)


def in_child(body: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_what_is_hidden_is_neither_read_nor_changed_and_everything_else_is(folder: Path, way: Way) -> None:
    act = {Way.MOUNTS: hiding._by_mounts, Way.LANDLOCK: hiding._by_landlock}[way]
    said, parent = folder / "said", os.getpid()
    words = [str(folder / name) for name in ("home/keys/work", "other", "scratch/made")]

    def body() -> None:
        with said.open("wb") as file:
            os.dup2(file.fileno(), 1)
        act([folder / "home"])
        os.execv(sys.executable, [sys.executable, "-c", TRIES, *words, str(parent)])

    assert in_child(body) == 0
    assert said.read_text().split() == ["refused"] * 8 + ["done"] * 4
    assert (folder / "home/keys/work").read_text() == "sk-planted"
    assert sorted(path.name for path in (folder / "home").iterdir()) == ["keys", "runs"]


def test_what_is_kept_is_read_and_not_changed(folder: Path, way: Way) -> None:
    act = {Way.MOUNTS: hiding._by_mounts, Way.LANDLOCK: hiding._by_landlock}[way]
    said, other = folder / "said", folder / "other"
    script = (
        f"cat {other}/file; echo x > {other}/file || rm {other}/file || touch {other}/new; touch {folder}/scratch/new"
    )

    def body() -> None:
        with said.open("wb") as file:
            os.dup2(file.fileno(), 1)
        act([folder / "home"], [other])
        os.execv("/bin/sh", ["sh", "-c", script])

    assert in_child(body) == 0
    assert said.read_text() == "open"
    assert [path.name for path in other.iterdir()] == ["file"]
    assert (folder / "scratch/new").exists()


def test_it_is_tried_out_before_anything_relies_on_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hiding.tried(folder / "home") in set(Way)
    monkeypatch.setattr(hiding, "_by_mounts", lambda folders, kept: None)
    monkeypatch.setattr(hiding, "_by_landlock", lambda folders, kept: None)
    with pytest.raises(HidingError, match="Landlock: tried and did not hold"):
        hiding.tried(folder / "home")


@pytest.fixture
def guard(folder: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(script: str) -> subprocess.Popen[bytes]:
        _, failed = os.pipe()
        words = hiding.guarded(os.getpid(), failed, folder / "scratch", [folder / "home"])
        started.append(
            subprocess.Popen([*words, "sh", "-c", script], cwd=ROOT, pass_fds=[failed], stdout=subprocess.PIPE)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_guard_ends_what_the_program_leaves_behind_in_whatever_session(
    guard: Callable[[str], subprocess.Popen[bytes]],
) -> None:
    program = guard("setsid sh -c 'trap \"\" TERM HUP; sleep 600' & echo $!; pwd; exit 3")
    assert program.stdout is not None
    left, place = program.stdout.read().decode().split()
    assert program.wait() == 3
    assert place.endswith("/scratch")
    assert not Path(f"/proc/{left}").exists()


def test_a_guard_that_is_told_to_end_ends_everything_with_it(guard: Callable[[str], subprocess.Popen[bytes]]) -> None:
    program = guard("trap '' TERM; setsid sleep 600 & sleep 600")
    until(lambda: len(processes.descendants(program.pid)) >= 3, "the program and what it starts")
    below = processes.descendants(program.pid)
    program.terminate()
    assert program.wait() != 0
    until(lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()], "all of them to be gone")


def test_a_program_ends_with_the_engine_that_asked_it(folder: Path) -> None:
    code = (
        "import os, subprocess, sys; from pathlib import Path; from engine.evaluator.sandbox import hiding;"
        "_, failed = os.pipe(); words = hiding.guarded(os.getpid(), failed, Path(sys.argv[1]), [Path(sys.argv[2])]);"
        "subprocess.run([*words, 'sh', '-c', 'setsid sleep 600 & sleep 600'], pass_fds=[failed])"
    )
    words = [sys.executable, "-c", code, str(folder / "scratch"), str(folder / "home")]
    with subprocess.Popen(words, cwd=ROOT) as engine:
        until(lambda: len(processes.descendants(engine.pid)) >= 4, "the program and what it starts")
        below = processes.descendants(engine.pid)
        engine.kill()
    until(lambda: not [pid for pid in below if is_at_work(pid)], "all of them to be gone")


def is_at_work(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
