"""Landlock: an allow-list of file trees, no TCP, no signals outwards, for this process and all it starts.

Needs no privilege. Source: the kernel's `Documentation/userspace-api/landlock.rst`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.sandbox import linux

_VERSION_QUESTION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_TCP = 0b11
_SIGNALS_AND_ABSTRACT_SOCKETS = 0b11


def version() -> int:
    """Landlock's ABI version here, 0 when the kernel has none."""
    with suppress(OSError):
        return linux.call(linux.LANDLOCK_CREATE_RULESET, None, 0, _VERSION_QUESTION)
    return 0


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """From now on only these trees can be opened, the writable ones for everything.

    Needs no_new_privs. What was open before stays usable.
    """
    known = version()
    files = (1 << _BITS_BY_VERSION[min(known, 5)]) - 1
    rules = struct.pack("QQQ", files, _TCP if known >= 4 else 0, _SIGNALS_AND_ABSTRACT_SOCKETS if known >= 6 else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = linux.call(linux.LANDLOCK_CREATE_RULESET, rules[:size], size, 0)
    try:
        for path in readable:
            _allow(ruleset, path, _EXECUTE | _READ | _LIST)
        for path in writable:
            _allow(ruleset, path, files)
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
