"""What waits for a person, what another system recorded, and how well models' patches apply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database
from storage.index.ingest import Ingest
from storage.index.queries import RunFilter
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.models import CallFailure
from storage.run.settings import LEFT, Origin, RunState, StepKind
from storage.run.steering.command_arguments import Fallback
from tests.samples import sample_settings, write_run


def tell(db: Database, root: Path, *events: ev.Event, run_id: str = "r1") -> None:
    folder = RunFolder(root / run_id)
    if not folder.settings_file.exists():
        folder.write_settings(sample_settings(run_id))
    journal = Journal(folder.journal_file)
    for event in events:
        journal.append(event)
    journal.close()
    Ingest(db, root).catch_up()


def called(step: int, call: int, model: str = "m") -> ev.ModelCalled:
    return ev.ModelCalled(
        step, call, StepKind.OPTIMISE, 1, "c001", model, "p", "r", 1, 1, 0, 0, 0.0, 1.0, "stop"
    )  # fmt: skip


SENT = ev.CallSent(2, 0, 0, StepKind.OPTIMISE, 1, "c001", "m", "sent", 9, None, None)
FAILED = ev.CallFailed(
    2, 0, 0, StepKind.OPTIMISE, 1, "c001", "m", "sent", CallFailure.RATE_LIMITED, "no", False, False, None, *(0,) * 4,
    0.0, 0.2, 2.0,
)  # fmt: skip


def tried(step: int, call: int, *, is_applied: bool, form: str = "edits (json block)") -> ev.PatchTried:
    rung = ("edits", "reask", "search_replace", "rewrite")[call]
    return ev.PatchTried(step, call, "c001", rung, is_applied, 1, "", None, form)


QUESTION = ev.QuestionAsked(1, 0, StepKind.SYNTHESISE, 0, None, "prompt")
DONE = ev.StepFinished(2, StepKind.OPTIMISE, 1.0, "created")
WAITING = ev.StateChanged(RunState.WAITING, "your answer is needed")


@pytest.mark.parametrize(
    ("events", "prompt", "is_open"),
    [
        ((SENT,), "sent", True), ((SENT, FAILED), "sent", False), ((SENT, FAILED, SENT), "sent", True),
        ((SENT, called(2, 0)), "p", False), ((SENT, DONE), "sent", False), ((called(2, 0), QUESTION), "prompt", True),
    ],
)  # fmt: skip
def test_the_last_prompt_is_open_until_something_ends_its_call(
    db: Database, root: Path, events: tuple[ev.Event, ...], prompt: str, is_open: bool
) -> None:
    tell(db, root)
    assert queries.last_prompt(db, "r1") is None
    tell(db, root, *events)
    found = queries.last_prompt(db, "r1")
    assert found is not None
    assert (found.prompt_blob, found.is_open) == (prompt, is_open)


def test_the_prompt_before_is_the_last_of_its_role_or_else_the_last_of_all_and_never_the_same_call(
    db: Database, root: Path
) -> None:
    first = replace(called(1, 0), role=StepKind.SYNTHESISE, prompt_blob="a")
    told = [
        first,
        replace(called(2, 0), prompt_blob="b"),
        replace(called(3, 0), role=StepKind.DIAGNOSE, prompt_blob="c"),
    ]
    tell(db, root, *told, replace(called(4, 0), prompt_blob="d"), replace(called(4, 0), prompt_blob="e"))
    before = [queries.prompt_before(db, "r1", call) for call in queries.model_calls(db, "r1")]
    assert [one.prompt_blob if one else None for one in before] == [None, "a", "b", "b", "b"]


def test_a_question_is_open_until_its_step_has_a_reply(db: Database, root: Path) -> None:
    tell(db, root, ev.StepStarted(1, StepKind.SYNTHESISE, 0, None), QUESTION, WAITING)
    found = queries.open_question(db, "r1")
    assert found is not None
    assert (found.step, found.role, found.prompt_blob, found.source_blob) == (1, StepKind.SYNTHESISE, "prompt", None)
    assert queries.waiting_runs(db) == ["r1"]
    tell(db, root, ev.StateChanged(RunState.RUNNING, ""), called(1, 0, "manual"))
    assert queries.open_question(db, "r1") is None
    assert queries.waiting_runs(db) == []


def test_a_step_that_was_left_takes_its_question_along(db: Database, root: Path) -> None:
    tell(db, root, QUESTION, ev.StepFinished(1, StepKind.SYNTHESISE, 0.0, "dropped"))
    assert queries.open_question(db, "r1") is None


def test_a_step_waits_for_a_yes_until_the_run_goes_on(db: Database, root: Path) -> None:
    asked = ev.ApprovalAsked(2, StepKind.COMPILE, 0, "c001", Fallback.NO, 60.0)
    made = ev.CandidateCreated(1, "c001", None, None, 0, 0, 0, Origin.SYNTHESIS, "s", None, 1, 0, "first")
    tell(db, root, made, asked, WAITING)
    found = queries.open_approval(db, "r1")
    assert found is not None
    assert (found.step, found.kind, found.number, found.summary, found.fallback) == (
        2, StepKind.COMPILE, 1, "first", Fallback.NO,
    )  # fmt: skip
    tell(db, root, ev.StateChanged(RunState.RUNNING, ""), ev.StepStarted(2, StepKind.COMPILE, 0, "c001"))
    assert queries.open_approval(db, "r1") is None


def test_a_step_with_patches_counts_once_by_when_one_applied_and_once_by_its_form(db: Database, root: Path) -> None:
    begun = [ev.StepStarted(step, StepKind.OPTIMISE, step, None) for step in range(4)]
    done = [ev.StepFinished(step, StepKind.OPTIMISE, 1.0, "created") for step in range(4)]
    tell(
        db, root, begun[0],
        called(0, 0), tried(0, 0, is_applied=True, form="rewrite (whole file)"), done[0],
        begun[1], called(1, 0), tried(1, 0, is_applied=False, form=""),
        called(1, 1), tried(1, 1, is_applied=True), done[1], begun[2],
        *(event for call in range(4) for event in (called(2, call), tried(2, call, is_applied=False))), done[2],
        begun[3], called(3, 0, "other"), tried(3, 0, is_applied=False),
    )  # fmt: skip
    first, other = queries.patch_rates(db)
    assert (first.model, first.calls, first.replies, first.parsed, first.steps) == ("m", 7, 7, 6, 3)
    assert (first.first, first.later, first.failed) == (1, 1, 1)
    assert (first.edits, first.search_replace, first.rewrite) == (1, 0, 1), "a whole file at the first try is one"
    assert (other.model, other.calls, other.steps, other.failed) == ("other", 1, 0, 0), "its step still goes on"


def test_what_was_recorded_elsewhere_is_not_among_our_figures(db: Database, root: Path) -> None:
    folder = write_run(root, "sample", depths=6)
    Ingest(db, root).catch_up()
    told = [row for a in queries.attempts(db, folder.run_id) if (row := queries.imported(db, "sample", a.candidate_id))]
    assert [(row.file, row.latency_ms, row.baseline_latency_ms) for row in told] == [("node_4.json", 1.25, 2.5)]
    ours = next(a for a in queries.attempts(db, "sample") if a.candidate_id == told[0].candidate_id)
    assert ours.latency_ms != told[0].latency_ms


def test_a_run_that_was_left_at_a_prompt_waits_though_its_engine_has_stopped(db: Database, root: Path) -> None:
    tell(db, root, ev.StepStarted(1, StepKind.SYNTHESISE, 0, None), QUESTION, WAITING)
    tell(db, root, ev.RunEnded(RunState.STOPPED, f"{LEFT}write the first kernel", None))
    assert queries.waiting_runs(db) == ["r1"]
    assert [(row.state, row.runs) for row in queries.state_counts(db)] == [(RunState.WAITING, 1)]
    assert queries.listing(db, RunFilter(state="waiting")).run_ids == ["r1"]
    assert queries.listing(db, RunFilter(state="stopped")).run_ids == []
    (run,) = queries.overview(db)
    assert (run.state, run.waiting_reason) == (RunState.STOPPED, "write the first kernel")
    tell(db, root, ev.RunEnded(RunState.STOPPED, "stopped by ada", None))
    assert queries.waiting_runs(db) == []
    assert queries.listing(db, RunFilter(state="stopped")).run_ids == ["r1"]
