"""Real child processes that talk back line by line."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def child(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run Python code in another process; killed at the end if it still lives."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=TREE, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_from(process: subprocess.Popen[str]) -> str:
    """The next line the child prints; empty when it ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()
