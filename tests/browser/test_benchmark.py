"""The way through a suite: from the list to its figures, to one cell, to its run; and news while it is open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from engine.suites import starting
from storage.run.folder import RunFolder
from storage.suites import files
from storage.suites.files import append
from storage.suites.records import Cell, CellLeft, CellState
from tests import samples
from tests.browser.conftest import Server, drawn, new_home
from tests.browser.test_real_engine import SLOW_MS
from tests.sample_suites import NAME, write_suite

pytestmark = pytest.mark.browser


@pytest.fixture
def suite_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Iterator[Path]:
    """A home whose runners and engines end with the test."""
    home = new_home(tmp_path / "home", shared_cache)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(home))
    yield home
    for folder in files.all_suites():
        starting.stop(folder.name)
    for path in (home / "runs").iterdir():
        supervisor.stop(RunFolder(path))


def test_a_suite_is_read_from_the_list_to_one_run_and_follows_its_runner(
    own_server: Callable[..., Server], page: Page, tmp_path: Path
) -> None:
    folder = write_suite(new_home(tmp_path / "home"), 2, 2, 1, 20)
    server = own_server()
    page.goto(f"{server.url}/benchmark")
    drawn(page).get_by_role("link", name=NAME).click()
    expect(page.get_by_text("arm_b against arm_a")).to_be_visible()
    expect(page.get_by_role("heading", name="Shipped suites")).to_have_count(0)
    expect(page.get_by_text(re.compile("· 3 of 4 runs finished, 1 stopped"))).to_be_visible()
    last = Cell("standard_matmul", "arm_b", 1)
    append(folder, CellLeft(last, "run-0003", CellState.FINISHED))
    expect(page.get_by_text(re.compile("· all 4 runs finished"))).to_be_visible()
    drawn(page).get_by_role("radio", name="runs").click()
    drawn(page).locator('tr[data-id="standard_matmul"] a.pill').last.click()
    expect(page).to_have_url(re.compile(r"run\?run=run-0003"))
    drawn(page).go_back()
    expect(page).to_have_url(re.compile("show_suite=runs"))
    expect(drawn(page).get_by_role("radio", name="runs")).to_be_checked()
    page.go_back()  # the view that a person left by choosing another
    expect(drawn(page).get_by_role("radio", name="summary")).to_be_checked()
    page.go_forward()
    expect(drawn(page).get_by_role("radio", name="runs")).to_be_checked()
    samples.write_run(server.runs, "alone", depths=1)
    page.goto(f"{server.url}/?sort=by+name")
    expect(page.locator('tr[data-id="run-0003"]')).to_contain_text(f"suite {NAME}")
    expect(page.locator('tr[data-id="alone"]')).not_to_contain_text("suite")


def test_a_suite_is_made_in_the_form_started_stopped_and_continued(
    own_server: Callable[..., Server], page: Page, suite_home: Path
) -> None:
    page.goto(f"{own_server().url}/benchmark")
    drawn(page).get_by_role("link", name="New suite").click()
    drawn(page).get_by_label("Name", exact=True).fill("tiny")
    drawn(page).get_by_label("Depths", exact=True).fill("0")
    expect(page.get_by_text('cutegen = "--strategy cutegen --depths 0"')).to_be_visible()
    drawn(page).get_by_role("button", name="Start suite").click()
    expect(page).to_have_url(re.compile("suite=tiny"), timeout=SLOW_MS)
    drawn(page).get_by_role("button", name="Stop", exact=True).click(timeout=SLOW_MS)
    page.get_by_role("dialog").get_by_role("button", name="Stop the suite").click()
    expect(page.get_by_text(re.compile("· 0 of 1 run finished, 1 stopped"))).to_be_visible(timeout=SLOW_MS)
    drawn(page).get_by_role("button", name="Continue").click()
    expect(page.get_by_text(re.compile("· 1 run finished "))).to_be_visible(timeout=2 * SLOW_MS)
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)
    assert files.find("tiny").definition_file.exists()


def test_a_shipped_suite_is_started_from_the_list_after_a_look_at_what_it_takes(
    own_server: Callable[..., Server], page: Page, suite_home: Path
) -> None:
    page.goto(f"{own_server().url}/benchmark")
    drawn(page).get_by_role("button", name="Start quick").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("python -m engine suite run quick")).to_be_visible()
    dialog.get_by_label("Further settings", exact=True).fill("--nonsense")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(dialog.get_by_text(re.compile("The suite did not start: .*--nonsense"))).to_be_visible(timeout=SLOW_MS)
    dialog.get_by_label("Further settings", exact=True).fill("--model manual")
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(page).to_have_url(re.compile("suite=quick"), timeout=SLOW_MS)
    expect(page.get_by_text(re.compile("· 0 of 4 runs finished, 4 waiting"))).to_be_visible(timeout=2 * SLOW_MS)
    expect(page.get_by_text("0 of 4 runs have a correct, timed kernel.")).to_be_visible()
