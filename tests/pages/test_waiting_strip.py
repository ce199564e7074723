"""Who waited for what, as pages and reports tell it."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import examples
from pages.parts import wording
from pages.parts.api import api_answers
from pages.parts.report import report_run
from pages.parts.status import alerts, waiting_strip
from storage import device_use
from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries.waiting import Bar
from storage.run import events as ev
from storage.run import liveness
from storage.run.folder import RunFolder, run_at
from storage.run.journal import Journal
from storage.run.settings import RunState, StepKind
from storage.run.waiting import Lane
from tests import samples
from tests.pages.conftest import Open, everything, protos, words

EXAMPLE = "softmax-20261125-072455-5580"
SAID = (
    "that the run had an engine, the device worked 42 % of the time; for 39 % the compiler worked, for 12 % the model "
    "was writing"
)


def lanes_of(app: AppTest) -> list[dict[str, object]]:
    (proto,) = [p for p in protos(app._tree) if getattr(p, "component_name", "") == "tilewright_lanes"]
    lanes: list[dict[str, object]] = json.loads(proto.json)["lanes"]
    return lanes


def read(home: Path) -> Database:
    db = open_database(index_file(home))
    Ingest(db, home / "runs").catch_up()
    return db


def test_a_run_says_who_waited_for_what_on_its_page_and_in_its_report(home: Path, open_page: Open) -> None:
    examples.open_examples([EXAMPLE])
    app = open_page("run", run=EXAMPLE)
    assert wording.plain(SAID) in words(app)
    assert [lane["name"] for lane in lanes_of(app)] == ["Model", "Compiler", "Evaluator", "Device"]
    with read(home) as db:
        text = report_run.run_report(db, EXAMPLE)
    assert SAID in text
    assert "What the calls came to" in text


def test_the_span_that_a_share_is_of_is_named_once() -> None:
    bars = tuple(Bar("r1", lane, "", 0, 10, 1, "check", None, "") for lane in (Lane.DEVICE, Lane.MODEL))
    strip = waiting_strip.Strip(0, 100, bars)
    said = "Device worked 10 % of these 3 hours; models were writing 10 %."
    assert waiting_strip.sentence_of_devices(strip, "these 3 hours") == said


def test_a_suite_of_many_devices_tells_times_and_no_shares_of_a_span_in_which_most_were_elsewhere(
    home: Path, open_page: Open
) -> None:
    def bar(lane: Lane, began: float, ended: float, device: str = "") -> Bar:
        return Bar("r1", lane, device, began, ended, 1, "check", None, "")

    on_devices = [bar(Lane.DEVICE, 100.0 * k, 100.0 * k + 10 + k, f"GPU-{k}") for k in range(4)]
    strip = waiting_strip.Strip(0, 3600, (
        *on_devices, bar(Lane.MODEL, 5, 20), bar(Lane.PERSON, 400, 3000), bar(Lane.LEASE, 300, 330),
    ))  # fmt: skip
    assert waiting_strip.sentence_of_suite(strip) == (
        "From the first run's start to the last one's end 1 h 00 min passed. For 1 min 13 s of it some run was at "
        "work. 4 devices worked 46 s together, the busiest of them 13 s; models were writing for 15 s; a run waited "
        "for a device for 30 s."
    )
    paper = tomllib.loads((examples.SHIPPED / "table2_h200.toml").read_text())
    examples.open_examples(paper["arms"]["h200"])
    said = words(open_page("benchmark", suite="table2_h200", show_suite="timeline")).replace("\\", "")
    assert "some run was at work. 9 devices worked 20 min 37 s together, the busiest of them 7 min 48 s;" in said
    assert "worked less than 1 %" not in said


def test_a_device_is_idle_where_nobody_holds_it_and_an_engine_is_at_work() -> None:
    def bar(lane: Lane, began: float, ended: float) -> Bar:
        return Bar("r1", lane, "", began, ended, 1, "check", None, "")

    bars = bar(Lane.DEVICE, 10, 20), bar(Lane.LEASE, 30, 40), bar(Lane.DEVICE, 40, 45)
    strip = waiting_strip.Strip(0, 100, bars, ((60, 80),))
    assert strip.idle("") == [(0, 10), (20, 30), (45, 60), (80, 100)]
    assert strip.share(Lane.DEVICE) == 15 / 80


def test_an_example_whose_replies_were_handed_in_waits_for_replies_not_for_a_person(
    home: Path, open_page: Open
) -> None:
    name = "square_matmul-20261124-193759-65ec"
    examples.open_examples([name])
    app = open_page("run", run=name)
    assert not app.exception
    names = [lane["name"] for lane in lanes_of(app)]
    assert waiting_strip.HANDED_IN_NAME in names
    assert "Person" not in names
    said = words(app)
    assert "the run waited for the model's replies" in said
    assert "waited for a person" not in said
    assert "by someone" not in everything(app)


def test_calls_beside_each_other_are_counted_as_one_time() -> None:
    bars = tuple(Bar("r1", Lane.MODEL, "", began, began + 20, 1, "draw", None, "") for began in (0, 10, 60))
    assert waiting_strip.Strip(0, 100, bars).share(Lane.MODEL) == 0.5


def test_a_run_that_told_no_device_time_says_so_and_shades_nothing(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=4)
    app = open_page("run", run="r1")
    assert "how long the device worked was not noted; " in words(app).replace("\\", "")
    assert "Device" not in [lane["name"] for lane in lanes_of(app)]


@pytest.mark.parametrize("ending", samples.ENDINGS)
def test_every_state_of_a_run_has_its_page(home: Path, open_page: Open, ending: str) -> None:
    samples.write_run(home / "runs", "r1", depths=3, ending=ending)
    assert not open_page("run", run="r1").exception


def test_what_goes_on_in_a_run_lasts_until_now_and_in_one_whose_engine_died_until_its_last_event(home: Path) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=3, ending="running", created_at=time.time() - 5000)
    with read(home) as db:
        last = queries.run(db, "r1")
        assert last
        assert last.last_event_at
        lost = waiting_strip.of_runs(db, ["r1"], time.time())
        liveness.hold(folder)
        alive = waiting_strip.of_runs(db, ["r1"], time.time())
    assert lost
    assert alive
    assert lost.ended <= last.last_event_at
    assert alive.ended > last.last_event_at + 1000


def test_the_system_page_has_a_lane_for_each_device_of_the_last_hours_and_leaves_examples_out(
    home: Path, open_page: Open
) -> None:
    examples.open_examples([EXAMPLE])
    assert "Who waited for what" not in words(open_page("system"))
    write_as_new(home, "mine", time.time() - 600)
    app = open_page("system")
    assert "GPU-10a0f599 worked " in words(app).replace("\\", "")
    assert [lane["name"] for lane in lanes_of(app)][-1] == "GPU-10a0f599"


def write_as_new(home: Path, run_id: str, began: float) -> None:
    """The example as if it had been made here."""
    example, folder = run_at(EXAMPLE), RunFolder(home / "runs" / run_id)
    folder.write_settings(replace(example.read_settings(), run_id=run_id, is_example=False))
    lines = [json.loads(line) for line in example.journal_file.read_text().splitlines()]
    moved = [line | {"time": line["time"] - lines[0]["time"] + began} for line in lines]
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in moved))


@pytest.fixture
def writing(home: Path) -> RunFolder:
    """A run on a GPU whose model has been writing for five minutes."""
    at = iter([time.time() - 301, time.time() - 300, time.time() - 300])
    folder = RunFolder(home / "runs" / "r1")
    folder.write_settings(samples.sample_settings("r1", 0))
    book = Journal(folder.journal_file, clock=lambda: next(at))
    for event in (ev.RunStarted("r1", "swish"), ev.EngineStarted(1, False),
                  ev.StepStarted(1, StepKind.SYNTHESISE, 0, None)):  # fmt: skip
        book.append(event)
    liveness.hold(folder)
    return folder


def found(open_page: Callable[..., AppTest]) -> list[str]:
    open_page("nowhere")  # an index over what is there
    return [alert.text for alert in alerts.of_runs({"r1": RunState.RUNNING})["r1"]]


def test_a_gpu_that_is_idle_because_the_model_writes_is_an_alert(writing: RunFolder, open_page: Open) -> None:
    (text,) = found(open_page)
    assert text.startswith("The device has been idle since ")
    assert text.endswith(": the model is writing.")


def test_a_device_that_another_run_uses_is_not_idle(writing: RunFolder, open_page: Open) -> None:
    with device_use.claimed("time", "other", 1, "GPU 0") as claim:
        claim.holds()
        assert found(open_page) == []
    assert found(open_page) == []


def test_the_processor_is_not_paid_for_by_the_hour(writing: RunFolder, open_page: Open) -> None:
    settings = replace(writing.read_settings(), toolchain="cpu")
    writing.settings_file.unlink()
    writing.write_settings(settings)
    assert found(open_page) == []


def test_calls_by_what_they_came_to_are_told_to_machines(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=6)
    app = open_page("run", run="r1")
    bars = [p for p in protos(app._tree) if getattr(p, "component_name", "") == "tilewright_bars"]
    shown = next(data for p in bars if (data := json.loads(p.json))["title"] == "What the calls came to")
    with read(home) as db:
        row = queries.run(db, "r1")
    assert row
    told = api_answers.whole(row)["calls"]
    assert sum(outcome["calls"] for outcome in told) == row.model_calls
    assert sum(int(bar["text"].split(" · ")[-1].removesuffix(" %")) for bar in shown["bars"]) == 100
    assert [bar["label"].split(",")[0].lower() for bar in shown["bars"]] == [
        outcome["outcome"].split(",")[0] for outcome in told
    ]
