"""Linux calls that Python 3.11 lacks, by number and by libc. Raises OSError; knows no purpose."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4

_SA_NOCLDSTOP = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_CAPABILITY_VERSION_3 = 0x20080522

# These few numbers are the same on x86-64 and arm64: calls newer than 2019 share them, pivot_root does not.
_MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(number: int, *arguments: object) -> int:
    """A raw system call; integers are passed as longs, bytes and None as pointers."""
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *words), f"system call {number}")


def prctl(option: int, value: int = 0, *rest: object) -> int:
    """prctl(2)."""
    words = [*rest, 0, 0, 0][:3]
    longs = [ctypes.c_ulong(word) if isinstance(word, int) else word for word in words]
    return _checked(_libc.prctl(option, ctypes.c_ulong(value), *longs), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave namespaces. The caller must have one thread only."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: Path, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    text = [None if word is None else word.encode() for word in (source, str(target), kind, data)]
    _checked(_libc.mount(text[0], text[1], text[2], ctypes.c_ulong(flags), text[3]), f"mount {target}")


def set_mount(target: Path, attributes: int, *, recursive: bool) -> None:
    """Set attributes of a mount and, if asked, of all below it; keeps those that are set already."""
    settings = struct.pack("QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    call(_MOUNT_SETATTR, _AT_FDCWD, str(target).encode(), flags, settings, len(settings))


def enter_root(folder: Path) -> None:
    """Make `folder` the root of this mount namespace and let go of the old one."""
    os.chdir(folder)
    call(_PIVOT_ROOT[platform.machine()], b".", b".")
    _checked(_libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every capability, for good once no_new_privs is set."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last one this kernel knows, or not permitted to: then there is none to lose
            break
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    call(_CAPSET[platform.machine()], header, bytes(24))


class _SigAction(ctypes.Structure):
    """struct sigaction as glibc and musl have it on 64-bit machines."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ulong * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def hear_ends_alone() -> None:
    """Let SIGCHLD tell this process that a child has ended and not that one was stopped or goes on."""
    action = _SigAction(flags=_SA_NOCLDSTOP)
    _checked(_libc.sigaction(int(signal.SIGCHLD), ctypes.byref(action), None), "sigaction")


def is_known_machine() -> bool:
    """True where the system call numbers of this module are right."""
    return platform.machine() in _PIVOT_ROOT


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
