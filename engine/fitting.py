"""Whether judging a task fits into this host's memory, and what to say where it does not. Imports no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from engine.errors import TaskError

ROOT = Path(__file__).resolve().parent.parent
GROUP = Path("/sys/fs/cgroup")
MOST = 0.6  # of what is free: the rest is for what else runs here, and for the estimate's error
LIMIT_S = 60


def see_that_it_fits(source: str, sizes: Mapping[str, int | float], needed: int | None = None) -> None:
    """See that the host has the memory to judge a task; `needed` is the estimate, or None to have a child make it.

    Raises:
        TaskError: it has not; the message names the need, what is free and a size that would do.
    """
    needed = _asked(source) if needed is None else needed
    if needed is not None and (told := refusal(needed, free_bytes(), sizes)):
        raise TaskError(told)


def refusal(needed: int, free: int, sizes: Mapping[str, int | float]) -> str:
    """Why a task is too large here, in one sentence with the remedy; empty when it fits."""
    if needed <= MOST * free:
        return ""
    told = (
        f"checking this task needs about {needed / 1e9:.3g} GB of memory, and at most {MOST * free / 1e9:.3g} of the "
        f"{free / 1e9:.3g} GB free here may be used"
    )
    whole = {name: size for name, size in sizes.items() if isinstance(size, int) and size > 1}
    if not whole:
        return f"{told}: use smaller sizes"
    name = max(whole, key=lambda one: whole[one])
    less = 1 << max(0, int(whole[name] * MOST * free / needed).bit_length() - 1)
    return f"{told}: use smaller sizes, for example `--set {name}={less}` ({whole[name]} now)"


def free_bytes() -> int:
    """Memory that can be had without swapping, within what a container may use."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    free = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    with suppress(OSError, ValueError):  # no limit is told as the word `max`
        group = int((GROUP / "memory.max").read_text()) - int((GROUP / "memory.current").read_text())
        return min(free, max(0, group))
    return free


def _asked(source: str) -> int | None:
    command = [sys.executable, "-m", "engine.evaluation.estimate"]
    try:
        done = subprocess.run(command, input=source, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
        needed = json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    return needed if isinstance(needed, int) else None
