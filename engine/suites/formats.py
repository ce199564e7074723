"""Figures of a suite as people read them. Pure."""

from __future__ import annotations

from storage.suites.statistics import Estimate

NONE = "–"
UNKNOWN = "unknown"
PAID_NOTHING = "nothing paid"


def times(value: float | None) -> str:
    """A ratio: `1.76×`."""
    if value is None:
        return NONE
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}×"


def interval(ratio: Estimate | None) -> str:
    """A 95 % interval of ratios: `1.52 to 2.04×`, as pages tell those of runs; nothing where there is none."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return ""
    return f"{times(ratio.low)[:-1]} to {times(ratio.high)}"


def estimate(ratio: Estimate | None) -> str:
    """A ratio with its interval in brackets."""
    return times(ratio.value if ratio else None) + (f" ({spread})" if (spread := interval(ratio)) else "")


def percent(value: float | None) -> str:
    """A share from 0 to 1; below 0 where something has grown."""
    return NONE if value is None else f"{100 * value:.0f} %".replace("-", "−")


def closed(gap: float | None) -> str:
    """How much of the gap to the hardware limit is closed; none where it has grown."""
    return "none" if gap is not None and gap < 0 else percent(gap)


def part(share: Estimate | None) -> str:
    """A share with its interval."""
    if share is None or share.low is None or share.high is None:
        return NONE
    return f"{percent(share.value)} ({100 * share.low:.0f} to {100 * share.high:.0f})"


def money(usd: float | None) -> str:
    """US dollars."""
    if usd is None:
        return UNKNOWN
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${usd:.2g}"


def tokens(value: float | None) -> str:
    """Tokens, in thousands from ten thousand on."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value < 10_000 else f"{value / 1000:,.0f} k"


def minutes(value: float | None) -> str:
    """Minutes of engine time, as the pages write a span: `6 min 21 s`."""
    if value is None:
        return NONE
    whole, seconds = divmod(round(60 * value), 60)
    if whole >= 60:
        return f"{whole // 60} h {whole % 60:02d} min"
    return f"{whole} min {seconds:02d} s" if whole else f"{seconds} s"


def name(text: str) -> str:
    """A task's or a class's name for people."""
    return text.replace("_", " ")


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
