"""Starts a child in a sandbox and tells how it ended. Knows neither candidate nor compiler.

    evaluator ── keeper (leaves the namespaces) ── first process inside (mounts the file system, reaps) ── the child

Where no namespaces are to be had the keeper becomes the child.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.evaluator.machine import processes
from engine.evaluator.machine.worker_limits import Limits
from engine.evaluator.sandbox import filesystem, filters, linux
from engine.evaluator.sandbox.filesystem import SandboxFilesystem
from engine.evaluator.sandbox.isolation import Isolation

READY_S = 60.0
FIRST_USER, USERS = 20_000, 40_000
MOST_KILLABLE = 1000


class OwnFailure(Exception):
    """Something of ours broke inside the evaluation processes; the engine turns it into a ToolchainError."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A child to start: what it may see and use, and where its standard output goes.

    `scratch` is its own folder where it has no file system of its own; `keep` are descriptors that stay open.
    """

    isolation: Isolation
    filesystem: SandboxFilesystem
    limits: Limits
    scratch: Path
    output: int
    keep: tuple[int, ...] = ()


class SandboxedChild:
    """A child that has been started: `pid` is the keeper's, which ends with it."""

    def __init__(self, pid: int, reports: int, has_namespaces: bool) -> None:
        self.pid = pid
        self._reports = reports
        self._has_namespaces = has_namespaces
        self._status: int | None = None

    @property
    def inner_pid(self) -> int:
        """The child's own process number as seen from here; the keeper's when it is gone."""
        if self._has_namespaces:
            for first in processes.children(self.pid):
                return min(processes.children(first), default=self.pid)
        return self.pid

    def members(self) -> list[int]:
        """The child and everything below it, without keeper and first process."""
        if self._has_namespaces:
            return [pid for first in processes.children(self.pid) for pid in processes.descendants(first)]
        return [self.pid, *processes.descendants(self.pid)]

    def memory(self) -> int:
        """Bytes that it and everything below it hold, those of its memory-backed folders included."""
        written = filesystem.bytes_written(self.inner_pid) if self._has_namespaces else 0
        return processes.resident(self.members()) + written

    def is_over(self) -> bool:
        """Reap it if it has ended."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._finish(os.waitstatus_to_exitcode(status))
        return self._status is not None

    def kill(self) -> None:
        """End it and everything below it."""
        if self._status is None and not self.is_over():
            processes.kill_tree(self.pid)
            _, status = os.waitpid(self.pid, 0)
            self._finish(os.waitstatus_to_exitcode(status))

    @property
    def status(self) -> int:
        """Exit status, negative for a signal; it must be over."""
        assert self._status is not None
        return self._status

    def _finish(self, keeper: int) -> None:
        """The first process inside tells the child's true status; without it the keeper's own counts."""
        message = _line(self._reports, 0.0)
        os.close(self._reports)
        self._status = message.get("status", keeper)


def start(spec: ChildSpec, body: Callable[[], None]) -> SandboxedChild:
    """Run `body` in a child; returns when its sandbox stands. Must be called before this process uses OpenMP.

    Raises:
        OwnFailure: the sandbox cannot be raised.
    """
    parent = os.getpid()
    user = FIRST_USER + parent % USERS if spec.isolation.has_own_user else os.getuid()
    _prepare_folders(spec, user)
    reports, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_keeper(spec, body, user, tell, parent)
    os.close(tell)
    started = SandboxedChild(pid, reports, spec.isolation.has_namespaces)
    message = _line(reports, READY_S)
    if "ready" not in message:
        started.kill()
        raise OwnFailure(f"the sandbox around a child process could not be set up: {message.get('error', 'it ended')}")
    return started


def _be_keeper(spec: ChildSpec, body: Callable[[], None], user: int, tell: int, parent: int) -> None:
    """Never returns: a forked child must not run its parent's code or exit handlers."""
    status = 1
    try:
        processes.die_with_parent(parent)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(str(MOST_KILLABLE))
        if spec.isolation.has_namespaces:
            _leave_namespaces(spec.isolation)
            opened = _opened()  # later the sandbox's /proc does not know this process
            first = os.fork()
            if first == 0:
                _be_first(spec, body, user, tell)
            _close(opened, keep=())
            os.waitpid(first, 0)
            status = 0
        else:
            _be_child(spec, body, user, tell)
    except BaseException:  # noqa: BLE001 - the only other way out would be up into the evaluator's own frames
        _tell(tell, {"error": traceback.format_exc(limit=-3)})
    finally:
        os._exit(status)


def _leave_namespaces(isolation: Isolation) -> None:
    if isolation.needs_user_namespace:
        user, group = os.getuid(), os.getgid()
        linux.unshare(linux.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    linux.unshare(linux.NAMESPACES)


def _be_first(spec: ChildSpec, body: Callable[[], None], user: int, tell: int) -> None:
    """The first process of the namespace: when it ends, the kernel ends every other one inside.

    It sleeps while the child is stopped and goes on: a process that waits in wait(2) is woken by each of that, and on a
    busy machine what it interrupts, the child's own thread, then waits for its next turn.
    """
    try:
        processes.die_with(signal.SIGKILL)
        filesystem.build(spec.filesystem, user)
        inner = os.fork()
        if inner == 0:
            _be_child(spec, body, user, tell)
        _close(_opened(), keep=[tell])
        linux.hear_ends_alone()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == inner:
                _tell(tell, {"status": os.waitstatus_to_exitcode(status)})
                os._exit(0)
            if not pid:
                signal.sigwait([signal.SIGCHLD])
    except BaseException:  # noqa: BLE001 - see above
        _tell(tell, {"error": traceback.format_exc(limit=-3)})
    finally:
        os._exit(1)


def _be_child(spec: ChildSpec, body: Callable[[], None], user: int, tell: int) -> None:
    status = 1
    try:
        _confine(spec, user, tell)
        _tell(tell, {"ready": True})
        os.close(tell)
    except BaseException:  # noqa: BLE001 - see above
        _tell(tell, {"error": traceback.format_exc(limit=-3)})
        os._exit(1)
    try:
        body()
        status = 0
    except BaseException:  # noqa: BLE001 - see above
        traceback.print_exc()
    finally:
        os._exit(status)


def _confine(spec: ChildSpec, user: int, tell: int) -> None:
    """Everything that the child gives up, in the order in which it still may."""
    isolation, parent = spec.isolation, os.getppid()
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(spec.output, 1)
    os.dup2(spec.output, 2)
    _close(_opened(), keep=[0, 1, 2, tell, *spec.keep])
    os.setsid()
    scratch = filesystem.SCRATCH if isolation.has_namespaces else spec.scratch
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
    for kind, value in _values(spec).items():
        _, hard = resource.getrlimit(kind)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    if isolation.has_own_user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        # A change of user clears both: /proc/self would be closed to itself, and the child would outlive its parent.
        linux.prctl(linux.PR_SET_DUMPABLE, 1)
        processes.die_with_parent(parent)
    os.chdir(scratch)
    if isolation.has_own_user or isolation.needs_user_namespace:
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if isolation.landlock:
        filters.restrict_files(
            filesystem.readable_in(spec.filesystem, isolation.has_namespaces),
            filesystem.writable_in(spec.filesystem, scratch, isolation.has_namespaces),
        )
    if isolation.has_seccomp:
        filters.refuse_calls(
            own_pid_only=not isolation.has_namespaces and isolation.landlock < 6,
            has_local_sockets=bool(spec.filesystem.devices),
        )


def _prepare_folders(spec: ChildSpec, user: int) -> None:
    spec.filesystem.mount_point.mkdir(parents=True, exist_ok=True)
    spec.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    if spec.isolation.has_own_user:
        for folder in (spec.scratch, *spec.filesystem.writable):
            os.chown(folder, user, user)


def _values(spec: ChildSpec) -> dict[int, int]:
    limits = spec.limits
    # Counted per user: of a user of its own it binds the child alone, of the engine's user it would bind everybody.
    is_alone = spec.isolation.has_own_user or spec.isolation.needs_user_namespace
    return {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: limits.address_space,
        resource.RLIMIT_FSIZE: limits.file_size,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: limits.processor_s,
        **({resource.RLIMIT_NPROC: limits.processes} if is_alone else {}),
    }


def _opened() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


def _close(opened: Iterable[int], keep: Iterable[int]) -> None:
    for descriptor in set(opened) - set(keep):
        with suppress(OSError):
            os.close(descriptor)


def _tell(pipe: int, message: dict[str, object]) -> None:
    with suppress(OSError):
        os.write(pipe, json.dumps(message).encode() + b"\n")


def _line(pipe: int, limit_s: float) -> dict[str, Any]:
    """One report, `{}` when there is none in time. A report is short, so it arrives in one piece."""
    text, deadline = b"", time.monotonic() + limit_s
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(pipe, 1) if ready else b""
        if not piece:
            return {}
        text += piece
    report: dict[str, Any] = json.loads(text)
    return report


FILE_SIZE = 512 << 20
UNLIMITED = 1 << 45
TICK_S = 0.002
WATCH_S = 0.25


@dataclass(frozen=True, slots=True)
class Done:
    """A finished command: exit status (negative for a signal), its bounded output, whether a limit ended it, and
    whether it said more than is kept."""

    status: int
    output: str
    is_timeout: bool = False
    is_memory: bool = False
    is_cut: bool = False


def run(
    command: list[str],
    cwd: Path,
    limit_s: float,
    isolation: Isolation | None = None,
    readable: tuple[Path, ...] = (),
    max_output: int = 4_000_000,
) -> Done:
    """Run it in `cwd`, the one folder it may write to; its whole tree is ended at the limit.

    Raises:
        OwnFailure: the sandbox cannot be raised.
    """
    limits = Limits(processor_s=int(limit_s) * 4 + 60, file_size=FILE_SIZE)
    if isolation and isolation.devices:
        # A GPU's driver reserves address space for all memory of the machine; what is used is watched still.
        limits = replace(limits, address_space=UNLIMITED)
    environment = _environment(os.environ, cwd)

    def become() -> None:
        os.chdir(cwd)
        os.execve(command[0], command, environment)

    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory(prefix="room.") as filesystem:
        isolation = isolation or Isolation()
        devices = tuple(map(Path, isolation.devices))
        shown = SandboxFilesystem(Path(filesystem), (Path(command[0]).parent, *readable), (cwd,), devices=devices)
        child = start(ChildSpec(isolation, shown, limits, cwd, output.fileno()), become)
        try:
            is_timeout, is_memory = _wait(child, limit_s, limits.tree_memory)
        finally:
            child.kill()
        output.seek(0)
        text = output.read(max_output).decode(errors="replace")
        return Done(child.status, text, is_timeout, is_memory, is_cut=bool(output.read(1)))


def _wait(child: SandboxedChild, limit_s: float, memory: int) -> tuple[bool, bool]:
    """Whether time or memory ran out; polls, since the compiler's own processes are what must be watched."""
    deadline, watch = time.monotonic() + limit_s, time.monotonic() + WATCH_S
    while not child.is_over():
        now = time.monotonic()
        if now > deadline:
            return True, False
        if now > watch:
            watch = now + WATCH_S
            if child.memory() > memory:
                return False, True
        time.sleep(TICK_S)
    return False, False


def _environment(variables: Mapping[str, str], folder: Path) -> dict[str, str]:
    """A compiler needs no malloc settings of ours, and its temporary files belong to the build folder."""
    return {
        **{k: v for k, v in variables.items() if not k.startswith("MALLOC_")},
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
    }
