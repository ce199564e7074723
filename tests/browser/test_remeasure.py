"""Two real kernels, built and timed again on this machine from the compare page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from storage.run import remeasurements
from storage.run.remeasurements import RemeasureState
from tests.browser.conftest import Server
from tests.real_pair import real_pair

pytestmark = pytest.mark.browser
SLOW_MS = 90_000


def test_a_real_pair_is_measured_again_and_the_page_follows_it_to_its_verdict(
    server: Server, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(server.home))
    run = real_pair(server.home)
    name = supervisor.remeasure((run.run_id, "2"), (run.run_id, "1"), rounds=1)
    page.goto(f"{server.url}/compare?runs={run.run_id}")
    card = page.locator(f".st-key-remeasured-{name}")
    expect(card).to_contain_text(re.compile("starting|building and checking|waiting for the machine|measuring"))
    verdict = r"kernel 2 is [\d.]+× as fast as kernel 1 in 1 round, .*; in their runs it was 1\.20×"
    expect(card).to_contain_text(re.compile(verdict, re.I), timeout=SLOW_MS)
    assert remeasurements.read(name).progress.state is RemeasureState.DONE
    card.get_by_text("Every round").click()
    expect(card.get_by_role("table", name="Rounds of this re-measurement").locator("tbody tr")).to_have_count(1)

    page.get_by_role("button", name="Time both again on this machine").click()
    page.get_by_role("button", name="Stop measuring").click(timeout=SLOW_MS)
    newest = next(found for found in remeasurements.newest() if found.request.remeasure_id != name)
    lost = page.locator(f".st-key-remeasured-{newest.request.remeasure_id}")
    expect(lost).to_contain_text("The measurement was interrupted", timeout=SLOW_MS)
