"""How long and how large an evaluation may get. Plain figures that travel from the engine to the judge."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, all counted outside the worker. `check_s` and `timing_s` bound the sampling, not a single call."""

    build_s: float = 300.0
    import_s: float = 60.0
    call_s: float = 60.0
    reference_s: float = 300.0
    check_s: float = 12.0
    timing_s: float = 8.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one candidate worker, in bytes, counts and processor seconds."""

    address_space: int = 10 * GIB
    file_size: int = GIB
    open_files: int = 1024
    processor_s: int = 1800
