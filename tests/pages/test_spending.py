"""What the pages say about cost, tokens, limits and prompts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.evaluator import fitting
from engine.search.daily import Ledger, Spent, read_limits
from pages.parts import wording
from storage.run import events as ev
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import Budget
from storage.run.steering import commands
from storage.run.steering.verbs import CommandKind
from tests import samples
from tests.pages.conftest import Open, words


def change(folder: RunFolder, kind: str, **fields: object) -> None:
    """Set fields in every event of a kind."""
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == kind:
            line["event"].update(fields)
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_run_shows_what_it_has_spent_of_the_limits_in_force(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=4)
    app = open_page("run", run="r1")
    assert not app.exception
    said = [bar.proto.text for bar in app.get("progress")]
    assert any(text.startswith("Tokens: ") and text.endswith("of 4.00 M") for text in said)
    assert any(text.startswith("Cost: ") for text in said)
    app.toggle(key="spending_by_role").set_value(True)
    assert not app.run().exception
    assert "from cache" in words(app)


def test_four_fifths_of_a_limit_are_warned_about_on_the_page(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4)
    change(folder, "ModelCalled", input_tokens=2_000_000)
    said = [bar.proto.text for bar in open_page("run", run="r1").get("progress")]
    assert any(text.startswith("Tokens: ") and "limit reached" in text for text in said)


def test_an_unknown_cost_is_said_to_be_unknown(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=3)
    change(folder, "ModelCalled", cost_usd=None, input_tokens=None, output_tokens=None)
    said = words(open_page("run", run="r1"))
    assert "unknown: add the price to prices.toml" in said
    assert "was not told by what answered" in said


def test_limits_can_be_changed_while_an_engine_works(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    liveness.hold(folder)
    app = open_page("run", run="r1")
    app.button(key="limits:r1").click().run()
    assert app.button(key="limits_yes").disabled
    assert "Fill in a number to change a limit" in words(app)
    app.number_input(key="more_calls").set_value(80)
    app.run().button(key="limits_yes").click().run()
    assert not app.exception
    asked, _ = commands.read_from(folder.commands_file)
    assert (asked[-1].kind, asked[-1].argument) == (CommandKind.SET_BUDGET, "calls=80")


def test_going_on_with_a_run_that_has_ended_says_why_it_ended_and_fills_in_the_limit_that_is_used_up(
    home: Path, open_page: Open
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4)
    settings = replace(folder.read_settings(), recording="square_matmul.jsonl")
    folder.settings_file.unlink()
    folder.write_settings(settings)
    Journal(folder.journal_file).append(ev.BudgetChanged(Budget(depths=3)))  # as many as were done
    app = open_page("run", run="r1")
    app.button(key="continue:r1").click().run()
    said = words(app)
    assert "The run is finished" in said
    assert "The limit that is used up is raised below" in said
    assert "Where the recording ends, the run waits for a reply of yours" in said
    assert app.number_input(key="more_depths").value == 5
    assert not app.button(key="limits_yes").disabled


def test_a_failed_try_is_in_the_feed(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=3, ending="waiting")
    app = open_page("run", run="r1")
    app.session_state["older_events"] = True
    assert not app.run().exception


def test_a_new_run_with_a_live_model_takes_options_and_refuses_nonsense(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-key")
    app = open_page("new_run")
    assert not app.exception
    assert "its cost is unknown" in words(app).replace("\\", "")
    app.text_area(key="model_options").set_value("diagnoser.temperature=hot").run()
    assert "Temperature takes a number above 0" in words(app).replace("\\", "")
    assert "start" not in [button.key for button in app.button]


def test_a_count_that_nobody_made_is_unknown() -> None:
    assert (wording.tokens(None), wording.in_tokens(None)) == ("not told", "tokens not told")


def test_a_money_budget_for_a_model_without_a_price_is_refused_before_the_run_exists(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-key")
    app = open_page("new_run")
    app.text_input(key="max_cost").set_value("5")
    app.run().button(key="start").click().run()
    assert "a cost limit cannot be enforced" in words(app).replace("\\", "").split("Limits")[-1]
    assert list((home / "runs").iterdir()) == []


def test_a_task_without_recorded_replies_is_told_before_the_start(home: Path, open_page: Open) -> None:
    app = open_page("new_run")
    assert not app.button(key="start").disabled
    label = next(one for one in app.selectbox(key="task").options if "iagonal" in one)
    app.selectbox(key="task").set_value(label).run()
    assert app.button(key="start").disabled
    said = words(app).replace("\\", "")
    assert "No recorded replies for task diagonal_matmul on cpu." in said
    assert "or the model manual, to write the replies yourself" in said
    app.selectbox(key="model").set_value("manual").run()
    assert not app.button(key="start").disabled


def test_the_overview_says_what_all_runs_spent_of_the_limits_of_a_day(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=2)
    (home / "budget.toml").write_text("[day]\ncost = 20.0\n")
    Ledger(home).reserve(Spent(1, 900, 0.25))
    assert "Used today by all runs: 0.25 of 20 US dollars" in words(open_page())
    (home / "budget.toml").write_text("[day]\nhope = 1\n")
    assert not open_page().exception


def test_a_limit_says_what_is_used_and_what_it_would_be(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    liveness.hold(folder)
    app = open_page("run", run="r1")
    app.button(key="limits:r1").click().run()
    app.number_input(key="more_tokens").set_value(3_000_000)
    said = words(app.run()).replace("\\", "")
    assert "used of 2.00 M" in said
    assert "tokens 2.00 M → 3,000,000" in said


def test_the_limits_of_a_day_are_set_on_the_page(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=2)
    app = open_page("run", run="r1")
    app.session_state["daily_limits"] = True
    app.run().number_input(key="day_cost").set_value(7.5)
    next(b for b in app.button if b.label == "Save daily limits").click().run()
    assert not app.exception
    assert read_limits(home / "budget.toml") == {"cost": 7.5}
    assert "used today" in words(app.run())


@pytest.fixture
def estimates_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server keeps what it has estimated as long as it lives: the next test must not be told what is made up here."""
    for name in ("_estimates", "_not_followed", "_first_asked"):
        monkeypatch.setattr(fitting, name, {})
    monkeypatch.setattr(fitting, "_worker", workers := list[threading.Thread]())
    yield
    for worker in workers:
        worker.join()


@pytest.mark.usefixtures("estimates_of_its_own")
def test_sizes_that_do_not_fit_into_memory_start_no_run(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sizes of a module need is estimated for real in tests/engine/test_fitting.py."""
    monkeypatch.setattr(fitting.CostMeter, "cost", lambda meter, source, *, backward=False: fitting.Cost(1 << 40, 1))
    app = open_page("new_run")
    app.selectbox(key="model").set_value("manual").run()
    size = next(one for one in app.text_input if one.label == "N")
    size.set_value(f"{1 << 17}").run()
    app.button(key="start").click().run()
    assert not app.exception
    assert "GB free here may be used: use smaller sizes, for example" in words(app).replace("\\", "")
    app.run()
    assert app.button(key="start").disabled, "the estimate is known now"
    assert "GB free here may be used: use smaller sizes" in app.warning[0].value.replace("\\", "")
    monkeypatch.setattr(fitting, "why_unknown", lambda source, backward=False: f"{fitting.UNUSABLE}TypeError: slope")
    monkeypatch.setattr(fitting.CostMeter, "cost", lambda meter, source, *, backward=False: None)
    size.set_value(f"{1 << 16}").run()
    app.button(key="start").click().run()
    assert "ends in TypeError: slope: correct the constructor" in words(app).replace("\\", "")
    until = time.monotonic() + 30
    while not app.button(key="start").disabled and time.monotonic() < until:
        time.sleep(0.3)
        app.run()
    assert app.button(key="start").disabled
    assert not list((home / "runs").glob("*"))
