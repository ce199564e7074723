"""Numbers, times and states as people read them: with units, and with no more digits than were measured. Texts so that
nothing in them acts as markup."""

from __future__ import annotations

import html
import math
import re
import time
import urllib.parse
from datetime import datetime
from typing import Literal

from storage.check_records import WORDS, CheckOutcome, Group
from storage.models import CallFailure
from storage.records import KernelClass, Origin, RunState, Verdict
from storage.relative import Relative, is_known

NONE = "–"
UNKNOWN = "unknown"

Tone = Literal["red", "orange", "yellow", "blue", "green", "violet", "gray"]

STATE_TONE: dict[RunState, Tone] = {
    RunState.STARTING: "blue",
    RunState.RUNNING: "blue",
    RunState.PAUSED: "yellow",
    RunState.WAITING: "orange",
    RunState.FINISHED: "green",
    RunState.STOPPED: "gray",
    RunState.FAILED: "red",
    RunState.LOST: "violet",
}
STATE_ICON = {
    RunState.STARTING: ":material/progress_activity:",
    RunState.RUNNING: ":material/play_arrow:",
    RunState.PAUSED: ":material/pause:",
    RunState.WAITING: ":material/schedule:",
    RunState.FINISHED: ":material/check:",
    RunState.STOPPED: ":material/stop:",
    RunState.FAILED: ":material/close:",
    RunState.LOST: ":material/warning:",
}
CLASS_NAME = {
    KernelClass.MATMUL: "matrix multiplication",
    KernelClass.CONVOLUTION: "convolution",
    KernelClass.ATTENTION: "attention",
    KernelClass.REDUCTION: "reduction or normalisation",
    KernelClass.ACTIVATION: "activation or elementwise",
    KernelClass.LOSS: "loss",
    KernelClass.OTHER: "other",
}
VERDICT_NAME = {
    Verdict.PASSED: "correct",
    Verdict.COMPILE_ERROR: "does not compile",
    Verdict.INCORRECT: "wrong result",
    Verdict.RUNTIME_ERROR: "crashed",
    Verdict.TIMEOUT: "timed out",
    Verdict.OUT_OF_MEMORY: "out of memory",
    Verdict.REFUSED: "refused",
}
VERDICT_TONE: dict[Verdict, Tone] = {
    Verdict.PASSED: "green",
    Verdict.COMPILE_ERROR: "orange",
    Verdict.INCORRECT: "red",
    Verdict.RUNTIME_ERROR: "red",
    Verdict.TIMEOUT: "violet",
    Verdict.OUT_OF_MEMORY: "violet",
    Verdict.REFUSED: "violet",
}
GROUP_NAME = {
    Group.SCREENING: "Screening",
    Group.ISOLATION: "Isolation",
    Group.CORRECTNESS: "Correctness",
    Group.TIMING: "Timing",
}
GROUP_ABOUT = {
    Group.SCREENING: "Static checks of the source, the edit and the built library",
    Group.ISOLATION: "Sandbox of the process that ran the kernel",
    Group.CORRECTNESS: "Results compared with float64, on inputs the kernel cannot predict",
    Group.TIMING: "How the latency was measured against the baseline",
}
CHECK_OUTCOME_NAME = WORDS
CHECK_OUTCOME_TONE: dict[CheckOutcome, Tone] = {
    CheckOutcome.HELD: "green",
    CheckOutcome.FLAGGED: "orange",
    CheckOutcome.BROKEN: "red",
    CheckOutcome.ABSENT: "gray",
}
ORIGIN_NAME = {
    Origin.SYNTHESIS: "written from scratch",
    Origin.OPTIMISATION: "optimisation",
    Origin.REPAIR: "repair",
    Origin.MANUAL: "by hand",
    Origin.IMPORTED: "imported",
    Origin.FORKED: "from another run",
    Origin.TUNED: "tuned",
}
FAILURE_NAME = {
    CallFailure.RATE_LIMITED: "rate limited",
    CallFailure.SERVER_ERROR: "server error",
    CallFailure.UNREACHABLE: "endpoint unreachable",
    CallFailure.TIMED_OUT: "timed out",
    CallFailure.DROPPED: "connection dropped",
    CallFailure.EMPTY: "empty reply",
    CallFailure.REFUSED: "refused by the model",
    CallFailure.MALFORMED: "unreadable response",
    CallFailure.ENDLESS: "reply without end",
    CallFailure.REJECTED: "rejected by the endpoint",
    CallFailure.CANCELLED: "cancelled by a person",
    CallFailure.LOST: "lost when the engine stopped",
}
_HEADING = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)
# Bold only where it stands as a word does: `2**3**4` and `**options` are code.
_BOLD = re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w*])")


def outcome(verdict: Verdict | None, is_accepted: bool, is_pending: bool) -> str:
    """A kernel's verdict, and for a correct one what its depth made of it."""
    if verdict is None:
        return "not judged yet"
    if verdict is not Verdict.PASSED:
        return VERDICT_NAME[verdict]
    return "accepted" if is_accepted else "correct, pending" if is_pending else "correct, abandoned"


def speedup(value: float | None, noise: float | None = None) -> str:
    """A ratio as "3.41×"; with `noise` (relative) no digit beyond what the measurement supports, and "unknown" where
    the 95 % interval is wider than the ratio itself."""
    if value is None:
        return NONE
    if noise is not None and not is_known(noise):
        return UNKNOWN
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    if noise:
        decimals = min(decimals, max(0, math.ceil(-math.log10(value * noise))))
    return f"{value:.{decimals}f}×"


def plus_minus(noise: float | None) -> str:
    """Relative noise as "±0.8 %"."""
    return NONE if noise is None else f"±{significant(100 * noise, 1 if noise < 0.1 else 2)} %"


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval of a speed-up."""
    return NONE if low is None or high is None else f"{speedup(low)[:-1]} to {speedup(high)}"


def over(found: Relative, baseline: str) -> str:
    """A speed-up over a named baseline: "1.66× over torch.compile ±0.9 %"."""
    if not is_known(found.noise):
        return f"Speed-up over {baseline} unknown ({plus_minus(found.noise)})"
    return f"{speedup(found.speedup, found.noise)} over {baseline} {plus_minus(found.noise)}"


def not_measured(baseline: str, failure: str) -> str:
    """Why there is no speed-up over a further baseline."""
    return f"No speed-up over {baseline}: {cut(failure, 300) or 'no reason was recorded'}"


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, never in exponent form between 0.0001 and a million."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def latency(ms: float | None) -> str:
    """Milliseconds in the unit that suits them."""
    if ms is None:
        return NONE
    if ms >= 1000:
        return f"{significant(ms / 1000)} s"
    return f"{significant(ms)} ms" if ms >= 1 else f"{significant(ms * 1000)} µs"


_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float, unit: str, is_share: bool = False) -> str:
    """A profiler's value: SI prefixes for base units, percent for shares, whole numbers as such."""
    if is_share and unit in ("1", ""):
        return f"{significant(100 * value)} %"
    if unit in ("s", "B", "B/s", "FLOP", "FLOP/s", "Hz") and value:
        scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s), _PREFIXES[-1])
        return f"{significant(value / scale)} {prefix}{unit}"
    number = count(int(value)) if value == int(value) and abs(value) < 1e15 else significant(value)
    return number if unit in ("1", "") else f"{number} {unit}"


def seconds(value: float | None) -> str:
    """A span of time."""
    if value is None:
        return NONE
    if value < 60:
        return f"{significant(value, 2)} s" if value < 10 else f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def count(value: int) -> str:
    """An integer with thousands set apart."""
    return f"{value:,}"


def counted(value: int, name: str) -> str:
    """How many of something: "1 kernel", "1,204 kernels"."""
    return f"{count(value)} {name}" if value == 1 else f"{count(value)} {name}s"


def tokens(value: int | None) -> str:
    """Token counts: exact below ten thousand; what nobody counted is not zero."""
    if value is None:
        return UNKNOWN
    if value < 10_000:
        return count(value)
    return f"{value / 1000:.1f} k" if value < 1_000_000 else f"{value / 1e6:.2f} M"


def cost(usd: float | None) -> str:
    """US dollars; an unknown price is not free."""
    if usd is None:
        return UNKNOWN
    return f"${usd:.2f}" if usd >= 1 or usd == 0 else f"${significant(usd, 2)}"


def share(part: int, whole: int) -> str:
    """ "7 of 9 (78 %)"; nothing judged yet is not 0 %."""
    return f"{part} of {whole} ({round(100 * part / whole)} %)" if whole else NONE


def percent(value: float | None) -> str:
    """A share from 0 to 1 as "55 %"."""
    return NONE if value is None else f"{round(100 * value)} %"


def moment(at: float | None) -> str:
    """A date and time with its zone."""
    if at is None:
        return NONE
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def clock(at: float) -> str:
    """The time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def cut(text: str, length: int) -> str:
    """One line of at most so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"


def escaped(text: str, length: int = 110) -> str:
    """One line for a chart's label, which reads HTML."""
    return html.escape(cut(text, length), quote=False)


def plain(text: str) -> str:
    """Text for a Markdown element with nothing in it acting as markup."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#+-.!|$:~" else c for c in text.replace("\n", " "))


def in_address(text: str) -> str:
    """Text as the value of a parameter in an address."""
    return urllib.parse.quote(text, safe="")


def unmarked(text: str) -> str:
    """The text with headings and bold words as plain ones; everything else, code above all, as it was."""
    return _BOLD.sub(r"\1", _HEADING.sub("", text))
