"""What stands between a child and this machine, in one record that travels with an evaluation, and its environment."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from storage.results.check_records import CheckOutcome, CheckRecord, Group

LIMITS = "limits on time, memory, processes, files and output"
ENVIRONMENT = "environment without keys"
FILES = "own file system"
PROCESSES = "own process tree"
NETWORK = "no network"
USER = "own user, no privileges"
CALLS = "system call filter"
NAMES = (LIMITS, ENVIRONMENT, FILES, PROCESSES, NETWORK, USER, CALLS)
PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "TILEWRIGHT_ISOLATION",
    "TILEWRIGHT_CUTLASS_INCLUDE",
    "TILEWRIGHT_CUDA_INCLUDE",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CXX",
)


@dataclass(frozen=True, slots=True)
class Isolation:
    """What this system offers. `missing` says why, by kind, where something is not to be had.

    Attributes:
        has_room: mount, process, network and IPC namespaces of its own.
        needs_user_namespace: they are made without privilege.
        has_own_user: the child runs under a user number that owns nothing here.
        landlock: version of Landlock, 0 for none.
        has_seccomp: system calls are filtered.
        devices: device nodes of a GPU that the child may use; its driver needs local sockets, and to name its threads.
    """

    has_namespaces: bool = False
    needs_user_namespace: bool = False
    has_own_user: bool = False
    landlock: int = 0
    has_seccomp: bool = False
    devices: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """True when nothing of the host's can be read beyond the toolchain, written, signalled, traced or called."""
        return self.has_namespaces and self.has_seccomp and (self.has_own_user or self.needs_user_namespace)

    @property
    def is_wall(self) -> bool:
        """True when a child can neither read what is this user's nor reach the network: enough to run what nobody has
        looked at."""
        return self.has_namespaces or (self.landlock > 0 and self.has_seccomp)

    def checks(self) -> tuple[CheckRecord, ...]:
        """One per kind of isolation, for the record of an evaluation."""
        return tuple(
            CheckRecord(Group.ISOLATION, name, CheckOutcome.HELD if stands else CheckOutcome.ABSENT, detail)
            for name, stands, detail in self.described()
        )

    def described(self) -> Iterator[tuple[str, bool, str]]:
        """Name, whether it stands, and what it is made of or why it is missing."""
        yield LIMITS, True, "resource limits; the whole tree is watched and ended at its limit"
        yield ENVIRONMENT, True, "an allow-list; the engine's keys are not in it"
        yield FILES, self.has_namespaces or self.landlock > 0, self._files()
        yield PROCESSES, self.has_namespaces or self.landlock >= 6 or self.has_seccomp, self._processes()
        yield NETWORK, self.has_namespaces or self.has_seccomp, self._network()
        yield USER, self.has_own_user or self.needs_user_namespace, self._user()
        sockets = "sockets beyond the machine" if self.devices else "sockets"
        detail = f"seccomp: tracing, {sockets}, mounts, namespaces refused"
        yield CALLS, self.has_seccomp, self.missing.get(CALLS, detail)

    def _files(self) -> str:
        parts = []
        if self.has_namespaces:
            parts.append("mount namespace: toolchain and Python read-only, 1 GiB of scratch in memory")
        if self.landlock:
            parts.append(f"Landlock {self.landlock}")
        if self.devices:
            parts.append(f"the GPU: {', '.join(self.devices)}")
        return "; ".join([*parts, *self._why(FILES)])

    def _processes(self) -> str:
        if self.has_namespaces:
            return "process namespace: no other process exists for it"
        if self.landlock >= 6:
            return "Landlock keeps signals inside"
        return "; ".join(["signals to itself only" if self.has_seccomp else "signals reach this user's processes"])

    def _network(self) -> str:
        if self.has_namespaces:
            return "network namespace without devices" + (", sockets refused" if self.has_seccomp else "")
        return "sockets refused" if self.has_seccomp else "; ".join(["open", *self._why(NETWORK)])

    def _user(self) -> str:
        if self.has_own_user:
            return "a user number of its own, no capability, no new privileges"
        if self.needs_user_namespace:
            return "this user inside a user namespace, no capability, no new privileges"
        return "; ".join(["the engine's own user", *self._why(USER)])

    def _why(self, name: str) -> list[str]:
        return [self.missing[name]] if name in self.missing else []


def environment(threads: int) -> dict[str, str]:
    """What evaluation processes see. No key of the engine's own environment gets through.

    The malloc settings keep freed memory mapped: fresh 64 MB outputs would otherwise be paid for in page faults, which
    dominate short kernels and would be measured instead of them. The spin count keeps an OpenMP thread from holding the
    processor that its team mate waits for, for milliseconds: 0.2 ms bridge the gaps between a kernel's own regions.
    Asked whether there is a GPU, torch must not start CUDA: no process forked afterwards could use it.
    """
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {
        **kept,
        "HOME": tempfile.gettempdir(),
        "USER": "tilewright",  # a user number of the child's own has no name to be looked up
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": "2000",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "100000000000",
        "MALLOC_TOP_PAD_": "268435456",
    }
