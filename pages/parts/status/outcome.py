"""What a run has come to, in figures, and where its time went: the same on its page and in its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.parts import method, speed_of_light, timed_anew, wording
from pages.parts.status import alternatives, beside_base
from pages.parts.timed_anew import Timed
from pages.parts.widgets.bars import Bar
from pages.parts.widgets.figures import Figure
from storage.index import queries
from storage.index.database import Database
from storage.index.queries import AttemptRow, BaselineRow, ElsewhereRow, EvaluationRow, RunRow, StageTime
from storage.index.queries.call_outcomes import call_outcomes
from storage.results import flags, relative
from storage.results.evaluation_results import BUSY_PERCENT, TIMED_AGAIN, used_by_others
from storage.results.hardware_limit import HardwareLimit
from storage.run.settings import RunState
from storage.run.steering.command_arguments import MANUAL

STAGE_NAME = {
    "model": "Model", "compile": "Compile", "check": "Check", "time": "Time", "profile": "Profile",
    "tune": "Tune", "other": "Other",
}  # fmt: skip
# The time in which such replies are written is none of the engine's.
BY_HAND, HANDED_IN = "Taking a person's replies", "Taking the model's replies"
CALLS_TITLE = "What the calls came to"
TIME_TITLE = "Where the time went"
TIME_ABOUT = (
    "Engine time in steps, by what was done; of a step that was cut off or goes on, what its results and replies tell. "
    "Pauses and time without an engine are not counted."
)


def figures(db: Database, run: RunRow) -> list[Figure]:
    """Speed-up, latency before and after, best alternative, hardware limit, and what it took."""
    limit = queries.limit(db, run.run_id)
    eager_ms = relative.baseline_ms(run.best_speedup, run.best_latency_ms)
    allowed = queries.allowance(db, run.run_id)
    return [
        Figure(
            "Over eager PyTorch", wording.best(run), beside_best(run, doubt_best(db, run)),
            "the fastest correct kernel, with its 95 % interval",
        ),
        Figure(
            "Latency", f"{wording.latency(eager_ms)} → {wording.latency(run.best_latency_ms)}", "PyTorch → best kernel",
            f"{wording.LATENCIES} {timed_anew_words(db, run)}".strip(),
        ),
        *alternatives.figures(queries.baseline(db, run.run_id), run.best_measured),
        Figure(
            "Of the hardware limit", speed_of_light.percent(limit, run.best_latency_ms), _limit_note(limit, run),
            f"{speed_of_light.sentence(limit, run.best_latency_ms)} {limit_measured(db, run.run_id)}" if limit else "",
        ),
        Figure("Correct kernels", wording.share(run.passed, run.passed + run.failed), "of those judged"),
        Figure("Tokens", wording.tokens(run.tokens, run.model), wording.counted(run.model_calls, "model call")),
        Figure(
            "Cost", wording.cost(run.cost_usd, run.model),
            wording.NOT_CALLED.partition(":")[0] if wording.is_free(run.cost_usd, run.model) else "of the model calls",
        ),
        Figure("Engine time", wording.seconds(allowed.spent_s if allowed else None), "in steps"),
    ]  # fmt: skip


def beside_best(run: RunRow, why: Doubt | None) -> str:
    """What stands in small print beside the best speed-up: its interval, what is in doubt about it, how many tie."""
    spread = wording.beside(run.best_noise, run.best_low, run.best_high)
    ties = f"tied with {wording.counted(run.tied_kernels, 'other kernel')}" if run.tied_kernels else ""
    return " · ".join(filter(None, [spread, why.short if why else "", ties]))


def tied(run: RunRow, attempts: Sequence[AttemptRow], called: str = "it") -> str:
    """Which of a run's kernels may be as fast as its best, which is `called` so, in figures where it is one; empty
    where none is."""
    best, ties = next((a for a in attempts if a.is_best), None), [a for a in attempts if a.is_tied]
    if not run.best_speedup or not run.tied_kernels:
        return ""
    if len(ties) == 1:
        return (
            f"Kernel {ties[0].number} is tied with {called}. {beside_base.tie(ties[0], best, is_on_gpu=run.is_on_gpu)}"
        )
    return f"{len(ties):,} other kernels are tied with {called}: no measurable difference."


def not_faster(low: float | None, high: float | None) -> str:
    """What a best kernel is, told by its 95 % interval, that is not faster than eager PyTorch for sure; else empty."""
    if low is None or low > 1:
        return ""
    is_slower = high is not None and high < 1
    return f"{'slower' if is_slower else 'not measurably faster'} than eager PyTorch"


def ended(db: Database, run: RunRow, state: RunState) -> str:
    """Why a run is where it is, and of one that was stopped how far it had come, as the list of runs has it; empty
    where there is nothing to say."""
    if state is not RunState.STOPPED:
        return run.state_reason
    came = method.words(run.run_id, db).progress(run.completed, run.depths)
    return f"{came}, {run.state_reason.removeprefix('stopped ')}".removesuffix(", ")


NOISY = 0.1
"""Relative noise from which on the figure of a timing may be another the next time, as somebody would see it."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a timing may come out otherwise the next time: in two words, and in sentences."""

    short: str
    sentence: str


def doubt(
    evaluation: EvaluationRow | None,
    noise: float | None,
    what: str,
    alternative: BaselineRow | None = None,
    others: Sequence[AttemptRow] = (),
) -> Doubt | None:
    """That eager took another time beside `what` than beside the best alternative in its own session or beside another
    kernel (`others`, of a run on a GPU), that others used the machine, and how much of it, or that an interval is wide
    for another reason; None where nothing is in doubt."""
    if moved := _moved(evaluation, what, alternative) or _held_up(evaluation, what, others):
        return Doubt("eager moved", moved)
    share = used_by_others(evaluation.timing_evidence) if evaluation else None
    if share is not None and share > BUSY_PERCENT:
        return Doubt("busy machine", (
            f"The machine was busy while {what} was timed: other programs used {share} % of its processors just "
            "before. On a quiet machine its figures may be others."
        ))  # fmt: skip
    if noise is not None and noise > NOISY and relative.is_known(noise):
        return Doubt("noisy timing", (
            f"The timing of {what} was noisy: another one may give any figure within its interval. Other programs on "
            "the machine are a common cause."
        ))  # fmt: skip
    if alternative is not None and (alternative.noise or 0.0) > NOISY:
        return Doubt("noisy alternative", (
            f"The timing of {alternative.name} was noisy: over it {what} may come out otherwise the next time. Other "
            "programs on the machine are a common cause."
        ))  # fmt: skip
    return None


BY_RATIOS = "By the pairs' median ratios"
"""A kernel's latency times its speed-up: not the median of eager's own calls, where these scatter."""


def _held_up(evaluation: EvaluationRow | None, what: str, others: Sequence[AttemptRow]) -> str:
    """That eager took much longer beside a kernel than beside another one of its run, and what it is over the lesser
    time; empty where it did not."""
    here = relative.baseline_ms(evaluation.speedup, evaluation.latency_ms) if evaluation else None
    timed = [(eager, one.number) for one in others if (eager := relative.baseline_ms(one.speedup, one.latency_ms))]
    if evaluation is None or not evaluation.latency_ms or not timed or relative.held_up(here, min(timed)[0]) == 1:
        return ""
    least, number = min(timed)
    took = (
        f"{BY_RATIOS} eager PyTorch took {wording.latency(here)} beside {what} and {wording.latency(least)} beside "
        f"kernel {number}"
    )
    over_less = wording.speedup(least / evaluation.latency_ms)
    return f"{took}: a slow or busy processor held it up here. Over the lesser time it is {over_less} as fast."


def _moved(evaluation: EvaluationRow | None, what: str, alternative: BaselineRow | None) -> str:
    """How a kernel is compared with an alternative beside which eager took another time; empty where it did not."""
    if evaluation is None or alternative is None or not alternative.is_on_gpu:
        return ""
    here, there = relative.baseline_ms(evaluation.speedup, evaluation.latency_ms), alternative.eager_ms
    took = f"{BY_RATIOS} eager PyTorch took {wording.latency(here)} beside {what} and {wording.latency(there)} beside"
    if relative.held_up(here, there) > 1:
        return (
            f"{took} {alternative.name}: a slow or busy processor held it up here. So the two are compared by their "
            f"own latencies, {wording.latency(evaluation.latency_ms)} and {wording.latency(alternative.latency_ms)}, "
            "which give a lower ratio than their speed-ups over it."
        )
    if relative.held_up(there, here) > 1:
        return (
            f"{took} {alternative.name}: a slow or busy processor held it up there. The two are compared by their "
            "speed-ups over it, which give a lower ratio than their latencies."
        )
    return ""


def doubt_best(db: Database, run: RunRow) -> Doubt | None:
    """The same of the best kernel."""
    evaluation = queries.evaluation(db, run.run_id, run.best_candidate_id) if run.best_candidate_id else None
    alternative = by_itself(db, run.run_id, queries.baseline(db, run.run_id))
    return doubt(evaluation, run.best_noise, "the best kernel", alternative, on_a_gpu(db, run))


def on_a_gpu(db: Database, run: RunRow) -> list[AttemptRow]:
    """The kernels of a run on a GPU; of another none, as there everything slows together."""
    return queries.attempts(db, run.run_id) if run.is_on_gpu else []


def by_itself(db: Database, run_id: str, fastest: BaselineRow | None) -> BaselineRow | None:
    """An alternative as its own session has it."""
    return next((row for row in queries.baselines(db, run_id) if fastest and row.name == fastest.name), None)


def to_look_at(db: Database, run_id: str, candidate_id: str) -> tuple[int, str]:
    """How many findings could change a kernel's verdict, and in a sentence each what is to be done; 0 and nothing where
    there are none."""
    if candidate_id not in queries.outcome_counts(db, run_id, [candidate_id]):
        return 0, ""
    check_records = queries.check_records(db, run_id, candidate_id)
    looks = [flag for flag in flags.flags(check_records) if flag.is_look]
    return flags.to_look_at(check_records), " ".join(f"{flag.check}: {flag.advice}" for flag in looks)


def _limit_note(limit: HardwareLimit | None, run: RunRow) -> str:
    """On which device, or why there is no share of it."""
    if limit is None:
        return ""
    return limit.model if limit.is_known else speed_of_light.why_unknown(limit, run.best_latency_ms)


def decided(db: Database, run_id: str, candidate_id: str) -> str:
    """Which test made a speed-up above what is usual confirmed, or one to look at; empty for any other."""
    return wording.as_written_here(flags.decided(queries.check_records(db, run_id, candidate_id)))


def limit_measured(db: Database, run_id: str) -> str:
    """How and when a run's hardware limit was measured, and what is uncertain about it; empty before it was."""
    limit = queries.limit(db, run_id)
    if limit is None:
        return ""
    how = speed_of_light.how_measured(limit, queries.limit_measured_at(db, run_id))
    return f"{how} {limit_doubt(db, run_id)}".strip()


def limit_doubt(db: Database, run_id: str) -> str:
    """What is uncertain about a run's hardware limit; empty where nothing is known."""
    limit = queries.limit(db, run_id)
    return speed_of_light.doubt(limit, queries.limits_of_others(db, run_id)) if limit else ""


def avoidable(db: Database, run_id: str, candidate_id: str) -> str:
    """That a kernel does without part of the task's work; empty where its profile does not show it."""
    limit = queries.limit(db, run_id)
    if limit is None or not limit.is_undercut:
        return ""
    return speed_of_light.avoidable(limit, queries.executed_share(db, run_id, candidate_id))


def loses(db: Database, run: RunRow) -> str:
    """What is said of a best kernel that beats eager and loses to the best alternative; else empty."""
    fastest = queries.baseline(db, run.run_id)
    said = alternatives.loses(fastest, run.best_measured)
    return f"The best kernel {said}." if said else ""


def elsewhere(db: Database, run: RunRow) -> ElsewhereRow | None:
    """The best alternative as another run has timed it, where this one has a best kernel and timed none."""
    return queries.baselines_elsewhere(db, [run.run_id]).get(run.run_id) if run.best_speedup else None


def headline(db: Database, run: RunRow) -> str:
    """The best speed-up over eager and over the best alternative, and beside one that is no gain beyond the noise its
    interval and that it is none."""
    if not run.best_speedup:
        return "no correct kernel yet"
    beyond = not_faster(run.best_low, run.best_high)
    if not beyond:
        best = wording.best(run)
        fastest = queries.baseline(db, run.run_id)
        over = (
            "the fastest alternative" if alternatives.is_eager_best(fastest)
            else alternatives.over(fastest, run.best_measured)
        )  # fmt: skip
        return f"{best} over eager PyTorch" + (f", {over}" if over else "")
    return f"best kernel {_best(run)}, {beyond}"


def _best(run: RunRow) -> str:
    return wording.measured(run.best_speedup, run.best_noise, run.best_low, run.best_high)


def timed_in_turns(db: Database, run: RunRow) -> str:
    """That the best kernel was timed once more in turns with another, before the run ended, and why; else empty."""
    best = queries.evaluation(db, run.run_id, run.best_candidate_id or "")
    other = best.timing_evidence.get(TIMED_AGAIN) if best else None
    return timed_anew.again(other) if other else ""


def timed_anew_words(db: Database, run: RunRow) -> str:
    """Why the best kernel is not the one with the lowest latency; empty where it is."""
    lowest = queries.lowest_latency(db, run.run_id)
    if lowest is None or not run.best_speedup or not run.best_latency_ms:
        return ""
    best = Timed("the best one", run.best_speedup, run.best_latency_ms)
    return timed_anew.sentence([best, Timed(f"kernel {lowest.number}", lowest.speedup, lowest.latency_ms)])


def time_bars(db: Database, run_id: str) -> list[Bar]:
    """A bar for each stage that took time, in the order of the loop; empty before anything is known of a step."""
    rows = queries.time_by_stage(db, run_id)
    run = queries.run(db, run_id)
    if run is not None and run.model == MANUAL:
        names = STAGE_NAME | {"model": HANDED_IN if wording.is_handed_in(run.model, run.is_example) else BY_HAND}
    else:
        names = STAGE_NAME
    longest = max((row.seconds for row in rows), default=0.0)
    if not longest:
        return []
    return [
        Bar(
            f"{names[row.stage]}, {wording.counted(row.steps, 'step')}{_unended(row)}", row.seconds / longest,
            f"{wording.seconds(row.seconds)} · {percent}",
        )
        for row, percent in zip(rows, wording.percents([row.seconds for row in rows]), strict=True)
    ]  # fmt: skip


def _unended(row: StageTime) -> str:
    if not row.unended:
        return ""
    return " that did not end" if row.unended == row.steps else f", {row.unended} of them did not end"


def call_bars(db: Database, run_id: str) -> list[Bar]:
    """A bar for each outcome that calls came to: their share of the cost where it is known, else of the tokens, else of
    the calls. Empty before the first call."""
    rows = call_outcomes(db, run_id)
    is_priced = all(row.cost_usd is not None for row in rows) and any(row.cost_usd for row in rows)
    is_counted = not any(row.uncounted for row in rows) and any(row.tokens for row in rows)
    shares = [(row.cost_usd or 0.0) if is_priced else row.tokens if is_counted else row.calls for row in rows]
    most = max(shares, default=0)
    return [
        Bar(
            f"{str(row.outcome).capitalize()}, {wording.counted(row.calls, 'call')}", share / most,
            f"{wording.cost(row.cost_usd)} · {percent}" if is_priced else percent,
            note=f"{wording.tokens(row.tokens)} tokens" if is_counted else "",
        )
        for row, share, percent in zip(rows, shares, wording.percents(shares), strict=True)
    ]  # fmt: skip
