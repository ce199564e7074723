"""What the Linux kernel itself refuses this process and all it starts. Needs no privilege.

Landlock: an allow-list of file trees, no TCP, no signals outwards. Source: the kernel's
`Documentation/userspace-api/landlock.rst`.

Seccomp: a deny-list of system calls that reach other processes, the network, or the kernel's rarer machinery, so that
an honest kernel's runtime (OpenMP, the loader, a thread pool) never meets it. Refused calls return an error and the
caller lives on. Source: `linux/seccomp.h`, `linux/filter.h`; numbers from the kernel's tables.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.evaluator.sandbox import linux

_VERSION_QUESTION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_BLOCK_DEVICE = 1 << 11
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP = 0b11
_SIGNALS_AND_ABSTRACT_SOCKETS = 0b11


def landlock_version() -> int:
    """Landlock's ABI version here, 0 when the kernel has none."""
    with suppress(OSError):
        return linux.call(linux.LANDLOCK_CREATE_RULESET, None, 0, _VERSION_QUESTION)
    return 0


def restrict_files(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """From now on only these trees can be opened, the writable ones for everything.

    Needs no_new_privs. What was open before stays usable.
    """
    version = landlock_version()
    files = (1 << _BITS_BY_VERSION[min(version, 5)]) - 1
    rules = struct.pack("QQQ", files, _TCP if version >= 4 else 0, _SIGNALS_AND_ABSTRACT_SOCKETS if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = linux.call(linux.LANDLOCK_CREATE_RULESET, rules[:size], size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, _EXECUTE | _READ | _LIST)
        for path in writable:
            _allow(ruleset, path, files)
        linux.call(linux.LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def restrict_to(allowed: Iterable[Path], readable: Iterable[Path] = ()) -> None:
    """From now on files outside of these trees can be neither read nor changed, those of the readable trees not
    changed, and nothing outside can be signalled or traced. Folders can still be listed.

    Needs no_new_privs.
    """
    rights = ((1 << _BITS_BY_VERSION[min(landlock_version(), 5)]) - 1) & ~(_LIST | _EXECUTE)
    _enter(rights, [*((path, rights) for path in allowed), *((path, _READ) for path in readable)])


def part_from_others() -> None:
    """From now on nothing outside can be signalled or traced. Needs no_new_privs."""
    _enter(_MAKE_BLOCK_DEVICE, ())  # a ruleset has to refuse something of files


def _enter(handled: int, allowed: Iterable[tuple[Path, int]]) -> None:
    is_scoped = landlock_version() >= 6
    rules = struct.pack("QQQ", handled, 0, _SIGNALS_AND_ABSTRACT_SOCKETS)[: 24 if is_scoped else 8]
    ruleset = linux.call(linux.LANDLOCK_CREATE_RULESET, rules, len(rules), 0)
    try:
        for path, rights in allowed:
            with suppress(PermissionError):
                _allow(ruleset, path, rights)
        linux.call(linux.LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rights = rights if path.is_dir() else rights & _OF_A_FILE
        linux.call(linux.LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# name: (x86_64, aarch64)
_REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "move_mount": (429, 429), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "fsopen": (430, 430), "mount_setattr": (442, 442),
    "unshare": (272, 97), "setns": (308, 268), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262), "quotactl": (179, 60), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "acct": (163, 89), "syslog": (103, 116), "personality": (135, 92),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
}  # fmt: skip
_SOCKET = (41, 198)
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_KILL = {"kill": (62, 129), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
_TKILL = (200, 130)
_NEW_NAMESPACES = linux.NAMESPACES | linux.CLONE_NEWUSER

_ALLOW, _KILL_PROCESS, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16
_X32 = 0x40000000

Instruction = tuple[int, int, int, int]


def refuse_calls(own_pid_only: bool = False, has_local_sockets: bool = False) -> None:
    """Filter this process and all it starts; cannot be undone. Needs no_new_privs.

    Args:
        own_pid_only: signals reach only the process itself, for where nothing else keeps them in.
        has_local_sockets: sockets of this machine's own kind stay, as the driver of a GPU wants them.
    """
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in _program(own_pid_only, has_local_sockets))
    code = ctypes.create_string_buffer(program)
    descriptor = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    linux.prctl(_PR_SET_SECCOMP, _MODE_FILTER, descriptor)


def _program(own_pid_only: bool, has_local_sockets: bool) -> list[Instruction]:
    column = list(_ARCHITECTURE).index(platform.machine())
    code: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHITECTURE[platform.machine()]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if column == 0:
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    for numbers in _REFUSED.values():
        code += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    code += _sockets(column, has_local_sockets)
    # clone3 hides its flags behind a pointer; libc falls back to clone when it is told that there is none.
    code += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    code += [
        (_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, _ARGUMENT),
        (_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    if own_pid_only:
        code += _own_pid_only(column)
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def _sockets(column: int, has_local: bool) -> list[Instruction]:
    """None, or none but AF_UNIX: the kind is the first argument."""
    if not has_local:
        return [(_EQUAL, 0, 1, _SOCKET[column]), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    return [
        (_EQUAL, 0, 4, _SOCKET[column]),
        (_LOAD, 0, 0, _ARGUMENT),
        (_EQUAL, 1, 0, socket.AF_UNIX),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _own_pid_only(column: int) -> list[Instruction]:
    code: list[Instruction] = [(_EQUAL, 0, 1, _TKILL[column]), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    for numbers in _KILL.values():
        code += [
            (_EQUAL, 0, 4, numbers[column]),
            (_LOAD, 0, 0, _ARGUMENT),
            (_EQUAL, 1, 0, os.getpid()),
            (_RETURN, 0, 0, _ERROR | errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return code
