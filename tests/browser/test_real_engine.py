"""A whole steered run: a real engine with the real compiler, every control thrown in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from storage.run import events as ev
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.settings import Budget, Origin, RunState
from storage.run.steering.verbs import CommandKind
from tests.browser import curve
from tests.browser.conftest import Server, at_rest, becomes, drawn, look_seldom
from tests.browser.test_steering import RESUME, steering_rows
from tests.engine.contexts import write_recording
from tests.engine.swish_story import FIRST, SECOND, THIRD, edits
from tests.engine.test_loop import SIZES

pytestmark = pytest.mark.browser
SLOW_MS = 60_000
# How far below the pause button the others stand, in every frame that is drawn.
PLACES = """() => {
    window.places = new Set()
    const top = key => document.querySelector(`[class*="st-key-${key}"]`)?.getBoundingClientRect().top
    const look = () => {
        window.places.add(Math.round(top("edit_by_hand") - top("pause_or_resume")))
        if (!window.hasLooked) requestAnimationFrame(look)
    }
    look()
}"""
# Mishaps and their repairs are tests/engine/test_loop.py's; here a kernel costs seconds and shows a control at work.
STORY = (
    ("synthesise", None, f"Kernel class: activation\nApproach: one pass\n```python\n{FIRST}```\n"),
    ("optimise", FIRST, "Optimisation: inline\n" + edits(FIRST, SECOND)),
    ("optimise", FIRST, "Optimisation: another way from the first kernel\n" + edits(FIRST, THIRD)),
)


@pytest.fixture
def run(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunFolder]:
    """A run of recorded replies in the home of the server that all tests share."""
    monkeypatch.setenv("TILEWRIGHT_HOME", str(server.home))
    recording = write_recording(tmp_path / "replies.jsonl", STORY)
    settings = supervisor.new_settings(
        "swish",
        model="recorded",
        recording=str(recording),
        overrides=SIZES,
        reply_seconds=1.5,
        budget=Budget(depths=8),
    )
    folder = supervisor.start(settings)
    yield folder
    supervisor.stop(folder)


def told(folder: RunFolder, kind: type) -> list[ev.Event]:
    return [entry.event for entry in journal.read(folder.journal_file) if isinstance(entry.event, kind)]


def asked(folder: RunFolder) -> list[ev.ModelCalled]:
    return [call for call in told(folder, ev.ModelCalled) if isinstance(call, ev.ModelCalled)]


def is_in_effect(folder: RunFolder, kind: CommandKind, argument: str) -> bool:
    acknowledged = [a.command for a in told(folder, ev.CommandAcknowledged) if isinstance(a, ev.CommandAcknowledged)]
    effective = {e.command_id for e in told(folder, ev.CommandEffective) if isinstance(e, ev.CommandEffective)}
    return any(c.kind is kind and c.argument == argument and c.command_id in effective for c in acknowledged)


def choose(page: Page, label: str, value: str) -> None:
    drawn(page).get_by_role("group", name=label).get_by_role("button", name=value, exact=True).click()


def expect_newest(page: Page, verb: str, state: str = "in effect") -> None:
    newest = steering_rows(page).nth(1)
    expect(newest).to_contain_text(verb, ignore_case=True, timeout=SLOW_MS)
    expect(newest).to_contain_text(state, timeout=SLOW_MS)


def test_every_control_takes_effect_on_a_real_engine(server: Server, run: RunFolder, page: Page) -> None:
    page.goto(f"{server.url}/run?run={run.run_id}")
    look_seldom(page)
    expect(page.get_by_role("button", name="Pause")).to_be_visible(timeout=SLOW_MS)
    at_rest(drawn(page).locator('[class*="st-key-edit_by_hand"]'))
    page.evaluate(PLACES)
    page.get_by_role("button", name="Pause").click()
    expect_newest(page, "pause")
    expect(page.get_by_role("button", name=RESUME)).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_role("button", name="Pause")).not_to_be_visible()
    places = page.evaluate("(window.hasLooked = true, [...window.places])")
    assert len(places) == 1, places  # more than one: the rest has moved
    assert places[0] > 0
    steps_before = len(told(run, ev.StepStarted))
    asked_before = len(asked(run))  # on a busy machine the first change may be under way when the pause comes

    page.locator("summary").filter(has_text="More").click()
    choose(page, "Collect profiles", "on")
    expect_newest(page, "collect")
    choose(page, "Show profiles to the model", "on")
    expect_newest(page, "show")
    page.get_by_role("button", name=re.compile(r"^Hint\b")).click()  # its key stands beside the word
    page.get_by_role("dialog").get_by_label("Hint", exact=True).fill("mind <cute/tensor.hpp> & the tail")
    page.get_by_role("button", name="Send the hint").click()
    expect_newest(page, "hint", "received")
    assert len(told(run, ev.StepStarted)) == steps_before, "a paused engine began a step"

    stop(page, run)
    page.get_by_role("button", name="Resume run").click()  # no more paused than stopped
    has_come_to_rest(page, run, times=1)
    page.locator("summary").filter(has_text="More").click()

    roll_back(page, "kernel 1")
    expect_newest(page, "roll back")
    expect(page.locator('tr[data-id="c003"]')).to_contain_text("another way", timeout=SLOW_MS)
    branched = [c for c in told(run, ev.CandidateCreated) if isinstance(c, ev.CandidateCreated)][-1]
    assert (branched.base_id, branched.depth) == ("c001", 3)
    expect(page.locator('tr[data-id="c003"]')).to_contain_text("correct", timeout=SLOW_MS)
    becomes(lambda: "c003" in on_the_curve(page), True)
    has_come_to_rest(page, run, times=2)
    assert is_in_effect(run, CommandKind.HINT, "mind <cute/tensor.hpp> & the tail")
    with_profiles = [call.is_profile_exposed for call in asked(run)[asked_before:] if call.role == "optimise"]
    assert with_profiles
    assert all(with_profiles)
    assert len(told(run, ev.Profiled)) >= len(with_profiles)

    page.get_by_text("Rules for the model").click()
    at_rest(page.get_by_label("What", exact=True)).fill("atomics")
    at_rest(drawn(page).get_by_role("button", name="Add rule")).click()
    expect_newest(page, "must not use atomics")
    at_rest(page.get_by_role("button", name="Base kernel", exact=True)).click()
    page.get_by_role("dialog").get_by_role("button", name="Start next from kernel").click()
    expect_newest(page, "set base kernel")
    edit_by_hand(page)
    expect_newest(page, "kernel by hand")
    expect(page.locator('tr[data-id="c004"]')).to_contain_text("correct", timeout=SLOW_MS)
    made = [c for c in told(run, ev.CandidateCreated) if isinstance(c, ev.CandidateCreated)][-1]
    assert (made.origin, made.summary) == (Origin.MANUAL, "a comment of mine")

    stop(page, run)
    done = {
        "pause": "",
        "collect": "on",
        "expose": "on",
        "resume": "",
        "roll_back": "c001",
        "stop": "",
        "ban": "atomics",
    }
    for kind, argument in done.items():
        assert is_in_effect(run, CommandKind(kind), argument), kind


def stop(page: Page, run: RunFolder) -> None:
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the run").click()
    expect(page.get_by_text("No engine is running")).to_be_visible(timeout=SLOW_MS)
    becomes(lambda: supervisor.is_alive(run), False)


def has_come_to_rest(page: Page, run: RunFolder, times: int) -> None:
    """The engine has begun to wait for a person that many times, and the page says so: nothing is drawn any more."""

    def waits() -> list[ev.Event]:
        changes = told(run, ev.StateChanged)
        return [e for e in changes if isinstance(e, ev.StateChanged) and e.state is RunState.WAITING]

    becomes(lambda: len(waits()) >= times, True, SLOW_MS)
    expect(page.get_by_text(re.compile("Waiting for you|Your reply is needed")).first).to_be_visible(timeout=SLOW_MS)
    drawn(page)


def on_the_curve(page: Page) -> list[str]:
    return [str(point["id"]) for name in ("accepted", "best") for point in curve.points(page, name)]


def edit_by_hand(page: Page) -> None:
    page.get_by_role("button", name="Edit a kernel by hand").click()
    box = page.get_by_role("textbox", name="Kernel source")
    expect(box).to_have_value(re.compile("class ModelNew"))
    box.fill(box.input_value() + "# by hand\n")
    box.press("Control+Enter")
    page.get_by_label("Describe the change").first.fill("a comment of mine")
    page.get_by_label("Describe the change").first.press("Enter")
    page.get_by_role("button", name="Submit").click()


def roll_back(page: Page, kernel: str) -> None:
    page.get_by_role("button", name="Go back or fork", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").click()
    page.get_by_role("option").filter(has_text=f"{kernel} ·").first.click()
    expect(dialog.locator("table.diff td.del").first).to_be_visible()
    dialog.get_by_role("button", name=f"Go back to {kernel}").click()
