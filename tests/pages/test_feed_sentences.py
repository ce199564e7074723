"""The feed tells what happened in a run as sentences, newest first."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts.kernel import story
from pages.parts.run.feed_sentences import FeedKind, items
from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.results import relative
from storage.results.deployment import Deployment, Trait
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run.settings import Budget, DepthOutcome, RunState, StepKind
from tests.samples import write_run
from tests.storage.growth import grow
from tests.storage.test_queries import timed

# By which kind of item the feed tells an event, or why it has none of its own.
TOLD_AS: dict[type, FeedKind | str] = {
    ev.RunStarted: FeedKind.STATE, ev.EngineStarted: FeedKind.STATE, ev.StateChanged: FeedKind.STATE,
    ev.RunEnded: FeedKind.STATE, ev.LimitMeasured: FeedKind.LIMIT, ev.BaselineMeasured: FeedKind.BASELINE,
    ev.StepStarted: FeedKind.STEP, ev.StepFinished: FeedKind.STEP, ev.CandidateCreated: FeedKind.STEP,
    ev.Compiled: FeedKind.STEP, ev.Checked: FeedKind.STEP, ev.Timed: FeedKind.STEP, ev.Profiled: FeedKind.STEP,
    ev.DeploymentSeen: FeedKind.DEPLOYMENT,
    ev.ProfileFailed: FeedKind.STEP, ev.DiagnosisWritten: FeedKind.STEP, ev.ModelCalled: FeedKind.STEP,
    ev.ReviewWritten: FeedKind.STEP, ev.Consulted: FeedKind.STEP, ev.Taught: FeedKind.STEP,
    ev.AttemptFailed: "its step tells that no edit could be applied",
    ev.CallSent: "the call that it begins is told when it ends", ev.CallFailed: FeedKind.CALL,
    ev.PatchTried: FeedKind.PATCH, ev.ClassProposed: FeedKind.CLASS, ev.QuestionAsked: FeedKind.QUESTION,
    ev.ApprovalAsked: FeedKind.APPROVAL, ev.ApprovalSettled: FeedKind.APPROVAL, ev.Diverged: FeedKind.REPLAY,
    ev.Imported: FeedKind.IMPORT, ev.DepthFinished: FeedKind.DEPTH, ev.CommandAcknowledged: FeedKind.COMMAND,
    ev.CommandEffective: FeedKind.COMMAND, ev.CommandRefused: FeedKind.COMMAND, ev.BudgetWarned: FeedKind.WARNING,
    ev.BudgetChanged: FeedKind.BUDGET, ev.Ranked: FeedKind.STEP,
    ev.RulesTold: "the page of the kernel that was written next tells it",
    ev.PlaceTaken: "the kernels that follow are seen in their lane",
    ev.SweepStarted: "its step tells it", ev.CompilerShown: "the first prompt has it",
    ev.VariantCompiled: "the kernel's page lists them",
    ev.VariantChecked: "the kernel's page lists them", ev.VariantTimed: "the kernel's page lists them",
    ev.ToolCalled: "its answer tells both", ev.ToolAnswered: FeedKind.TOOL,
}  # fmt: skip


@pytest.fixture
def db(home: Path) -> Iterator[Database]:
    with open_database(index_file(home)) as opened:
        yield opened


def test_the_feed_has_a_place_for_every_kind_of_event() -> None:
    assert set(TOLD_AS) >= set(typing.get_args(ev.Event))


def test_the_feed_tells_every_kind_of_item(db: Database, home: Path) -> None:
    folder = write_run(home / "runs", depths=5)
    settings = replace(folder.read_settings(), strategy_options={"base_policy": "patience=2"})
    folder.settings_file.unlink()
    folder.write_settings(settings)
    grow(db, home / "runs", ev.ClassProposed(KernelClass.MATMUL), ev.BudgetChanged(Budget(depths=9, cost_usd=2.5)))
    grow(db, home / "runs", ev.DeploymentSeen("c001", Deployment(Trait.HELD)))
    grow(db, home / "runs", ev.StepStarted(900, StepKind.OPTIMISE, 99, "c001"))
    grow(db, home / "runs", ev.ToolAnswered(900, 0, 0, "check", "a" * 64, "passed", "it passes", "b" * 64, 1.0))
    shown = {item.kind: item.text for item in reversed(items(db, "sample", limit=2000))}
    assert set(shown) == set(FeedKind)
    assert "torch.compile measured: 1.28× over eager" in shown[FeedKind.BASELINE]
    assert shown[FeedKind.BUDGET] == "Limits changed: 9 depths, $2.50"
    assert "40.0 GB/s, 2.40 TFLOP/s" in shown[FeedKind.LIMIT]
    assert "The reply's patch did not apply to kernel 3: edit 1" in shown[FeedKind.PATCH]
    assert shown[FeedKind.TOOL] == "The model called check on a kernel of its own: it passes"
    assert shown[FeedKind.BASE].startswith("Depth 99 starts from kernel 1 again, not from kernel ")
    assert shown[FeedKind.BASE].endswith(
        ": by the rule of this run, since 2 depths in a row brought no gain above the noise"
    )


def test_a_run_is_told_newest_first_and_whole(db: Database, home: Path) -> None:
    write_run(home / "runs", depths=8)
    grow(db, home / "runs")
    feed = items(db, "sample", limit=1000)
    assert [item.at for item in feed] == sorted((item.at for item in feed), reverse=True)
    texts = {item.text for item in feed}
    assert "Kernel 1 compiles" in texts
    assert "Diagnosed kernel 2" in texts
    assert "Repaired kernel 2 into kernel 3: fix the copy's layout" in texts
    assert "No edit of kernel 3 applied: edit 1: line 40 does not read as given" in texts
    assert "In effect: show profiles to the model on (from step 23)" in texts
    assert "Depth 6 given up: still wrong after 3 repairs" in texts
    assert not [text for text in texts if "None" in text or "  " in text or text.endswith((":", " "))]


def test_the_end_of_a_run_is_told_as_its_head_tells_it(db: Database, home: Path) -> None:
    write_run(home / "runs", depths=2)
    given_up = ev.DepthFinished(9, 2, DepthOutcome.GIVEN_UP, None, "c001", False, False, "left by a person")
    grow(db, home / "runs", given_up, ev.RunEnded(RunState.FINISHED, "all 2 depths are done", "c001"))
    ended = next(item.text for item in items(db, "sample", limit=9) if item.text.startswith("Run finished"))
    assert ended == "Run finished: 2 depths are done; depth 2 made no kernel"
    run = queries.run(db, "sample")
    assert run is not None
    assert ended.endswith(run.state_reason)


def test_a_missing_driver_is_told_in_plain_words_in_runs_from_before_too(db: Database, home: Path) -> None:
    write_run(home / "runs", depths=2)
    noted = (
        "the next step measures a kernel, and no NVIDIA GPU can be used here: the NVIDIA driver's library libcuda.so.1 "
        "cannot be loaded (libcuda.so.1: cannot open shared object file: No such file or directory) "
        "(CUDA_VISIBLE_DEVICES is '0'; `advance --device` and `resume --device` name another GPU). Advance it there"
    )
    grow(db, home / "runs", ev.RunEnded(RunState.STOPPED, noted, "c001"), ev.EngineStarted(1, True))
    told = f"{noted.partition(': ')[0]}: no NVIDIA driver was found. Advance it there"
    assert f"Run stopped: {told}" in [item.text for item in items(db, "sample", limit=9)]
    grow(db, home / "runs", ev.RunEnded(RunState.STOPPED, noted, "c001"))
    run = queries.run(db, "sample")
    assert run is not None
    assert run.state_reason == told


def test_a_depth_that_ends_above_the_best_by_less_than_the_noise_says_so(db: Database, home: Path) -> None:
    ends = [
        ev.DepthFinished(2 + 2 * n, n, DepthOutcome.ACCEPTED, f"c00{n + 1}", None, False, True, "") for n in range(3)
    ]
    events = [(*timed(1 + 2 * n, f"c00{n + 1}", speedup), ends[n]) for n, speedup in enumerate((0.6, 0.61, 0.9))]
    grow(db, home / "runs", *(event for each in events for event in each))
    gained, unproven, _ = (item.text for item in items(db, "sample") if item.kind is FeedKind.DEPTH)
    assert gained == "Depth 2 ends with kernel 3 at 0.90×, the best so far"
    assert unproven == "Depth 1 ends with kernel 2 at 0.61×, the best so far, by less than the noise over kernel 1"
    assert [row.is_gain for row in queries.rises(db, "sample")] == [True, False, True, True]


def test_a_depth_that_lost_speed_says_by_how_much(db: Database, home: Path) -> None:
    first = ev.DepthFinished(2, 0, DepthOutcome.ACCEPTED, "c001", None, False, True, "")
    second = ev.DepthFinished(4, 1, DepthOutcome.ACCEPTED, "c002", "c001", False, False, "")
    grow(db, home / "runs", *timed(1, "c001", 0.6), first, *timed(3, "c002", 0.47), second)
    slower, best = (item for item in items(db, "sample") if item.kind is FeedKind.DEPTH)
    assert (slower.text, slower.outcome) == (
        "Depth 1 ends with kernel 2 at 0.47×, 22 % slower than the best", DepthOutcome.ACCEPTED
    )  # fmt: skip
    assert (best.text, best.outcome) == ("Depth 0 ends with kernel 1 at 0.60×, the best so far", "best")


def test_at_the_edge_of_the_noise_the_list_says_what_the_mark_and_the_kernels_page_say(
    db: Database, home: Path
) -> None:
    first = ev.DepthFinished(2, 0, DepthOutcome.ACCEPTED, "c001", None, False, True, "")
    second = ev.DepthFinished(4, 1, DepthOutcome.ACCEPTED, "c002", "c001", False, False, "")
    grow(db, home / "runs", *timed(1, "c001", 0.631), first, *timed(3, "c002", 0.6), second)
    best, kernel = queries.attempts(db, "sample")
    change = relative.gain(kernel, best, is_on_gpu=False)
    assert change is not None
    assert story.faster_or_slower(change) == "no measurable difference"
    assert kernel.is_tied
    told = next(item.text for item in items(db, "sample") if item.kind is FeedKind.DEPTH)
    assert told == "Depth 1 ends with kernel 2 at 0.60×, no measurable difference from the best"
