"""What a candidate may have left: processes, files in scratch, files elsewhere under the suite's mark, a held lease."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from engine.evaluator.machine import lease
from engine.evaluator.toolchains.cpu import lease_files

MARK = "tilewright-cheat"
SECRET = Path("/tmp/tilewright-cheat-secret.h")
LEASE_S = 30.0  # longer than anything measured in the tests takes
OUTSIDE = ("/tmp", "/var/tmp", "/dev/shm")


def processes(scratch: Path) -> set[int]:
    """Every process forked by this process's evaluator, or at home in scratch; the forkserver itself apart."""
    mark = f"engine.evaluator.processes.forkserver\0{os.getpid()}\0".encode()
    found = set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                is_fork = mark in (entry / "cmdline").read_bytes() and _parent(entry) != os.getpid()
                if is_fork or (entry / "cwd").readlink().is_relative_to(scratch):
                    found.add(int(entry.name))
    return found


def of(scratch: Path, before: set[int]) -> Iterator[str]:
    """Everything found now that was not there before. Stray files are removed once they are told."""
    yield from (f"process {pid}" for pid in sorted(processes(scratch) - before))
    yield from (f"{path} in scratch" for path in scratch.iterdir())
    for folder in OUTSIDE:
        for path in Path(folder).glob(f"{MARK}*"):
            if path != SECRET:
                path.unlink()
                yield str(path)
    if _is_held():
        yield "the lease"


def write_secret() -> None:
    """A file that no candidate has any business with; valid C++, so that including it is told from not reaching it."""
    SECRET.write_text("static const int tilewright_secret = 4711;\n")
    SECRET.chmod(0o600)


def remove_secret() -> None:
    """The end of `write_secret`."""
    SECRET.unlink(missing_ok=True)


def _parent(entry: Path) -> int:
    return int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def _is_held() -> bool:
    """Held for good: others who measure on this machine hold it for moments."""
    deadline = time.monotonic() + LEASE_S
    while time.monotonic() < deadline:
        with lease.held_if_free(*lease_files()) as is_free:
            if is_free:
                return False
        time.sleep(0.02)
    return True
