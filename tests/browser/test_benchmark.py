"""The way through a suite: from the list to its figures, to one cell, to its run; and news while it is open."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage.suites.files import append
from storage.suites.records import Cell, CellLeft, CellState
from tests.browser.conftest import Server, drawn, new_home
from tests.sample_suites import NAME, write_suite

pytestmark = pytest.mark.browser


def test_a_suite_is_read_from_the_list_to_one_run_and_follows_its_runner(
    own_server: Callable[..., Server], page: Page, tmp_path: Path
) -> None:
    folder = write_suite(new_home(tmp_path / "home"), 2, 2, 1, 20)
    server = own_server()
    page.goto(f"{server.url}/benchmark")
    drawn(page).get_by_role("link", name=NAME).click()
    expect(page.get_by_text("arm_b against arm_a")).to_be_visible()
    expect(page.get_by_role("heading", name="Shipped suites")).to_have_count(0)
    expect(page.get_by_text(re.compile("· 3 of 4 cells finished, 1 stopped"))).to_be_visible()
    last = Cell("standard_matmul", "arm_b", 1)
    append(folder, CellLeft(last, "run-0003", CellState.FINISHED))
    expect(page.get_by_text(re.compile("· 4 of 4 cells finished"))).to_be_visible()
    drawn(page).get_by_role("radio", name="cells").click()
    drawn(page).locator('tr[data-id="standard_matmul"] a.pill').last.click()
    expect(page).to_have_url(re.compile(r"run\?run=run-0003"))
