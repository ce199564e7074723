"""The runs from a GPU, opened in a home that has nothing: read, compared, forked, removed, without a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from engine.cli import report
from storage.run.folder import RunFolder
from tests import samples
from tests.browser.conftest import Server, drawn

pytestmark = pytest.mark.browser


def test_examples_are_opened_read_compared_forked_and_removed(own_server: Callable[..., Server], page: Page) -> None:
    server = own_server()
    name = next(one.run_id for one in supervisor.shipped_examples() if one.run_id.startswith("layer_norm-20261126"))
    page.goto(server.url)
    page.get_by_role("button", name="Open examples from an H200").click()
    row = page.locator(f'tr[data-id="{name}"]')
    expect(row).to_contain_text("example")
    expect(page.get_by_text(re.compile("^0 runs"))).to_be_visible()  # of one's own: examples stand beside them
    first = page.locator("tbody tr[data-id]").first
    expect(first).to_have_attribute("data-id", supervisor.SHOWN_FIRST[0])
    samples.write_run(server.runs, "of-ones-own", depths=1)
    expect(first).to_have_attribute("data-id", "of-ones-own")
    page.set_viewport_size({"width": 1280, "height": 800})
    for way in ("Watch a run in 40 seconds", "Begin a run of your own"):
        expect(drawn(page).get_by_role("link", name=way)).to_be_in_viewport()  # above fifty rows
    page.get_by_role("button", name="Show only examples").click()
    expect(first).to_have_attribute("data-id", supervisor.SHOWN_FIRST[0])
    page.get_by_role("button", name="Show all runs").click()
    expect(first).to_have_attribute("data-id", "of-ones-own")
    row.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Result", exact=True)).to_be_visible()
    expect(page.get_by_text("This is an example, made on another machine")).to_be_visible()
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)
    run = server.runs / name
    best = report.load(RunFolder(run)).best_id
    page.goto(f"{server.url}/compare?runs={name}")
    expect(page.get_by_role("heading", name="Compare two kernels")).to_be_visible()
    expect(page.get_by_role("combobox", name="Kernel", exact=True)).to_have_value(re.compile("best"))
    expect(page.get_by_role("combobox", name="Against")).to_have_value(re.compile("kernel"))
    page.goto(f"{server.url}/candidate?run=causal_attention-20261124-193809-c75e&candidate=c002&tab=Profile")
    expect(page.get_by_text("is off in this run; a person switched it off during depth 1")).to_be_visible()
    expect(page.get_by_text("The run is an example, made on another machine: no engine goes on")).to_be_visible()
    page.goto(f"{server.url}/candidate?run={name}&candidate={best}&tab=Profile")
    expect(page.get_by_role("figure", name=re.compile("Roofline: kernel"))).to_be_visible()
    page.get_by_role("button", name="Go back or fork from here").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="manual", exact=True).click()
    expect(dialog.get_by_text("The run used the toolchain cuda.")).to_be_visible()
    dialog.get_by_role("button", name=re.compile("Start a new run from kernel")).click()
    page.wait_for_url(lambda address: name not in parse_qs(urlsplit(address).query).get("run", [name]))
    made = RunFolder(server.runs / parse_qs(urlsplit(page.url).query)["run"][0])
    expect(page.get_by_text("Your reply is needed").first).to_be_visible()
    settings = made.read_settings()
    assert (settings.toolchain, settings.model, settings.is_example) == ("cpu", "manual", False)
    supervisor.stop(made)
    page.goto(f"{server.url}/?state=examples")
    expect(row).to_be_visible()
    expect(page.locator(f'tr[data-id="{made.run_id}"]')).to_have_count(0)
    drawn(page).get_by_role("button", name="Remove examples").click()
    expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    assert not run.exists()
