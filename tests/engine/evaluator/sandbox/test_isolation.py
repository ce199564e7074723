"""Every isolation that this system offers, with a child in it that tries to get out."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.evaluator.machine import processes
from engine.evaluator.machine.worker_limits import Limits
from engine.evaluator.sandbox import (
    ChildSpec,
    Isolation,
    OwnFailure,
    SandboxedChild,
    SandboxFilesystem,
    environment,
    filters,
    linux,
    start,
)
from engine.evaluator.sandbox import probe as probing
from engine.evaluator.sandbox.probe import probe
from storage.results.check_records import CheckOutcome

IS_ROOT = os.getuid() == 0
VERSION = filters.landlock_version()
SETS = {
    "room, own user": Isolation(True, False, True, VERSION, True),
    "file system, user namespace": Isolation(True, True, False, VERSION, True),
    "room without Landlock": Isolation(True, True, False, 0, True),
    "Landlock and filter": Isolation(False, False, False, VERSION, True),
}
HERE = {name: isolation for name, isolation in SETS.items() if IS_ROOT or not isolation.has_own_user}


@pytest.fixture(params=HERE)
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return HERE[request.param]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Readable by everybody: what keeps a child out must be the sandbox, not the folder's mode."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def behind(isolation: Isolation, folder: Path, body: Callable[[], Any], limits: Limits | None = None) -> Any:
    """What `body` returns when it runs in a sandbox, or how it died."""
    with tempfile.TemporaryFile() as output:
        filesystem = SandboxFilesystem(folder / "room", bytes_writable=(limits or Limits()).scratch)
        wanted = ChildSpec(isolation, filesystem, limits or Limits(), folder / "scratch", output.fileno())
        child = start(wanted, lambda: tell(body()))
        seen = finish(child)
        output.seek(0)
        text = output.read().decode()
    assert list((folder / "room").iterdir()) == []
    assert seen.isdisjoint(processes.descendants(os.getpid()))
    return json.loads(text) if child.status == 0 else {"status": child.status, "text": text}


def tell(found: object) -> None:
    os.write(1, json.dumps(found).encode())


def finish(child: SandboxedChild) -> set[int]:
    """Every process of the child that was seen until its end."""
    seen = {child.pid}
    while not child.is_over():
        seen.update(child.members())
    return seen


def outcome(act: Callable[[], object]) -> str:
    """`done`, or the name of the error."""
    try:
        act()
    except OSError as error:
        return type(error).__name__ if error.errno is None else os.strerror(error.errno)
    return "done"


def test_files_outside_are_neither_read_nor_written_nor_made(isolation: Isolation, folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("key")
    secret.chmod(0o666)
    folder.chmod(0o777)

    def body() -> dict[str, str]:
        return {
            "read": outcome(secret.read_text),
            "write": outcome(lambda: secret.write_text("x")),
            "make": outcome(lambda: (folder / "new").touch()),
            # Opened for appending and left alone: should the sandbox fail, nothing is harmed.
            "usr": outcome(lambda: Path("/usr/bin/env").open("ab").close()),
            "package": outcome(lambda: Path(json.__file__).open("ab").close()),
            "scratch": outcome(lambda: Path("mine").write_text("x")),
            "library": outcome(Path(json.__file__).read_bytes),
        }

    found = behind(isolation, folder, body)
    assert found["scratch"] == found["library"] == "done"
    assert "done" not in {found[name] for name in ("read", "write", "make", "usr", "package")}
    assert secret.read_text() == "key"


def test_a_room_holds_nothing_of_the_host(folder: Path) -> None:
    isolation = next(isolation for isolation in HERE.values() if isolation.has_namespaces)
    found = behind(
        isolation, folder, lambda: [[path.name for path in Path(name).iterdir()] for name in ("/", "/tmp", "/dev")]
    )
    shown = {part for path in SandboxFilesystem(folder / "room").visible for part in path.parts}
    assert set(found[0]) <= shown | {"dev", "proc", "tmp"}
    assert set(found[1]) <= shown
    assert set(found[2]) == {"null", "zero", "full", "random", "urandom", "shm"}


def test_no_other_process_is_signalled_or_read(isolation: Isolation, folder: Path) -> None:
    parent, libc = os.getpid(), ctypes.CDLL(None, use_errno=True)
    here = ctypes.create_string_buffer(b"in the parent")

    def read_parent() -> int:
        there = ctypes.create_string_buffer(16)
        local, remote = (ctypes.c_void_p * 2)(), (ctypes.c_void_p * 2)()
        local[0], local[1] = ctypes.addressof(there), 8
        remote[0], remote[1] = ctypes.addressof(here), 8
        return int(libc.process_vm_readv(parent, local, 1, remote, 1, 0))

    def body() -> dict[str, Any]:
        return {
            "signal": outcome(lambda: os.kill(parent, 0)),
            "trace": int(libc.ptrace(16, parent, 0, 0)),
            "read": read_parent(),
            "environment": outcome(lambda: Path(f"/proc/{parent}/environ").read_bytes()),
            "memory": outcome(lambda: open(f"/proc/{parent}/mem", "rb").close()),
        }

    found = behind(isolation, folder, body)
    assert "done" not in {found["signal"], found["environment"], found["memory"]}
    assert found["trace"] == found["read"] == -1


def test_no_network_not_even_this_machine(isolation: Isolation, folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        found = behind(isolation, folder, lambda: outcome(lambda: socket.create_connection(address, 2).close()))
    assert found != "done"


def test_no_way_to_more_privileges(isolation: Isolation, folder: Path) -> None:
    def body() -> dict[str, str]:
        return {
            "namespace": outcome(lambda: linux.unshare(linux.CLONE_NEWUSER)),
            "mount": outcome(lambda: linux.mount("none", Path("/tmp"), "tmpfs", 0)),
            "root": outcome(lambda: linux.enter_root(Path("/tmp"))),
            "memfd": outcome(lambda: os.memfd_create("x")),
        }

    assert "done" not in behind(isolation, folder, body).values()


def test_a_fork_storm_meets_its_limit(folder: Path) -> None:
    isolation = next(
        isolation for isolation in HERE.values() if isolation.has_own_user or isolation.needs_user_namespace
    )
    if IS_ROOT and not isolation.has_own_user:
        pytest.skip("the limit does not bind root")

    def body() -> int:
        count = 0
        with suppress(OSError):
            while count < 200:
                if os.fork() == 0:
                    while True:
                        os.kill(os.getpid(), 19)
                count += 1
        return count

    assert 10 < behind(isolation, folder, body, Limits(processes=40)) < 45


def test_memory_files_and_scratch_have_limits(isolation: Isolation, folder: Path) -> None:
    def fill() -> None:
        for number in range(64):
            Path(f"{number}").write_bytes(bytes(1 << 20))

    def body() -> dict[str, str]:
        try:
            memory = f"{len(bytearray(4 << 30))}"
        except MemoryError:
            memory = "refused"
        return {"memory": memory, "disk": outcome(fill)}

    found = behind(isolation, folder, body, Limits(address_space=3 << 30, scratch=16 << 20))
    assert found["memory"] == "refused"
    assert found["disk"] != "done" or not isolation.has_namespaces


def test_a_child_leaves_nothing_running_behind(folder: Path) -> None:
    isolation = next(isolation for isolation in HERE.values() if isolation.has_namespaces)

    def body() -> int:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            while True:
                pass
        return 1

    assert behind(isolation, folder, body) == 1


def test_how_a_child_died_is_known_through_the_sandbox(isolation: Isolation, folder: Path) -> None:
    assert behind(isolation, folder, lambda: os._exit(7))["status"] == 7
    assert behind(isolation, folder, lambda: os.abort())["status"] == -6
    assert behind(isolation, folder, lambda: ctypes.string_at(0))["status"] == -11


def test_a_sandbox_that_cannot_be_set_up_is_our_failure_and_not_a_verdict(folder: Path) -> None:
    with pytest.raises(OwnFailure, match="could not be set up"):
        behind(SETS["file system, user namespace"], folder, lambda: 1, Limits(scratch=-1))


def test_the_strongest_set_that_holds_is_found_and_full_isolation_can_be_demanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = probe()
    assert {check_record.standing for check_record in found.checks()} <= {CheckOutcome.HELD, CheckOutcome.ABSENT}
    monkeypatch.setenv("TILEWRIGHT_ISOLATION", "full")
    if found.is_full:
        assert probe() == found
    else:
        with pytest.raises(OwnFailure, match="TILEWRIGHT_ISOLATION"):
            probe()


def test_isolation_in_which_a_child_does_not_end_is_not_used_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probing, "TRIAL_S", 0.1)
    monkeypatch.setattr(probing, "_try_everything", lambda *seen: time.sleep(600))
    found = probe()
    assert not found.is_full
    assert any("did not end within 0.1 s" in why for why in found.missing.values())


def test_a_missing_wall_is_absent_with_its_reason() -> None:
    proofs = {
        check_record.check: check_record
        for check_record in Isolation(missing={"own file system": "unshare: not permitted"}).checks()
    }
    assert proofs["own file system"].standing is CheckOutcome.ABSENT
    assert "not permitted" in proofs["own file system"].detail
    assert proofs["limits on time, memory, processes, files and output"].standing is CheckOutcome.HELD


def test_no_descriptor_and_no_capability_of_the_parent_is_left(isolation: Isolation, folder: Path) -> None:
    inherited = os.open(folder, os.O_RDONLY)
    try:
        found = behind(
            isolation,
            folder,
            lambda: [
                outcome(lambda: os.fstat(inherited)),
                Path("/proc/self/status").read_text().split("CapEff:\t")[1][:16],
            ],
        )
    finally:
        os.close(inherited)
    assert found[0] != "done"
    assert int(found[1], 16) == 0 or not (isolation.has_own_user or isolation.needs_user_namespace)


def test_only_named_variables_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    monkeypatch.setenv("TZ", "UTC")
    kept = environment(2)
    assert kept["TZ"] == "UTC"
    assert kept["OMP_NUM_THREADS"] == "2"
    assert not {"OPENAI_API_KEY", "LD_PRELOAD"} & kept.keys()
    assert "secret" not in kept.values()
