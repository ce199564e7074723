"""Starting a run from the page, with a real engine behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from storage.folder import find_run
from tests.browser.conftest import Server, start_server, stop_server
from tests.browser.test_real_engine import SLOW_MS

pytestmark = pytest.mark.browser


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    (home / "runs").mkdir()
    started = start_server(home)
    yield started
    stop_server(started)


def test_the_form_starts_an_engine_and_opens_its_run(server: Server, page: Page, home: Path) -> None:
    page.goto(f"{server.url}/new_run")
    page.get_by_label("N", exact=True).fill("64")
    page.get_by_label("Depths", exact=True).fill("1")
    page.get_by_label("Depths", exact=True).press("Enter")
    page.get_by_role("button", name="Start the run").click()
    expect(page).to_have_url(re.compile(r"/run\?run=square_matmul-"), timeout=SLOW_MS)
    expect(page.locator('tr[data-id="c001"]')).to_be_visible(timeout=SLOW_MS)
    folder = find_run(page.url.partition("run=")[2])
    settings = folder.read_settings()
    assert (dict(settings.sizes), settings.budget.depths, settings.base_policy) == ({"N": 64}, 1, "latest")
    page.goto("about:blank")
    assert supervisor.stop(folder) or not supervisor.is_alive(folder)
