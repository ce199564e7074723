"""A person as the model: a whole run answered in the browser, with a real engine and the real compiler behind it.

Most of its time is compiling and timing three kernels. A killed engine is resumed in tests/engine/test_supervisor.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from engine.cli import report
from storage import events as ev
from storage.folder import RunFolder
from storage.records import Budget, RunState, Switch
from tests.browser.conftest import Server, start_server, stop_server
from tests.browser.test_real_engine import SLOW_MS, told
from tests.engine.swish_story import FIRST, SECOND, THIRD, edits
from tests.engine.test_loop import SIZES

pytestmark = pytest.mark.browser


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    (home / "runs").mkdir()
    started = start_server(home)
    yield started
    stop_server(started)


@pytest.fixture
def run(home: Path, server: Server) -> Iterator[RunFolder]:
    settings = supervisor.new_settings(
        "swish", model="manual", overrides=SIZES, collect=Switch.OFF, budget=Budget(depths=2)
    )
    folder = supervisor.start(settings)
    yield folder
    supervisor.stop(folder)


def expect_question(page: Page, title: str, depth: int) -> None:
    heading = page.get_by_role("heading", name=re.compile(f"{title}.*depth {depth}"))
    expect(heading).to_be_visible(timeout=SLOW_MS)


def send(page: Page) -> None:
    page.get_by_role("button", name="Send reply").click()


def test_a_manual_run_goes_from_its_first_prompt_to_depth_two(server: Server, run: RunFolder, page: Page) -> None:
    page.goto(server.url)
    expect(page.get_by_text("1 waiting for you")).to_be_visible(timeout=SLOW_MS)
    page.goto(f"{server.url}/run?run={run.run_id}")
    expect_question(page, "Write the first kernel", 0)
    expect(page.get_by_text("def get_inputs").first).to_be_visible()
    page.get_by_label("Reply", exact=True).fill("I cannot do that.")
    send(page)
    expect(page.get_by_text("Reply rejected.")).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_label("Reply", exact=True)).to_have_value("I cannot do that.")
    page.get_by_label("Reply", exact=True).fill(FIRST)
    send(page)

    expect_question(page, "Make one optimisation", 1)
    expect(page.get_by_label("Reply", exact=True)).to_have_count(1)
    page.get_by_label("Reply", exact=True).fill("Optimisation: inline\n" + edits(FIRST, SECOND))
    send(page)

    expect_question(page, "Make one optimisation", 2)
    page.get_by_text("Edit the kernel", exact=True).click()
    kernel = page.get_by_label("Kernel source", exact=True)
    expect(kernel).to_have_value(SECOND)
    kernel.fill(THIRD)
    send(page)
    expect(page.get_by_text("all 2 depths are done").first).to_be_visible(timeout=SLOW_MS)

    history = report.load(run)
    assert history.state is RunState.FINISHED
    assert [len(history.candidates), len(history.concluded), len(history.calls)] == [3, 3, 3]
    assert all(attempt.timed for attempt in history.candidates.values())
    assert len(told(run, ev.CommandRefused)) == 1
