"""The pure parts of the cockpit: alerts, phases, lanes of the lineage, the explanation of a step."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from engine import examples
from engine.cli import report
from engine.search.methods import catalogue
from engine.shown import runs
from pages.parts import index, method
from pages.parts.api import api_answers
from pages.parts.overview import runs_table
from pages.parts.run import activity, kernel_panel, key_figures, lineage_strip
from pages.parts.run.curve_marks import Phase, phase_bands, phases
from pages.parts.run.feed_sentences import FeedItem, FeedKind
from pages.parts.status import alerts, now, settings_list
from pages.parts.status.alerts import AlertKind
from storage.index import queries
from storage.index.queries import CostRow, ExposureRow, FamilyRow, TroubleRow
from storage.results.vocabulary import Verdict
from storage.run import damage
from storage.run import events as ev
from storage.run.exposure import Exposure
from storage.run.journal import Journal
from storage.run.method_words import AS_STORED
from storage.run.settings import Origin, RunState, StepKind, Switch
from tests import samples
from tests.pages.conftest import Open

NOW = 2e9
CALM = TroubleRow(
    "r1", "c009", 9, 4, 400, 2.0, 0.01, 8, 1.9, 0.01, 0, None, 10, 2, None, "", 399, False, [], None, NOW - 5.0
)


def kinds(state: RunState = RunState.RUNNING, **changed: object) -> list[AlertKind]:
    return [alert.kind for alert in alerts.find(dataclasses.replace(CALM, **changed), state, NOW)]  # type: ignore[arg-type]


def test_a_run_that_goes_well_raises_no_alert() -> None:
    assert kinds() == []


def test_an_idle_device_is_an_alert_only_after_a_while_and_only_of_a_run_that_runs() -> None:
    assert kinds(idle_since=NOW - 179.0) == []
    assert kinds(RunState.WAITING, idle_since=NOW - 1000.0) == []


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"newest_speedup": 1.5}, AlertKind.REGRESSION),
        ({"since_gain": 3}, AlertKind.STAGNATION),
        ({"is_repeated": True, "last_verdict": Verdict.INCORRECT, "last_message": "3 wrong"}, AlertKind.REPEATED),
        ({"budgets": ["tokens"], "budget_seq": 7}, AlertKind.BUDGET),
        ({"last_event_at": NOW - 1000.0}, AlertKind.HEARTBEAT),
        ({"recent_failed": 7, "last_message": "no such header"}, AlertKind.FAILING),
        ({"idle_since": NOW - 181.0}, AlertKind.IDLE),
    ],
)
def test_each_trouble_is_an_alert_of_its_own_that_says_what_to_do(changed: dict[str, object], kind: AlertKind) -> None:
    facts = dataclasses.replace(CALM, **changed)  # type: ignore[arg-type]
    found = alerts.find(facts, RunState.RUNNING, NOW)
    assert [alert.kind for alert in found] == [kind]
    assert found[0].advice.endswith(".")
    assert alerts.find(facts, RunState.FINISHED, NOW) == []


def test_a_loss_within_the_noise_is_no_regression() -> None:
    assert kinds(newest_speedup=1.89) == []
    assert kinds(newest_speedup=1.8, newest_noise=0.1) == []
    assert kinds(newest_speedup=1.82) == [], "two sessions of one kernel differ by as much"


def test_a_loss_that_eager_hid_on_a_gpu_is_a_regression() -> None:
    held_up: dict[str, Any] = {"newest_latency_ms": 1.5, "base_latency_ms": 1.0, "newest_speedup": 2.0}
    assert kinds(**held_up) == [], "on a processor both slow down together"
    assert kinds(**held_up, is_on_gpu=True) == [AlertKind.REGRESSION]
    (alert,) = alerts.find(dataclasses.replace(CALM, **held_up, is_on_gpu=True), RunState.RUNNING, NOW)
    assert "kernel 9 is 0.67× as fast as its base, kernel 8 (" in alert.text


def test_the_runs_own_patience_counts_before_ours() -> None:
    assert kinds(since_gain=3, patience=5) == []
    assert kinds(since_gain=5, patience=5) == [AlertKind.STAGNATION]


def test_a_lost_engine_is_an_alert_and_a_paused_one_may_be_silent() -> None:
    assert kinds(RunState.LOST) == [AlertKind.HEARTBEAT]
    assert kinds(RunState.PAUSED, last_event_at=NOW - 1e5) == []


def test_an_alert_is_new_when_what_it_rests_on_is() -> None:
    first, second = (
        alerts.find(dataclasses.replace(CALM, newest_speedup=1.5, newest_seq=seq), RunState.RUNNING, NOW)[0]
        for seq in (400, 500)
    )
    assert first.alert_id != second.alert_id


def test_the_same_failure_twice_is_seen_in_a_real_journal(home: Path) -> None:
    samples.write_run(home / "runs", "r1", depths=16, ending="running")
    opened = index.open_index()
    opened.ingest.catch_up()
    facts = queries.troubles(opened.database, ["r1"])["r1"]
    attempts = queries.attempts(opened.database, "r1")
    index.close_index()
    last = [a.verdict for a in attempts][-2:]
    assert facts.is_repeated is (last[0] is last[1] and last[1] is not Verdict.PASSED)
    assert facts.recent_failed == sum(a.verdict is not Verdict.PASSED for a in attempts[-10:])


def test_phases_are_named_by_what_the_model_saw() -> None:
    seen = [ExposureRow(0, 2, False), ExposureRow(3, 5, True)]
    found = phases(seen, Switch.AUTO, None, last=10)
    assert [(p.first, p.last, p.name) for p in found] == [
        (0, 2, "the model sees no profiles"),
        (3, 5, "the model sees profiles"),
    ]


def test_a_band_without_profiles_where_some_were_to_be_shown_says_why() -> None:
    found = phases([ExposureRow(0, 2, False), ExposureRow(3, 4, True)], Switch.AUTO, None, 4, whys={2: "disturbed"})
    assert found == [Phase(0, 1, False), Phase(2, 2, False, why="disturbed"), Phase(3, 4, True)]
    said = [band["label"]["texts"][0] for band in phase_bands(found) if band.get("label")]
    assert said == ["the model sees no profiles", "the model sees no profile: disturbed", "the model sees profiles"]


def test_what_the_switch_and_the_settings_promise_is_planned() -> None:
    assert phases([], Switch.ON, None, 4) == [Phase(0, 4, True, True)]
    assert phases([ExposureRow(0, 1, False)], Switch.OFF, Exposure(3), 4) == [
        Phase(0, 1, False),
        Phase(2, 4, False, True),
    ]
    assert phases([ExposureRow(0, 1, False)], Switch.AUTO, Exposure(3), 4) == [
        Phase(0, 1, False), Phase(2, 2, False, True), Phase(3, 4, True, True)
    ]  # fmt: skip
    assert phases([ExposureRow(0, 4, True)], Switch.ON, Exposure(0), 4) == [Phase(0, 4, True)]


def test_an_adaptive_schedule_is_planned_by_what_it_waits_for() -> None:
    (later,) = phases([], Switch.AUTO, Exposure(1, patience=2), 0)
    assert (later.name, later.is_profile_guided) == ("the model sees no profiles", False)
    _, later = phases([ExposureRow(0, 2, False)], Switch.AUTO, Exposure(1, patience=2), 6, AS_STORED)
    assert (later.first, later.last, later.name) == (3, 6, "profiles after 2 depths without a gain")
    bands = phase_bands([Phase(0, 2, False), later])
    assert [band["label"]["texts"][:1] for band in bands] == [["the model sees no profiles"], [later.name]]


def node(name: str, parent: str | None, is_best: bool = False, second: str | None = None) -> FamilyRow:
    return FamilyRow(
        name, int(name), parent, second, parent, 0, 0, 0, Origin.REPAIR, None, None, False, False, is_best, False, ""
    )


def test_the_path_to_the_best_is_on_the_first_lane_and_branches_are_beside_it() -> None:
    rows = [
        node("1", None),
        node("2", "1"),
        node("3", "2"),
        node("4", "1"),
        node("5", "4", is_best=True),
        node("6", "5"),
    ]
    placed = {n.row.candidate_id: n for n in lineage_strip.place(rows)}
    assert [name for name, n in placed.items() if n.is_on_path] == ["1", "4", "5"]
    assert [name for name, n in placed.items() if n.lane == 0] == ["1", "4", "5"]
    assert placed["2"].lane == placed["3"].lane == 1
    assert placed["6"].lane > 0


def test_trajectories_that_are_written_at_the_same_time_have_a_lane_each() -> None:
    first, second = [node(f"{2 + n}", "1") for n in range(6)], [node(f"{8 + n}", f"{2 + n}") for n in range(6)]
    placed = lineage_strip.place([node("1", None, is_best=True), *first, *second])
    assert [one.lane for one in placed] == [0, *range(1, 7), *range(1, 7)]


def test_a_crossover_is_tied_to_both_its_parents() -> None:
    placed = lineage_strip.place([node("1", None), node("2", "1"), node("3", "2", second="1"), node("4", "3")])
    assert [(n.parent, n.second_parent) for n in placed] == [(None, None), (0, None), (1, 0), (2, None)]
    assert lineage_strip.shown(placed[2], "birth")["second_parent"] == 0


def test_a_parent_that_is_not_shown_and_a_circle_do_no_harm() -> None:
    placed = lineage_strip.place([node("7", "1"), node("8", "8", is_best=True), node("9", "7")])
    assert [n.parent for n in placed] == [None, 1, 0]
    assert lineage_strip.place([]) == []


@pytest.mark.parametrize(
    ("kind", "outcome", "tone"),
    [("depth", "best", "green"), ("depth", "accepted", ""), ("step", "timed", ""), ("step", "passed", "green")],
)
def test_only_the_fastest_so_far_ends_a_depth_in_green(kind: str, outcome: str, tone: str) -> None:
    item = FeedItem(1, 0.0, FeedKind(kind), outcome, "kernel 2 at 0.47×")
    text = activity.cells(item)["text"]
    assert isinstance(text, dict)
    assert text["tone"] == tone


def test_a_cost_that_is_not_known_is_not_free() -> None:
    assert kernel_panel.cost(CostRow(1, None, None, 2.0, 61.0)) == (
        "1 model call · tokens not told · unknown · written in 2.0 s · judged in 1 min 01 s"
    )


def test_the_bar_tells_how_many_steps_are_at_work_beside_the_one_that_it_shows(home: Path, open_page: Open) -> None:
    journal = Journal(samples.write_run(home / "runs", "r1", depths=2, ending="stopped", width=3).journal_file)
    journal.append(ev.EngineStarted(1, True))
    for number in range(3):
        journal.append(ev.StepStarted(90 + number, StepKind.COMPILE, 3 + number, "c001"))
    journal.close()
    open_page("run", run="r1")
    run, step = queries.run(index.current(), "r1"), queries.current_step(index.current(), "r1")
    assert run is not None
    assert now.detail(run, RunState.RUNNING, step).startswith("depth 5 of ")
    assert now.detail(run, RunState.RUNNING, step).endswith(", 2 others at work")


def test_a_depth_counts_as_completed_once_it_has_ended(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    lines = folder.journal_file.read_bytes().splitlines(keepends=True)
    folder.journal_file.write_bytes(b"".join(line for line in lines if json.loads(line)["kind"] != "RunEnded"))
    journal = Journal(folder.journal_file)
    journal.append(ev.StepStarted(90, StepKind.OPTIMISE, 2, "c001"))
    journal.append(ev.RunEnded(RunState.STOPPED, "", None))
    journal.close()
    open_page("run", run="r1")
    run, step = queries.run(index.current(), "r1"), queries.steps(index.current(), "r1")[0]
    assert run is not None
    assert (step.depth, run.depth, run.depths) == (2, 2, 2)
    assert key_figures._state(run, run.state)["note"] == "1 of 2 depths"
    cell: Any = runs_table._cells(run, run.state, (), None)["depth"]
    assert (cell["text"], cell["share"]) == ("1 / 2", 0.5)
    assert api_answers.run(run)["depth"] == runs._common(folder, report.load(folder), damage.Damage())["depth"] == 1


def test_a_run_without_a_correct_kernel_says_so_and_counts_its_only_sample(open_page: Open) -> None:
    (run,) = examples.open_examples(["gelu-20261125-104436-3c8f"])
    app = open_page("run", run=run.run_id)
    (told,) = app.error
    assert told.value.replace("\\", "").startswith("**No kernel was correct:** wrong result (1 kernel).")
    assert "refused" not in app.title[0].value
    found = queries.run(index.current(), run.run_id)
    assert found
    assert method.completed(found) == (1, 1)
    assert catalogue.words("best_of").place(0, 0) == "sample 1 of 1"
    assert catalogue.words("best_of").progress(0, 0) == "0 of 1 sample"
    assert catalogue.words("cutegen").place(3, 8) == "depth 3 of 8"
    assert catalogue.words("cutegen").progress(3, 8) == "2 of 8 depths"


def test_the_limit_of_samples_counts_the_first_one_as_the_list_of_runs_does(open_page: Open) -> None:
    one, two = examples.open_examples(["gelu-20261125-104436-3c8f", "tanh-20261125-034810-a1d2"])
    open_page("overview")
    told = {}
    for run in (one, two):
        listed, found = settings_list.of(run.run_id), queries.run(index.current(), run.run_id)
        assert not isinstance(listed, str)
        assert found
        told[run.run_id] = dict(listed)["Samples"], dict(listed)["Limits at the start"], method.completed(found)
    assert told[one.run_id] == ("1", "1 sample", (1, 1))
    assert told[two.run_id] == ("8", "3 samples (of this and “Samples” above the lower holds)", (2, 3))
    assert (catalogue.words("best_of").limited, catalogue.words("cutegen").limited) == (
        "Samples after the first", "Depths"
    )  # fmt: skip
