"""Locks that strangers share: where they lie, who may take them, and what a hostile file in their place does."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine.errors import ToolchainError
from engine.evaluator.machine import lease
from engine.evaluator.toolchains import cpu

ROOT = Path(__file__).resolve().parents[4]
CHILD = """
import sys
from engine.evaluator.machine import lease
from engine.evaluator.toolchains import cpu
with lease.hold(*cpu.lease_files()):
    print("held", flush=True)
    sys.stdin.read()
"""


def is_free(*files: Path) -> bool:
    with lease.held_if_free(*files) as free:
        return free


def test_engines_of_two_homes_share_the_processors_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path))
    other = os.environ | {"TILEWRIGHT_HOME": str(tmp_path / "other home")}
    words = [sys.executable, "-c", CHILD]
    with subprocess.Popen(words, env=other, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engine:
        assert engine.stdin is not None
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"held\n"
        assert not is_free(*cpu.lease_files())
        engine.stdin.close()
        with lease.hold(*cpu.lease_files()) as waited_s:
            assert waited_s >= 0
    assert is_free(*cpu.lease_files())


def test_sets_of_processors_that_overlap_exclude_each_other_and_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path))
    files = []
    for mine in ({0, 1}, {1, 2}, {2, 3}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, mine=mine: mine)
        files.append(cpu.lease_files())
    with lease.hold(*files[0]):
        assert [is_free(*one) for one in files] == [False, False, True]


def test_the_folder_is_one_that_every_user_finds_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private, plain, shared = (tmp_path / name for name in ("private", "plain", "shared"))
    for folder, mode in ((private, 0o1755), (plain, 0o777), (shared, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
    monkeypatch.delenv("TILEWRIGHT_LEASES")
    monkeypatch.setenv("TMPDIR", str(private))
    monkeypatch.setenv("TILEWRIGHT_HOME", str(private))
    monkeypatch.setattr(lease, "SHARED", (tmp_path / "missing", private, plain, shared))
    assert lease.of_host("cpu-0") == (shared / "tilewright.cpu-0.lock",)
    monkeypatch.setattr(lease, "SHARED", (private, plain))
    with pytest.raises(ToolchainError, match="Set TILEWRIGHT_LEASES"):
        lease.of_host("cpu-0")


def test_every_user_may_take_a_lock_whatever_the_umask_of_its_maker(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    before = os.umask(0o077)
    try:
        with lease.hold(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o644
    finally:
        os.umask(before)
    assert [one.name for one in tmp_path.iterdir()] == ["a.lock"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become other users")
def test_two_users_exclude_each_other() -> None:
    """The second may read the first one's file and not write to it; that is enough for a lock."""
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from pathlib import Path"
        "\nfrom engine.evaluator.machine import lease"
        "\nos.setgroups([]); os.setgid(65534); os.setuid(65534)"
        "\nwith lease.held_if_free(Path(sys.argv[1])) as free: print(free)"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to others
        Path(folder).chmod(0o1777)
        path = Path(folder) / "a.lock"
        words = [sys.executable, "-c", program, str(path), str(ROOT)]
        with lease.hold(path):
            held = subprocess.run(words, capture_output=True, text=True, check=True)
        free = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (held.stdout, free.stdout) == ("False\n", "True\n")


def test_a_link_a_pipe_or_a_folder_in_a_locks_place_is_told_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    link, pipe, folder = (tmp_path / f"{name}.lock" for name in ("link", "pipe", "folder"))
    link.symlink_to(target)
    os.mkfifo(pipe)
    folder.mkdir()
    for path in (link, pipe, folder):
        with pytest.raises(ToolchainError, match=f"{path} cannot be used: .*Remove it"), lease.hold(path):
            pass
    assert not target.exists()


def test_a_lock_that_was_replaced_while_it_was_waited_for_is_taken_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with lease.hold(path):
        old = lease._opened(path)
        path.unlink()
        assert not lease._is_still_at(old, path)
        with lease.held_if_free(path) as free:
            assert free
            assert not lease._is_still_at(old, path)
        os.close(old)
