"""Steering in a real browser: every control writes its command, and the page shows what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from storage import events as ev
from storage.records import Command, CommandKind, RunState
from tests.browser.conftest import Server
from tests.browser.play import PretendEngine, finished_depth, model_step

pytestmark = pytest.mark.browser


def begin(page: Page, server: Server, run_id: str, depths: int = 3) -> PretendEngine:
    engine = PretendEngine(server.runs, run_id, depths=6)
    engine.play_until(finished_depth, times=depths)
    engine.play_until(model_step)
    page.goto(f"{server.url}/run?run={run_id}")
    expect(page.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    return engine


def steering_rows(page: Page) -> Locator:
    return page.get_by_role("table", name="Steering commands, newest first").get_by_role("row")


def follow(page: Page, engine: PretendEngine, kind: CommandKind, argument: str = "") -> Command:
    """The command arrives as asked, and the page shows each of its moments."""
    newest = steering_rows(page).nth(1)
    expect(newest).to_contain_text("asked")
    (command,) = engine.asked()
    assert (command.kind, command.argument) == (kind, argument)
    engine.emit(ev.CommandAcknowledged(command, 30))
    expect(newest).to_contain_text("acknowledged")
    engine.emit(ev.CommandEffective(command.command_id, 30, "at step 30"))
    expect(newest).to_contain_text("in effect")
    return command


def test_pause_and_resume(page: Page, server: Server) -> None:
    engine = begin(page, server, "pauses")
    page.get_by_role("button", name="Pause").click()
    follow(page, engine, CommandKind.PAUSE)
    engine.emit(ev.StateChanged(RunState.PAUSED, "paused by a person"))
    page.get_by_role("button", name="Resume", exact=True).click()
    follow(page, engine, CommandKind.RESUME)


def test_stop_asks_once_more(page: Page, server: Server) -> None:
    engine = begin(page, server, "stops")
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Keep running").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert engine.asked() == []
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the run").click()
    follow(page, engine, CommandKind.STOP)
    engine.emit(ev.RunEnded(RunState.STOPPED, "stopped by a person", None))
    expect(page.get_by_text("No engine works on this run")).to_be_visible()


@pytest.mark.parametrize(
    ("label", "kind", "value"),
    [("Collect profiles", CommandKind.COLLECT, "on"), ("Show them to the model", CommandKind.EXPOSE, "off")],
)
def test_profiling_switches(page: Page, server: Server, label: str, kind: CommandKind, value: str) -> None:
    engine = begin(page, server, f"switches-{kind}")
    group = page.get_by_role("radiogroup", name=label).or_(page.get_by_role("group", name=label))
    group.get_by_text(value, exact=True).click()
    follow(page, engine, kind, value)


def test_a_hint_reaches_the_engine_and_clears_the_box(page: Page, server: Server) -> None:
    engine = begin(page, server, "hints")
    box = page.get_by_label("Hint for the next prompt")
    box.fill("keep B in registers & use <cute/tensor.hpp>")
    page.get_by_role("button", name="Send hint").click()
    follow(page, engine, CommandKind.HINT, "keep B in registers & use <cute/tensor.hpp>")
    expect(box).to_have_value("")


def test_roll_back_shows_the_diff_before_it_is_asked_for(page: Page, server: Server) -> None:
    engine = begin(page, server, "rolls", depths=4)
    page.get_by_role("button", name="Roll back", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").click()
    page.get_by_role("option").last.click()
    expect(dialog.locator("table.diff td.del").first).to_be_visible()
    dialog.get_by_role("button", name="Roll back to kernel 1").click()
    follow(page, engine, CommandKind.ROLL_BACK, "c001")


def test_a_refused_command_says_why(page: Page, server: Server) -> None:
    engine = begin(page, server, "refuses")
    page.get_by_role("button", name="Pause").click()
    expect(steering_rows(page).nth(1)).to_contain_text("asked")
    (command,) = engine.asked()
    engine.emit(ev.CommandAcknowledged(command, 30))
    engine.emit(ev.CommandRefused(command.command_id, 30, "the run ends with this step"))
    expect(steering_rows(page).nth(1)).to_contain_text("refused")
    expect(steering_rows(page).nth(1)).to_contain_text("the run ends with this step")


def test_a_typed_hint_survives_new_data(page: Page, server: Server) -> None:
    engine = begin(page, server, "types", depths=2)
    box = page.get_by_label("Hint for the next prompt")
    box.fill("half a thou")
    engine.play_until(finished_depth)
    expect(page.get_by_text("Depth 2 ends with").first).to_be_visible()
    expect(box).to_have_value("half a thou")


def test_a_waiting_run_says_what_it_waits_for(page: Page, server: Server) -> None:
    engine = begin(page, server, "waits")
    engine.emit(ev.StateChanged(RunState.WAITING, "the model endpoint failed: connection refused"))
    expect(page.get_by_text("Waiting for you")).to_be_visible()
    expect(page.get_by_text("connection refused").first).to_be_visible()
    expect(page.get_by_role("button", name="Resume", exact=True)).to_be_visible()


def test_a_read_only_server_has_no_controls(own_server: Callable[..., Server], page: Page) -> None:
    server = own_server(TILEWRIGHT_READ_ONLY="1")
    engine = PretendEngine(server.runs, "watched", depths=4)
    engine.play_until(finished_depth, times=2)
    page.goto(f"{server.url}/run?run=watched")
    expect(page.get_by_text("This server is read-only")).to_be_visible()
    for name in ("Pause", "Stop", "Roll back", "Send hint"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    assert not engine.folder.commands_file.exists()
