"""Who waited for what: spans of a run's time, and what they add up to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from engine import examples
from engine.examples import Example
from storage.index import chunks, database, queries
from storage.index.database import Database
from storage.index.fold import RunFold
from storage.index.queries import call_outcomes, fetch, waiting
from storage.results.evaluation_results import CompileResult
from storage.results.timeline import Part, Timeline
from storage.run import events as ev
from storage.run import journal
from storage.run.call_outcomes import CallOutcome
from storage.run.journal import Entry
from storage.run.models import CallFailure
from storage.run.record import Record, Usage
from storage.run.settings import LEFT, RunSettings, RunState
from storage.run.steering.verbs import Command, CommandKind
from storage.run.waiting import Lane, Span, Waiting, spans
from tests import samples

WORK = (Lane.MODEL, Lane.COMPILER, Lane.EVALUATOR, Lane.LEASE, Lane.DEVICE)


@dataclass
class Told:
    """A journal, event by event, each so many seconds after the one before it."""

    entries: list[Entry] = field(default_factory=list)
    now: float = 1000.0

    def tell(self, after_s: float, event: ev.Event) -> None:
        self.now += after_s
        self.entries.append(Entry(len(self.entries) + 1, self.now, event))


@pytest.fixture
def told() -> Told:
    told = Told()
    told.tell(0, ev.RunStarted("r1", "swish"))
    told.tell(0, ev.EngineStarted(1, False))
    return told


def lengths(found: list[Span]) -> dict[Lane, float]:
    """Seconds by lane."""
    sums: dict[Lane, float] = defaultdict(float)
    for span in found:
        sums[span.lane] += span.ended - span.began
    return {lane: round(seconds, 6) for lane, seconds in sums.items()}


def sent(step: int, attempt: int = 0) -> ev.CallSent:
    return ev.CallSent(step, 0, attempt, "optimise", 0, None, "m", "p", 10, None, None)


def dropped(step: int) -> ev.CallFailed:
    why = CallFailure.DROPPED, "the connection was cut", False, False
    return ev.CallFailed(step, 0, 0, "optimise", 0, None, "m", "p", *why, None, 0, 0, 0, 0, 0.0, 3.0, 5.0)


def compiled(step: int, timeline: Timeline | None) -> ev.Compiled:
    return ev.Compiled(step, "c001", CompileResult(True, 1.0, timeline=timeline), None)


def test_a_call_lasts_from_its_sending_to_its_end_and_the_pause_before_it_is_sent_again_is_the_models_too(
    told: Told,
) -> None:
    told.tell(1, ev.StepStarted(1, "optimise", 0, None))
    told.tell(2, sent(1))
    told.tell(3, dropped(1))
    told.tell(5, sent(1, attempt=1))
    told.tell(7, ev.ModelCalled(1, 0, "optimise", 0, None, "m", "p", "r", 1, 1, 0, 0, 0.0, 7.0, "stop"))
    found = spans(told.entries)
    assert [(span.lane, span.ended - span.began, span.outcome) for span in found] == [
        (Lane.MODEL, 3, "dropped"), (Lane.MODEL, 5, ""), (Lane.MODEL, 7, "stop"),
    ]  # fmt: skip


def test_the_parts_of_an_evaluation_stand_in_their_order_and_fill_its_step(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "compile", 0, "c001"))
    parts: dict[str, float] = {Part.STARTING: 1.0, Part.BUILDING: 4.0, Part.LEASE: 2.0, Part.ENDING: 0.5}
    told.tell(12, compiled(1, Timeline(10.0, 2.5, parts)))
    told.tell(1, ev.StepFinished(1, "compile", 13.0, "passed"))
    found = spans(told.entries)
    assert [(span.lane, round(span.ended - span.began, 6)) for span in found] == [
        (Lane.EVALUATOR, 2.0), (Lane.EVALUATOR, 1.0), (Lane.COMPILER, 4.0), (Lane.LEASE, 2.0), (Lane.DEVICE, 2.5),
        (Lane.EVALUATOR, 0.5), (Lane.EVALUATOR, 1.0),
    ]  # fmt: skip
    assert all(before.ended == pytest.approx(after.began) for before, after in pairwise(found))


def test_parts_that_are_longer_than_the_step_was_are_shortened_alike(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "compile", 0, "c001"))
    told.tell(2, compiled(1, Timeline(10.0, 4.0, {Part.BUILDING: 6.0})))
    assert lengths(spans(told.entries)) == {Lane.COMPILER: 1.2, Lane.DEVICE: 0.8}


def test_a_pause_and_the_wait_for_a_person_are_no_time_of_the_step_in_flight(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "compile", 0, "c001"))
    told.tell(0, ev.StateChanged(RunState.PAUSED, "paused by a person"))
    told.tell(60, ev.StateChanged(RunState.RUNNING, "resumed by a person"))
    told.tell(0, ev.StateChanged(RunState.WAITING, "Your reply is needed"))
    told.tell(30, ev.StateChanged(RunState.RUNNING, "steered on by a person"))
    told.tell(5, compiled(1, None))
    assert lengths(spans(told.entries)) == {Lane.PAUSED: 60.0, Lane.PERSON: 30.0, Lane.COMPILER: 5.0}


def test_a_run_that_was_left_waits_for_its_person_and_one_that_was_killed_had_no_engine(told: Told) -> None:
    told.tell(1, ev.StateChanged(RunState.WAITING, "Your reply is needed"))
    told.tell(0, ev.RunEnded(RunState.STOPPED, f"{LEFT}Your reply is needed", None))
    told.tell(100, ev.EngineStarted(2, True))
    told.tell(1, ev.StepStarted(1, "optimise", 0, None))
    told.tell(40, ev.EngineStarted(3, True))
    assert lengths(spans(told.entries)) == {Lane.PERSON: 100.0, Lane.OFF: 40.0}


def test_what_goes_on_is_known_and_since_when_nothing_but_the_model_works(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "compile", 0, "c001"))
    told.tell(5, compiled(1, None))
    told.tell(0, ev.StepFinished(1, "compile", 5.0, "passed"))
    freed = told.now
    told.tell(1, ev.StepStarted(2, "optimise", 0, None))
    told.tell(1, sent(2))
    told_so_far = Waiting()
    assert [span.lane for entry in told.entries for span in told_so_far.apply(entry)] == [Lane.COMPILER]
    (going,) = told_so_far.open_spans
    assert (going.lane, going.began, told_so_far.idle_since) == (Lane.MODEL, told.now, freed)
    list(told_so_far.apply(Entry(99, told.now + 1, ev.StateChanged(RunState.WAITING, "Your reply is needed"))))
    assert ([span.lane for span in told_so_far.open_spans], told_so_far.idle_since) == ([Lane.PERSON], None)


@pytest.mark.parametrize("example", examples.shipped_examples(), ids=lambda example: example.run_id)
def test_spans_and_call_outcomes_of_the_examples_add_up_to_what_the_runs_have_spent(example: Example) -> None:
    entries = [journal.decode(line) for line in examples.example_files(example.run_id)["journal.jsonl"].splitlines()]
    record = Record.of(example.settings, entries)
    usage, found = record.usage, spans(entries)
    assert lengths(found).get(Lane.DEVICE, 0.0) == pytest.approx(usage.device_s, abs=0.01)
    worked = sum(span.ended - span.began for span in found if span.lane in WORK and span.step)
    assert worked == pytest.approx(usage.worked_s, rel=0.02, abs=0.5)
    assert sum(span.ended - span.began for span in found) == pytest.approx(entries[-1].time - entries[0].time, abs=2)
    with database.in_memory() as db:
        write(db, example.settings, entries)
        add_up(db, example.run_id, usage)
        (run,) = queries.of_ids(db, [example.run_id])
        assert record.ended is not None
        assert run.state_reason == record.ended.reason


BUILT = CompileResult(True, 3.0, timeline=Timeline(3.0, 2.0, {}))
BASELINE = ev.BaselineMeasured("torch.compile", None, "none")


def worked(told: Told, width: int = 1) -> tuple[float, float]:
    """What is finished or cut off, and what is known of the step in flight; the index has the same by stages, event by
    event and all at once."""
    settings = replace(samples.sample_settings("r1", 0, 8), width=width)
    usage = Record.of(settings, told.entries).usage
    record = Record.at_start(settings)
    for entry in told.entries:
        record.take(entry)
    assert record.usage == usage
    with database.in_memory() as db, database.in_memory() as slowly:
        write(db, settings, told.entries)
        add_up(db, "r1", usage)
        fold = RunFold(settings)
        for entry in told.entries:
            with slowly.transaction() as writer:
                writer.add([chunks.storable_row(row) for row in fold.apply(entry)])
                writer.put(fold.rows())
        add_up(slowly, "r1", usage)
    return usage.engine_s, usage.in_step_s


def test_work_in_a_step_that_was_cut_off_counts_as_far_as_the_journal_tells(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "time", 0, None))
    told.tell(5, ev.Compiled(1, "c001", BUILT, None))
    told.tell(40, BASELINE)
    assert worked(told) == (0, 45), "the engine may be at it, or was killed"
    told.tell(600, ev.EngineStarted(2, True))
    assert worked(told) == (45, 0), "what it did after its last word is not known"
    told.tell(0, ev.CommandAcknowledged(Command("1", CommandKind.STOP, "", "me", 0.0), 1))
    told.tell(7, ev.RunEnded(RunState.STOPPED, "stopped by a person", None))
    assert worked(told) == (45, 0), "this engine did nothing in the step"
    told.tell(0, ev.EngineStarted(3, True))
    told.tell(20, BASELINE)
    told.tell(2, ev.RunEnded(RunState.STOPPED, "stopped by a person", None))
    assert worked(told) == (67, 0), "it was at the step until it ended"
    told.tell(60, ev.EngineStarted(4, True))
    told.tell(30, BASELINE)
    told.tell(1, ev.StepFinished(1, "time", 29.0, "passed"))
    assert worked(told) == (96, 0), "its end counts since it was taken up last"


def test_a_reply_that_a_pause_broke_off_counts_and_the_pause_does_not(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "synthesise", 0, None))
    told.tell(0, sent(1))
    told.tell(8, dropped(1))
    told.tell(0, ev.StateChanged(RunState.PAUSED, "paused by a person"))
    assert worked(told) == (0, 8)
    told.tell(300, ev.StateChanged(RunState.RUNNING, "resumed by a person"))
    told.tell(0, sent(1))
    told.tell(11, dropped(1))
    assert worked(told) == (0, 19)
    told.tell(0, ev.StepFinished(1, "synthesise", 11.0, "created"))
    assert worked(told) == (19, 0)


def test_of_several_steps_in_flight_time_counts_once(told: Told) -> None:
    told.tell(0, ev.StepStarted(1, "time", 0, None))
    told.tell(2, ev.StepStarted(2, "time", 1, None))
    told.tell(8, ev.Compiled(1, "c001", BUILT, None))
    told.tell(1, ev.StepFinished(2, "time", 11.0, "passed"))
    assert worked(told, width=2) == (11, 0), "all since the first began"
    told.tell(4, ev.Compiled(1, "c001", BUILT, None))
    assert worked(told, width=2) == (11, 4)
    told.tell(90, ev.EngineStarted(2, True))
    assert worked(told, width=2) == (15, 0)


def write(db: Database, settings: RunSettings, entries: list[Entry]) -> None:
    fold = RunFold(settings)
    with db.transaction() as writer:
        writer.add([chunks.storable_row(row) for entry in entries for row in fold.apply(entry)])
        writer.put(fold.rows())


def add_up(db: Database, run_id: str, usage: Usage) -> None:
    """What the index says of calls and lanes is what the run has spent."""
    assert sum(stage.seconds for stage in queries.time_by_stage(db, run_id)) == pytest.approx(usage.worked_s)
    (run,) = queries.of_ids(db, [run_id])
    allowed = queries.allowance(db, run_id)
    assert allowed is not None
    assert run.engine_s == allowed.spent_s == pytest.approx(usage.worked_s)
    rows = call_outcomes.call_outcomes(db, run_id)
    assert sum(row.calls for row in rows) == usage.model_calls
    assert sum(row.tokens for row in rows) == usage.tokens
    costs = [row.cost_usd for row in rows]
    assert (None if None in costs else pytest.approx(sum(cost or 0.0 for cost in costs))) == usage.cost_usd
    held = [bar.ended - bar.began for bar in waiting.bars(db, [run_id]) if bar.lane is Lane.DEVICE]
    assert sum(held) == pytest.approx(usage.device_s, abs=0.01)


@pytest.mark.parametrize(
    ("seed", "strategy", "width", "ending"),
    [(0, "cutegen", 1, "finished"), (1, "coder_judge", 1, "stopped"), (2, "cutegen", 3, "running"),
     (3, "cutegen", 1, "failed"), (4, "cutegen", 1, "waiting")],
)  # fmt: skip
def test_each_call_of_any_run_came_to_one_outcome(seed: int, strategy: str, width: int, ending: str) -> None:
    settings = replace(samples.sample_settings("r1", seed, 8), strategy=strategy, width=width)
    entries = samples.sample_script(settings, seed, ending).entries
    with database.in_memory() as db:
        write(db, settings, entries)
        add_up(db, "r1", Record.of(settings, entries).usage)


def test_calls_come_to_the_same_told_event_by_event_and_all_at_once() -> None:
    settings = samples.sample_settings("r1", 1, 8)
    entries = samples.sample_script(settings, 1).entries
    fold = RunFold(settings)
    with database.in_memory() as db, database.in_memory() as at_once:
        for entry in entries:
            with db.transaction() as writer:
                writer.add([chunks.storable_row(row) for row in fold.apply(entry)])
                writer.put(fold.rows())
        write(at_once, settings, entries)
        found = call_outcomes.call_outcomes(at_once, "r1")
        assert len(found) > 4
        assert call_outcomes.call_outcomes(db, "r1") == found


def test_replies_that_could_not_be_used_repairs_and_texts_are_told_apart() -> None:
    settings = samples.sample_settings("r1", 0, 8)
    with database.in_memory() as db:
        write(db, settings, samples.sample_script(settings).entries)
        found = {row.outcome: row.calls for row in call_outcomes.call_outcomes(db, "r1")}
        kept = fetch.tuples(db, "SELECT count(*) FROM kernels WHERE is_accepted AND origin <> 'repair'")[0][0]
    assert found[CallOutcome.REPAIR] > 0
    assert found[CallOutcome.TEXT] > 0
    assert found[CallOutcome.KEPT] == kept


def test_the_best_kernel_of_a_run_that_ended_within_its_step_is_told_as_the_best() -> None:
    settings = samples.sample_settings("r1", 0, 8)
    entries = samples.sample_script(settings).entries
    timed = next(at for at, entry in enumerate(entries) if isinstance(entry.event, ev.Timed))
    with database.in_memory() as db:
        write(db, settings, entries[: timed + 1])
        found = {row.outcome: row.calls for row in call_outcomes.call_outcomes(db, "r1")}
    assert found[CallOutcome.BEST] == 1
    assert not {CallOutcome.CORRECT, CallOutcome.KEPT} & set(found)


def test_a_long_run_is_thinned_and_its_bars_last_no_longer_than_its_spans() -> None:
    settings = samples.sample_settings("r1", 3, 300)
    entries = samples.sample_script(settings, 3).entries
    found = [span for span in spans(entries) if span.lane is not Lane.OFF]
    with database.in_memory() as db:
        write(db, settings, entries)
        bars = waiting.bars(db, ["r1"])
    assert len(found) > 2 * waiting.MOST_BARS
    assert len(bars) <= waiting.MOST_BARS
    assert sum(bar.count for bar in bars) == len(found)
    assert sum(bar.ended - bar.began for bar in bars) == pytest.approx(sum(s.ended - s.began for s in found))
