"""A person as the model: a whole run started and answered in the browser, with a real engine and the real compiler.

Most of its time is compiling and timing two kernels. A killed engine is resumed in tests/engine/test_supervisor.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from engine import supervisor
from engine.cli import report
from storage.run import events as ev
from storage.run.folder import RunFolder, find_run
from storage.run.settings import RunState
from tests.browser.conftest import SIZE, Server, drawn, look_seldom
from tests.browser.test_real_engine import SLOW_MS, told
from tests.engine.swish_story import FIRST, SECOND
from tests.engine.test_loop import SIZES

pytestmark = pytest.mark.browser


def expect_question(page: Page, title: str, depth: int) -> None:
    heading = page.get_by_role("heading", name=re.compile(f"{title}.*depth {depth}", re.IGNORECASE))
    expect(heading).to_be_visible(timeout=SLOW_MS)


def top(place: Locator) -> float:
    box = place.bounding_box()
    assert box is not None
    return box["y"]


def send(page: Page) -> None:
    button = drawn(page).get_by_role("button", name="Send reply")
    expect(button).to_have_count(1)  # while the page is drawn again, that of the page before may still stand
    button.click()


def choose_in_box(page: Page, label: str, value: str) -> None:
    box = drawn(page).get_by_role("combobox", name=label)
    box.click()
    box.press_sequentially(value)  # a long list shows but a part of it
    page.get_by_role("option", name=re.compile(rf"^{value}\b", re.I)).first.click()


def fill_in(page: Page, label: str, value: str) -> None:
    box = drawn(page).get_by_label(label, exact=True)
    box.fill(value)
    box.press("Enter")


@pytest.fixture
def runs_end(home: Path) -> Iterator[None]:
    """Whatever becomes of the test, no engine waits for a reply for ever."""
    (home / "runs").mkdir()
    yield
    for path in (home / "runs").iterdir():
        supervisor.stop(RunFolder(path))


def start_from_the_form(page: Page, server: Server) -> RunFolder:
    page.goto(f"{server.url}/new_run")
    look_seldom(page)
    choose_in_box(page, "Model", "manual")
    choose_in_box(page, "What to optimise", "swish")
    drawn(page).get_by_text("Options of the strategy").click()
    for label, value in (*SIZES.items(), ("Depths", 1), ("Maximum repairs per kernel", 4)):
        fill_in(page, label, str(value))
    drawn(page).get_by_role("button", name="Start run").click()
    expect(page).to_have_url(re.compile(r"/run\?run=swish-"), timeout=SLOW_MS)
    return find_run(page.url.partition("run=")[2])


@pytest.mark.usefixtures("runs_end")
def test_a_manual_run_started_from_the_form_outlives_its_server_and_is_answered_to_its_end_from_the_next_one(
    own_server: Callable[..., Server], page: Page
) -> None:
    first = own_server()
    run = start_from_the_form(page, first)
    settings = run.read_settings()
    assert (settings.model, dict(settings.sizes), settings.budget.depths) == ("manual", SIZES, 1)
    assert settings.strategy_options["max_repairs"] == 4
    expect(page.get_by_text("Your reply is needed").first).to_be_visible(timeout=SLOW_MS)
    assert [e.kind for e in told(run, ev.StepStarted) if isinstance(e, ev.StepStarted)] == ["synthesise"]
    drawn(page).get_by_text("Settings", exact=True).click()
    expect(page.get_by_text("Maximum repairs per kernel")).to_be_visible()
    page.goto("about:blank")
    first.process.kill()
    first.process.wait()
    assert supervisor.is_alive(run)

    page.goto(f"{own_server().url}/run?run={run.run_id}")
    look_seldom(page)
    expect_question(page, "Write the first kernel", 0)
    expect(page.get_by_text("def get_inputs").first).to_be_visible()
    page.get_by_label("Reply", exact=True).fill("I cannot do that.")
    send(page)
    expect(page.get_by_text("Reply rejected.")).to_be_visible(timeout=SLOW_MS)
    button, why = drawn(page).get_by_role("button", name="Send reply"), page.get_by_text("Reply rejected.")
    assert 0 < top(why) - top(button) < 100, "the reason stands under the button that was pressed"
    expect(drawn(page).get_by_label("Reply", exact=True)).to_have_value("I cannot do that.")
    page.get_by_label("Reply", exact=True).fill(FIRST)
    send(page)

    expect_question(page, "Make one optimisation", 1)
    expect(page.get_by_text("What is new in the prompt:")).to_be_visible()
    # Once all is drawn: till then the browser keeps the field of the question before, hidden, and finds two.
    expect(drawn(page).get_by_label("Reply", exact=True)).to_have_value("")
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    assert top(drawn(page).get_by_label("Reply", exact=True)) < SIZE["height"], "reached without scrolling"
    page.get_by_text("Edit the kernel", exact=True).click()
    kernel = page.get_by_label("Kernel source", exact=True)
    expect(kernel).to_have_value(FIRST)
    kernel.fill(SECOND)
    send(page)
    expect(page.get_by_text(re.compile("depths? (are|is) done")).first).to_be_visible(timeout=SLOW_MS)

    history = report.load(run)
    assert history.state is RunState.FINISHED
    assert [len(history.candidates), len(history.concluded), len(history.calls)] == [2, 2, 2]
    assert all(attempt.timed for attempt in history.candidates.values())
    assert len(told(run, ev.CommandRefused)) == 1
