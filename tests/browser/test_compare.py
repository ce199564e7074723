"""The compare page in a real browser: every axis, the choice in the address, two kernels, and the file to send on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import rules
from tests.browser.conftest import Server, drawn, wait_until_read
from tests.pages.test_compare import exposed_from
from tests.samples import write_run

pytestmark = pytest.mark.browser
BEST = "gd => gd.data.filter(t => t.line && t.line.shape === 'hv').map(t => [t.x.length, t.line.dash])"


def some_runs(server: Server, name: str) -> list[str]:
    """Two runs of one task, one of which showed profiles early and one late."""
    for part, depths, depth in (("early", 8, 1), ("late", 6, 5)):
        # Made elsewhere and moved in whole: the server reads a journal as soon as it is there.
        folder = write_run(server.home / "drafts", f"{name}-{part}", seed=0, depths=depths, created_at=1.75e9 + depths)
        exposed_from(folder, depth)
        folder.path.rename(server.runs / folder.run_id)
    return [f"{name}-early", f"{name}-late"]


def test_runs_are_compared_by_depth_calls_time_tokens_and_money(server: Server, page: Page) -> None:
    names = some_runs(server, "axes")
    page.goto(f"{server.url}/compare?runs={','.join(names)}")
    for axis, title in (
        ("step", "step of the search (as each"), ("calls", "model calls"), ("time", "engine time at work"),
        ("tokens", "tokens in and out"), ("money", "US dollars"),
    ):  # fmt: skip
        drawn(page).get_by_role("radiogroup", name="Speed-up by").get_by_role("radio", name=axis, exact=True).click()
        chart = page.get_by_role("figure", name=re.compile(f"^Best speed-up so far by .*{re.escape(title)}"))
        expect(chart.locator(".main-svg").first).to_be_visible()
        expect(chart.get_by_text(title).first).to_be_visible()
        lines = chart.evaluate(
            "gd => gd.data.filter(t => t.line && t.line.shape === 'hv').map(t => [t.x.length, t.line.dash])"
        )
        assert [count > 1 for count, _ in lines] == [True, True]
        assert len({dash for _, dash in lines}) == 2, "two runs differ by more than their colour"
    table = page.get_by_role("table", name="Compared runs")
    for told in ("from step 1", "from step 5", "sample device", "cuda"):
        expect(table).to_contain_text(told)
    expect(page.get_by_role("figure", name=re.compile("grouped by when profiles were shown"))).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 900})
    reach = table.evaluate("table => [table.scrollWidth, table.parentElement.clientWidth]")
    assert reach[0] <= reach[1], "its last column is cut"
    table.get_by_role("link", name="A · square matmul").click()
    expect(page).to_have_url(re.compile(f"/run.run={names[0]}"))


def test_a_choice_is_kept_in_the_address_sets_two_kernels_side_by_side_and_is_sent_as_one_file(
    server: Server, page: Page, tmp_path: Path
) -> None:
    names = some_runs(server, "choice")
    wait_until_read(f"{server.url}/compare?runs={names[1]}")  # what can be chosen is read with the page
    page.goto(f"{server.url}/compare?runs={names[0]}")
    expect(page.get_by_text("Choose another run")).to_be_visible()
    box = drawn(page).get_by_role("combobox", name=re.compile("Runs to compare"))
    box.fill(names[1][-16:])
    page.get_by_role("option", name=re.compile(names[1])).click()
    expect(page).to_have_url(re.compile(f"runs={names[0]}(,|%2C){names[1]}"))
    page.reload()
    expect(page.get_by_role("table", name="Compared runs").locator("tbody tr")).to_have_count(2)
    chart = page.get_by_role("figure", name=re.compile("grouped by when profiles were shown"))
    expect(chart.locator(".main-svg").first).to_be_visible()
    named = page.locator(".react-aria-ComboBox [data-tag]")
    expect(named).to_have_count(2)
    letters = "all => all.map(tag => getComputedStyle(tag.querySelector('span'), '::before').content)"
    assert all("counter(run, upper-latin)" in content for content in named.evaluate_all(letters))
    page.get_by_text("Source diff").click()
    expect(page.locator("table.diff").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download report").click()
    file = tmp_path / "comparison.html"
    download.value.save_as(file)
    page.goto("about:blank")
    page.context.set_offline(True)
    page.goto(file.as_uri())
    expect(page.get_by_role("heading", name="2 runs compared: square matmul")).to_be_visible()
    expect(page.get_by_role("figure", name=re.compile("Best speed-up so far by")).first).to_be_visible()
    expect(page.locator("circle title").first).to_have_text(re.compile(r"A, depth 0: best so far 0\.6"))
    assert rules.broken_in_both_themes(page) == []
