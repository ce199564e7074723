"""Exclusive use of something by file lock: one timing at a time, one header build at a time. Knows no purpose."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hold(path: Path) -> Iterator[float]:
    """Wait for the lock and hold it; yields the seconds waited. The lock dies with the process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    started = time.monotonic()
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield time.monotonic() - started
    finally:
        os.close(file)
