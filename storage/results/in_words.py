"""Figures as people read them: with units, and with no more digits than were measured."""

from __future__ import annotations

import math

from storage.results.relative import is_known

PASTED = "_v" + 8 * "[0-9a-f]" + "(-|$)"
"""Within the name of a task: that it is a module which somebody gave without a name, or with one that is taken. What
tells its texts apart stands there, and `YOURS` in its place on screen."""
YOURS = r" (your module)\1"
NO_DRIVER = "no NVIDIA driver was found"
NO_DRIVER_OF_OLD = (
    r"the NVIDIA driver.s library \S+ cannot be loaded \([^()]*No such file or directory\)"
    r"( \(CUDA_VISIBLE_DEVICES [^()]*\))?"
)
"""How the end of a run told it before; `NO_DRIVER` stands in its place on screen."""
NONE = "–"
UNKNOWN = "unknown"


def speedup(value: float | None, noise: float | None = None) -> str:
    """A ratio as "3.41×"; with `noise` (relative) no digit beyond what the measurement supports, and "unknown" where
    the 95 % interval is wider than the ratio itself. Of the noise one digit counts, and two where it begins with 1, 2
    or 3 up to 355, as the Particle Data Group rounds: 4.68 with a noise of 1.1 is 4.7, not 5."""
    if value is None:
        return NONE
    if noise is not None and not is_known(noise):
        return UNKNOWN
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    if noise:
        decimals = min(decimals, max(0, math.ceil(-math.log10(value * noise / 3.55))))
    return f"{value:.{decimals}f}×"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never in exponent form between 0.0001 and a million."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    value = float(f"{value:.{digits - 1}e}")  # 9.96 is 10 in two digits, not 10.0
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def latency(ms: float | None) -> str:
    """Milliseconds in the unit that suits them; 0.829 ms, not 829 µs, since it often stands beside 2.73 ms."""
    if ms is None:
        return NONE
    if ms >= 1000:
        return f"{significant(ms / 1000)} s"
    return f"{significant(ms)} ms" if ms >= 0.1 or ms == 0 else f"{significant(ms * 1000)} µs"


_PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)


def quantity(value: float, unit: str, is_share: bool = False) -> str:
    """A profiler's value: SI prefixes for base units, percent for shares, whole numbers as such."""
    if is_share and unit in ("1", ""):
        return (
            "under 0.01 %"
            if 0 < value < 5e-5
            else f"{100 * value:.{0 if value > 0.9995 else 1 if value > 0.09995 else 2}f} %"
        )
    if unit in ("s", "B", "B/s", "FLOP", "FLOP/s", "Hz") and value:
        scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s), _PREFIXES[-1])
        return f"{significant(value / scale)} {prefix}{unit}"
    number = count(int(value)) if value == int(value) and abs(value) < 1e15 else significant(value)
    return number if unit in ("1", "") else f"{number} {unit}"


def count(value: int) -> str:
    """An integer with thousands set apart."""
    return f"{value:,}"
