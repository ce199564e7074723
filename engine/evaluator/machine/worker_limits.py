"""How long and how large an evaluation may get. Plain figures that travel from the engine to the evaluator."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from engine.errors import ToolchainError

GIB = 1 << 30
CALL_S, CHECK_S, TIMING_S = 60.0, 12.0, 8.0
MOST_OF_THE_MACHINE = 0.6


def _machine_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_here() -> int:
    """What processes of ours may hold together on this machine."""
    return int(_machine_memory() * MOST_OF_THE_MACHINE)


def _tree_memory() -> int:
    return min(12 * GIB, memory_here())


def _processes() -> int:
    """Room for a thread pool or two on every processor, and an end to a fork storm."""
    return 256 + 4 * (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, all counted outside the worker. `check_s` and `timing_s` bound the sampling, not a single call."""

    build_s: float = 300.0
    import_s: float = 60.0
    call_s: float = CALL_S
    reference_s: float = 300.0
    check_s: float = CHECK_S
    timing_s: float = TIMING_S


def times_here(call_s: float = CALL_S) -> Times:
    """The usual ones, with the sampling that TILEWRIGHT_CHECK_SECONDS and TILEWRIGHT_TIMING_SECONDS ask for.

    Less is quicker and less sure: of a timing the wider interval tells. For slow machines, long runs and tests.

    Raises:
        ToolchainError: one of them is no positive number.
    """
    return Times(call_s=call_s, check_s=_asked("CHECK", CHECK_S), timing_s=_asked("TIMING", TIMING_S))


def _asked(what: str, usual: float) -> float:
    name = f"TILEWRIGHT_{what}_SECONDS"
    text = os.environ.get(name, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ToolchainError(
            f"{name}={text} is not a number of seconds: set a positive number, or unset it for the default {usual:g}"
        )
    return seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one candidate worker, in bytes, counts and processor seconds.

    `tree_memory` bounds the resident memory of the worker and all it starts together, `scratch` what it may write.
    """

    address_space: int = 10 * GIB
    tree_memory: int = field(default_factory=_tree_memory)
    scratch: int = GIB
    file_size: int = GIB
    open_files: int = 1024
    processes: int = field(default_factory=_processes)
    processor_s: int = 1800
