"""What stands behind a timing, one check each with its figures: whether a candidate remembers results, whether a timing
is too good to be believed at once, and what two timings together are worth. Pure; times nothing.

A cache may know its inputs by address, version or content. What it cannot do is be slow when it is asked twice: the
same inputs once more, untouched, must cost what they cost before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.evaluator.checks import clock as sessions
from engine.evaluator.checks import operators, processor_time
from engine.evaluator.checks.candidate_failures import TimedCallFailed
from engine.evaluator.checks.clock import Call, Clock, DeviceClock, Session
from engine.evaluator.checks.processor_time import Reading
from engine.evaluator.machine import quiet
from storage.results.check_records import (
    BY_PAIRS,
    DEVICE_DECIDES,
    DEVICE_TIME,
    ORDER,
    RE_MEASURED,
    SPOILING,
    CheckOutcome,
    CheckRecord,
    Group,
    explained,
    pairs_counted,
)
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy
from storage.results.timed_twice import AGREE, BEYOND, BUT, CONFIRMED, DISJOINT, MEET, NOT_MET, times_apart
from storage.results.vocabulary import Verdict

# Of all threads together: two that wake at once share a processor for a moment on a quiet machine too. Both sides lose
# time in a crowd, but not alike: a library that synchronises more threads loses more.
CROWDED = 0.3
# What a speed-up moves beside others that use processors: a module timed against itself 187 times beside builds
# scatters by 3.8 %, and two such timings are told apart in 0.7 % of all pairs with this, in 4 % without it.
CONTENTION = 0.075
WAITED = "reference's threads waited"
COPIED = "numbers copied to the host"
NOISY = 0.10
SKEWED = 0.02
PROBES = 5
SLOW_PROBES = 2
SECOND_LOOKS = 3
SLOW_MS = 200.0
# An honest second call finds its inputs in nearer caches, and so does the reference's.
REMEMBERED = 0.4
LEAST_MS = 0.1
SHORT_MS = 0.1
LONG_MS = 1.0  # from here on the evaluator's clock is sharp by itself
BLURRED = 10
HOST_SHARE = 0.1
# What a launch may add to a call beside its kernel, and the share of a call that the two clocks may differ by.
LAUNCH_NS = 10_000
APART = 0.25
SAME = 0.05
Twice = tuple[Call, Call]


@dataclass(frozen=True, slots=True)
class Setting:
    """How a session was held, beside its calls. `rest` says what the candidate did while nothing was asked."""

    warm_up_calls: int
    compared: int
    contents: str
    can_vary: bool
    is_memory_read: bool
    cache: str
    calls: int
    rest: str
    load: float
    recall: Recall
    observed: str
    others_share: float = 0.0
    device: DeviceClock | None = None
    host_ns: float = 0.0
    processor_time: Reading | None = None


def broken(error: TimedCallFailed) -> CheckRecord:
    """The check that ended a session."""
    return _check(error.check, CheckOutcome.BROKEN, error.failure.message)


def of(session: Session, setting: Setting) -> tuple[CheckRecord, ...]:
    """Every check of a session that went well."""
    return (
        _clock(session, is_second=bool(by_device(session, setting))),
        *_device(session, setting),
        _check(
            "outputs of timed calls",
            CheckOutcome.HELD,
            f"{setting.compared} calls compared, warm-up and every timed one",
        ),
        _nothing_later(session, setting),
        _check("fresh inputs", CheckOutcome.HELD if setting.can_vary else CheckOutcome.FLAGGED, setting.contents),
        _nothing_remembered(setting.recall),
        _order(session, setting),
        _check(operators.CHECK, CheckOutcome.HELD, setting.observed),
        *_processor_time(setting.processor_time),
        _check("idle threads", CheckOutcome.HELD, f"{setting.rest}; no process left after any call"),
        _noise(session, by_device(session, setting)),
        _machine(session, setting),
    )


def _clock(session: Session, *, is_second: bool) -> CheckRecord:
    clock = session.clock
    decides = "the evaluator's clock bounds what the device's decides" if is_second else "the evaluator's clock decides"
    detail = (
        f"{decides}; from each call it takes off {clock.cost_ns / 1e6:.3g} ms, which asking a worker takes (measured "
        f"with the reference), and of the calls of a turn it counts the quickest of either side, since other load only "
        f"adds time. It resolves {clock.spread_ns / 1e6:.3g} ms. Cross-check, over all calls: {session.agreement}"
    )
    quicker_ms = min(statistics.median(side) for side in zip(*session.pairs, strict=True))
    is_blurred = quicker_ms <= 2 * clock.spread_ns / 1e6 and not is_second
    return _check("clock", CheckOutcome.FLAGGED if is_blurred else CheckOutcome.HELD, detail)


def is_short(session: Session, setting: Setting) -> bool:
    """Whether a side's call is short for the evaluator's clock, on a GPU: always below `SHORT_MS`, and on a busy host
    also where what that clock resolves is more than a tenth of the call."""
    blurred_ms = BLURRED * session.clock.spread_ns / 1e6
    return setting.device is not None and min(_medians(session)) < max(SHORT_MS, blurred_ms)


def by_device(session: Session, setting: Setting) -> sessions.Pairs:
    """Pairs by the device's own clock, which decide below `LONG_MS`; none where it does not agree with the evaluator's.

    It agrees when its speed-up lies within what the evaluator's clock leaves open. So what a worker tells of its own
    kernels can sharpen a figure and not move it. Where a call is longer than its kernels and launches explain, or
    numbers went to the host, work may have been done there, which this clock does not see.
    """
    if setting.device is None or not setting.device.pairs or min(_medians(session)) >= LONG_MS:
        return []
    if setting.device.asks_the_host or _is_apart(session, setting.device):
        return []
    low, high = _left_open(session, setting.device)
    speedup = statistics.median(setting.device.ratios)
    return setting.device.pairs if low * (1 - SAME) <= speedup <= high * (1 + SAME) else []


def _medians(session: Session) -> tuple[float, float]:
    """Milliseconds of a candidate's and of a reference's call by the evaluator's clock."""
    candidate, reference = zip(*session.pairs, strict=True)
    return statistics.median(candidate), statistics.median(reference)


def _blur_ms(session: Session, device: DeviceClock) -> float:
    """By how much the evaluator's clock may be wrong about a call: what it cannot resolve, how far the reference's
    calls scatter, and what they take beyond their kernels, as where the host is slower than the device. All of it is
    the reference's, so a candidate cannot widen it."""
    reference = sorted(ms for _, ms in session.pairs)
    scatter = (reference[len(reference) * 3 // 4] - reference[len(reference) // 4]) / 2
    beyond = statistics.median(reference) - statistics.median(ms for _, ms in device.pairs)
    return session.clock.spread_ns / 1e6 + scatter + max(0.0, beyond)


def _left_open(session: Session, device: DeviceClock) -> tuple[float, float]:
    """The speed-ups that the evaluator's clock allows."""
    low, high = sessions.interval([reference / candidate for candidate, reference in session.pairs])
    (candidate, reference), blur_ms = _medians(session), _blur_ms(session, device)
    least_ms = sessions.LEAST_NS / 1e6
    lowest = max(reference - blur_ms, 0.0) / (candidate + blur_ms)
    return min(low, lowest), max(high, (reference + blur_ms) / max(candidate - blur_ms, least_ms))


def device_interval(session: Session, setting: Setting) -> tuple[float, float] | None:
    """What the interval of a short call's speed-up must hold beside the pairs where the device's clock does not decide.

    Both clocks where they disagree; where the driver gives no records, what the evaluator's clock resolves.
    """
    if setting.device is None or not is_short(session, setting) or by_device(session, setting):
        return None
    if setting.device.pairs:
        return min(setting.device.ratios), max(setting.device.ratios)
    candidate, reference = _medians(session)
    spread_ms = session.clock.spread_ns / 1e6
    return reference / (candidate + spread_ms), (reference + spread_ms) / candidate


def copied(setting: Setting) -> dict[str, str]:
    """What the timing's evidence says where the candidate copied numbers to the host; else nothing."""
    return {COPIED: "yes"} if setting.device is not None and setting.device.asks_the_host else {}


def contended(session: Session, setting: Setting) -> tuple[float, float] | None:
    """What a speed-up on the processor must leave open beside its pairs while others use processors: caches and memory
    are shared whoever goes first, and how that treats a process it does for as long as the process lives."""
    if setting.device is not None or setting.others_share <= quiet.BUSY:
        return None
    speedup = statistics.median(reference / candidate for candidate, reference in session.pairs)
    return speedup * (1 - CONTENTION), speedup * (1 + CONTENTION)


def _device(session: Session, setting: Setting) -> list[CheckRecord]:
    """The device's clock beside the evaluator's, and what the call costs the host."""
    clock = setting.device
    if clock is None:
        return []
    name, call_ms = DEVICE_TIME, statistics.median(candidate for candidate, _ in session.pairs)
    host_ms = setting.host_ns / 1e6
    host = f"; forward takes {host_ms * 1e3:.0f} us on the host" if host_ms > HOST_SHARE * call_ms else ""
    if not clock.pairs:
        reason = "the driver's activity records cannot be had here, so there is no second clock"
        wide = "; the interval is widened by what the first one resolves" if is_short(session, setting) else ""
        return [_check(name, CheckOutcome.ABSENT, f"{reason}{wide}{host}")]
    candidate, reference = (statistics.median(side) for side in zip(*clock.pairs, strict=True))
    detail = (
        f"a call's kernels take {candidate:.4g} ms on the device in {clock.launches:.3g} launches, the reference's "
        f"{reference:.4g} ms in {clock.reference_launches:.3g}: {statistics.median(clock.ratios):.3g}x; by the "
        f"evaluator's clock the call takes {call_ms:.4g} ms"
    )
    is_apart = _is_apart(session, clock)
    if is_apart:
        detail += f", {call_ms - candidate:+.3g} ms that launches do not explain"
    if clock.asks_the_host:
        detail += "; numbers were copied to the host, where this clock sees nothing"
    disagrees = is_short(session, setting) and not by_device(session, setting)
    if disagrees:
        detail += (
            "; the call is short for the evaluator's clock, and the device's does not decide: the speed-up's interval "
            "covers both"
        )
    elif by_device(session, setting):
        detail += f"; the call is short for the evaluator's clock, which agrees: {DEVICE_DECIDES}"
    standing = CheckOutcome.FLAGGED if is_apart or disagrees else CheckOutcome.HELD
    return [_check(name, standing, explained(name, standing, detail + host))]


def _is_apart(session: Session, device: DeviceClock) -> bool:
    """Whether a candidate's call is longer, or shorter, than its kernels and their launches explain."""
    call_ms = statistics.median(candidate for candidate, _ in session.pairs)
    apart_ms = call_ms - statistics.median(candidate for candidate, _ in device.pairs)
    explained_ms = LAUNCH_NS / 1e6 * (1 + device.launches) + _blur_ms(session, device)
    return abs(apart_ms) > explained_ms + APART * call_ms


def _processor_time(reading: Reading | None) -> list[CheckRecord]:
    """In whose code the calls were; on a GPU the driver's records tell more."""
    if reading is None:
        return []
    if reading.why:
        seen = f"; {reading.detail}" if reading.detail else ""
        return [_check(processor_time.CHECK, CheckOutcome.ABSENT, f"not checked: {reading.why}{seen}")]
    return [_check(processor_time.CHECK, CheckOutcome.HELD, reading.detail)]


def _nothing_remembered(recall: Recall) -> CheckRecord:
    if recall.is_telling:
        return _check("nothing remembered", CheckOutcome.HELD, str(recall))
    reason = (
        "this check goes by the quickest of all calls, less what asking a worker takes (the latency is the median over "
        f"turns), and {recall.first_ms:.3g} ms is too short to compare a first with a second call, of which the clock "
        f"resolves {recall.resolution_ms:.3g} ms"
    )
    return _check("nothing remembered", CheckOutcome.ABSENT, reason)


def _nothing_later(session: Session, setting: Setting) -> CheckRecord:
    name = "nothing finishes later"
    if not setting.is_memory_read:
        why = "this system does not let the evaluator read another process's memory; outputs were stored by the worker"
        return _check(name, CheckOutcome.ABSENT, why)
    hidden_ms = session.halt_ms + session.clock.cost_ns / 1e6
    detail = (
        f"every thread stopped {session.halt_ms:.3g} ms after the answer, outputs read from the stopped process; "
        f"at most {hidden_ms:.3g} ms of work can hide in one call"
    )
    candidate = statistics.median(candidate for candidate, _ in session.pairs)
    reference = statistics.median(reference for _, reference in session.pairs)
    low, _ = sessions.interval([reference / candidate for candidate, reference in session.pairs])
    explains_all = low > 1 and reference <= candidate + hidden_ms
    return _check(name, CheckOutcome.FLAGGED if explains_all else CheckOutcome.HELD, detail)


def _order(session: Session, setting: Setting) -> CheckRecord:
    turns = len(session.candidate)
    detail = (
        f"{setting.warm_up_calls} warm-up calls each, then {turns} pairs of {setting.calls} call(s), both "
        f"orders, drawn in secret; idle side stopped; cache: {setting.cache}"
    )
    return _check(ORDER, CheckOutcome.HELD, pairs_counted(detail, bool(by_device(session, setting))))


def _noise(session: Session, by_device: sessions.Pairs) -> CheckRecord:
    pairs = session.pairs
    half = sessions.half_width(by_device or pairs)
    detail = f"{BY_PAIRS}{half:.1%}"
    ratios = sessions.against_itself(pairs)
    if not ratios:
        return _check("noise", CheckOutcome.ABSENT, f"{detail}; too few pairs to set the reference against itself")
    low, high = sessions.interval(ratios)
    detail += (
        f"; reference against itself {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}, {len(ratios)} turns)"
    )
    is_skewed = low > 1 + SKEWED or high < 1 - SKEWED
    return _check("noise", CheckOutcome.FLAGGED if is_skewed or half > NOISY else CheckOutcome.HELD, detail)


def _machine(session: Session, setting: Setting) -> CheckRecord:
    candidate = sessions.waited_share(session.candidate_calls)
    reference = sessions.waited_share(session.reference_calls)
    waits = f"candidate {candidate:.0%}, reference {reference:.0%}"
    detail = f"threads waiting for a processor, of the calls' time: {waits}; load {setting.load:.2f}"
    if contended(session, setting):
        detail += (
            f"; others used {setting.others_share:.0%} of the processors, which can shift all pairs alike: the "
            f"speed-up's interval is ±{CONTENTION:.1%} at least, however well the pairs agree"
        )
    return _check("machine", CheckOutcome.FLAGGED if max(candidate, reference) > CROWDED else CheckOutcome.HELD, detail)


def _check(name: str, outcome: CheckOutcome, detail: str) -> CheckRecord:
    return CheckRecord(Group.TIMING, name, outcome, detail)


@dataclass(frozen=True, slots=True)
class Recall:
    """What second calls on the same inputs took of calls on new ones, of both sides; the quickest of each."""

    first_ms: float
    share: float
    reference_share: float
    resolution_ms: float

    @classmethod
    def of(cls, clock: Clock, candidate: Sequence[Twice], reference: Sequence[Twice], timed: Sequence[Call]) -> Recall:
        """From pairs of calls, the second of each on the same inputs, and the candidate's calls of the session.

        Those were on new inputs as well, and they are many: other load can lengthen a few first calls by a multiple of
        a short kernel's time, and a second one that meets none would look remembered.
        """
        # With a clock of their own: between the two nothing is loaded and nothing written, so the question costs less.
        seconds = Clock.of([second for _, second in reference])
        first_ms = clock.milliseconds([*timed, *(first for first, _ in candidate)])
        share = seconds.milliseconds([second for _, second in candidate]) / first_ms
        first_of_reference = clock.milliseconds([first for first, _ in reference])
        reference_share = seconds.milliseconds([second for _, second in reference]) / first_of_reference
        return cls(first_ms, share, reference_share, max(clock.spread_ns, seconds.spread_ns) / 1e6)

    @property
    def is_telling(self) -> bool:
        """False where a call is too short for the clock to see the difference."""
        return self.first_ms > LEAST_MS and self._limit > 0

    @property
    def remembers(self) -> bool:
        """True when the second call is far quicker than work and the clock's resolution explain."""
        return self.is_telling and self.share < self._limit

    @property
    def _limit(self) -> float:
        return REMEMBERED * min(1.0, self.reference_share) - self.resolution_ms / self.first_ms

    @classmethod
    def confirmed(cls, ask: Callable[[], Recall]) -> Recall:
        """What is asked for at first; if that accuses, the next that can tell decides.

        Where none can, the first stands. A cache answers alike each time. Other load can make one round of an honest
        kernel's second calls look remembered (33 % of the first, with eight processes on two cores), hardly two.
        """
        recall = ask()
        for _ in range(SECOND_LOOKS if recall.remembers else 0):
            again = ask()
            if again.is_telling:
                return again
        return recall

    def __str__(self) -> str:
        return (
            f"a second call on the same inputs takes {self.share:.0%} of the first, the reference's "
            f"{self.reference_share:.0%}"
        )


# Of the time that memory needs, the part that no call can do without. Caches hold inputs that were just written, and
# outputs that are not yet in memory: as long as they are a large part of all bytes, a call may take less than half.
IMPOSSIBLE, IMPOSSIBLE_IN_CACHE = 1 / 2, 1 / 3
BEYOND_CACHE = 4


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a timing is held against: the task's policy, and what this machine can do at the task's size."""

    policy: Policy
    limit: HardwareLimit

    def reason(self, timed: TimingResult) -> str:
        """Why a timing must be repeated; empty when it need not be."""
        if timed.speedup > self.policy.suspicious_speedup:
            return f"{timed.speedup:.3g}x is above {self.policy.suspicious_speedup:.3g}x"
        if timed.latency_ms < self.limit.limit_ms:
            return f"{timed.latency_ms:.3g} ms is below the hardware limit of {self.limit.limit_ms:.3g} ms"
        return ""

    def is_impossible(self, timed: TimingResult) -> bool:
        """Far faster than memory can deliver the inputs and take the outputs.

        Operations do not count here: a kernel may find a way with fewer. Nor does a limit that the reference beats,
        for then the task does not need all of its inputs.
        """
        memory_ms = self.limit.memory_ms
        return timed.latency_ms < self.least_share * memory_ms and memory_ms <= timed.baseline_latency_ms

    @property
    def least_share(self) -> float:
        """The least share of the time that memory needs that is believed."""
        facts = self.limit.facts
        cache = max(facts.l2_bytes, facts.l3_bytes) if facts else 0
        return IMPOSSIBLE if self.limit.min_bytes >= BEYOND_CACHE * cache else IMPOSSIBLE_IN_CACHE


def unsuspicious(timed: TimingResult, bounds: Bounds) -> TimingResult:
    """A timing that gave no reason to repeat it."""
    detail = (
        f"not needed: {timed.speedup:.3g}x is not above {bounds.policy.suspicious_speedup:.3g}x, "
        f"{timed.latency_ms:.3g} ms not below the hardware limit of {bounds.limit.limit_ms:.3g} ms "
        "as this engine measured it"
    )
    return with_check(timed, CheckOutcome.ABSENT, detail)


def settled(
    first: TimingResult, second: TimingResult | CheckResult, bounds: Bounds, reason: str
) -> TimingResult | CheckResult:
    """What stands after a second timing in a fresh process: the lower of two, or no result at all."""
    if isinstance(second, CheckResult):
        return replace(second, message=f"when timed again because {reason}: {second.message}")
    lower = min(first, second, key=lambda timed: timed.speedup)
    detail = f"because {reason}: first {_in_words(first)}, then {_in_words(second)}"
    if bounds.is_impossible(lower):
        return _refused(lower, bounds, detail)
    agree, meet = times_apart(first.speedup, second.speedup) <= AGREE, _overlap(first, second)
    limit_ms = bounds.limit.limit_ms
    against = [
        f"{BEYOND}{limit_ms:.3g} ms" if lower.latency_ms < limit_ms else "",
        DISJOINT if agree and not meet else "",
        _spoilt("first", first),
        _spoilt("second", second),
    ]
    but = " and ".join(filter(None, against))
    detail += f"; {CONFIRMED if agree else MEET if meet else NOT_MET}" + (f"{BUT}{but}" if but else "")
    return with_check(lower, CheckOutcome.HELD if agree and not but else CheckOutcome.FLAGGED, detail)


ALONE = "fresh processes"
WIDEST = 0.25
"""Relative noise up to which a timing on a busy machine decides anything."""


def is_disturbed(timed: TimingResult) -> bool:
    """Whether others took the processors while it was timed."""
    return bool(_disturbance(timed))


def _disturbance(timed: TimingResult) -> str:
    """What shows that others took the processors. What the candidate's threads wait for does not count: it can start
    more of them than there are processors."""
    waited = float(timed.evidence.get(WAITED, 0.0))
    if waited > CROWDED:
        return f"the reference's threads waited for {waited:.0%} of its calls' time"
    if COPIED in timed.evidence:  # the device's clock cannot see that work: the clocks differ on any machine
        return ""
    is_apart = any(check.check == DEVICE_TIME and check.standing is CheckOutcome.FLAGGED for check in timed.proofs)
    return (
        "of a call this short the host's clock and the device's disagree" if is_apart and timed.device_interval else ""
    )


def of_sessions(sessions: Sequence[TimingResult]) -> TimingResult:
    """What several timings, each in fresh processes, are worth together, the last of which alone may be undisturbed.

    That one counts by itself. Of disturbed ones the middle one stands, and its interval covers those of all: how a busy
    machine treats a process, it does for as long as that lives, so a session's own pairs do not show it.
    """
    last = sessions[-1]
    if len(sessions) == 1:
        return last
    if not is_disturbed(last):
        detail = f"timed {len(sessions)} times, until nobody else took the processors; the last one counts"
        return _with(last, ALONE, CheckOutcome.HELD, detail)
    middle = sorted(sessions, key=lambda timed: timed.speedup)[len(sessions) // 2]
    lows, highs = zip(*(timed.speedup_interval for timed in sessions), strict=True)
    covering = replace(middle, device_interval=(min(lows), max(highs)))
    detail = (
        f"others took the processors: {_disturbance(middle)}. {len(sessions)} timings in fresh processes: "
        f"{', '.join(map(_in_words, sessions))}"
    )
    if covering.noise > WIDEST:
        covering = replace(covering, untrusted="the machine is busy")
        detail += f". Together they leave open more than ±{WIDEST:.0%}: nothing is decided by it"
    return _with(covering, ALONE, CheckOutcome.FLAGGED, detail)


def with_check(timed: TimingResult, outcome: CheckOutcome, detail: str) -> TimingResult:
    """The same timing with what became of the question whether to repeat it."""
    return _with(timed, RE_MEASURED, outcome, detail)


def _with(timed: TimingResult, check: str, outcome: CheckOutcome, detail: str) -> TimingResult:
    return replace(timed, proofs=(*timed.proofs, _check(check, outcome, detail)))


def _refused(timed: TimingResult, bounds: Bounds, detail: str) -> CheckResult:
    message = (
        f"{timed.latency_ms:.3g} ms per call, measured twice, is less than {bounds.least_share:.0%} of what this "
        f"machine's memory takes to deliver the inputs and take the outputs ({bounds.limit.memory_ms:.3g} ms): "
        "the work cannot have been done in that time"
    )
    check_record = CheckRecord(Group.TIMING, RE_MEASURED, CheckOutcome.BROKEN, detail)
    return CheckResult(
        Verdict.REFUSED, timed.seconds, message=message, trials=("timed calls",), proofs=(*timed.proofs, check_record)
    )


def _spoilt(which: str, timed: TimingResult) -> str:
    """How the timing itself says that the machine or the noise spoiled it; empty where it does not."""
    return next((
        f"in the {which} timing the check “{check_record.check}” was flagged: {check_record.detail}"
        for check_record in timed.proofs
        if check_record.check in SPOILING and check_record.standing is CheckOutcome.FLAGGED
    ), "")  # fmt: skip


def _overlap(first: TimingResult, second: TimingResult) -> bool:
    (a, b), (c, d) = first.speedup_interval, second.speedup_interval
    return a <= d and c <= b


def _in_words(timed: TimingResult) -> str:
    low, high = timed.speedup_interval
    return f"{timed.speedup:.3g}x ({low:.3g} to {high:.3g}) at {timed.latency_ms:.3g} ms"
