"""Somebody who has never been here, and the end of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage.run import events as ev
from storage.run.settings import RunState
from tests import samples
from tests.browser.conftest import Server, drawn
from tests.browser.play import PretendEngine

pytestmark = pytest.mark.browser
# A browser without a screen shows none; this one keeps what it would show.
NOTIFICATION = """class { static permission = "granted"; static requestPermission = async () => "granted"
  constructor(title) { (window.told ??= []).push(title) } }"""


def test_a_first_visit_goes_on_with_the_demo_which_says_what_is_to_be_seen_until_dismissed(
    own_server: Callable[..., Server], page: Page
) -> None:
    server = own_server()
    engine = PretendEngine(server.runs, "the-demo", depths=3)
    engine.play_until(lambda event: isinstance(event, ev.CandidateCreated))
    page.context.clear_cookies()
    page.goto(server.url)
    page.get_by_role("button", name="Skip to the live demo").or_(
        page.get_by_role("button", name="Watch it live")
    ).click()
    expect(page).to_have_url(re.compile(r"/run\?run=the-demo"))
    welcome = page.get_by_role("region", name="Welcome")
    expect(welcome.get_by_role("listitem")).to_have_text([re.compile(f"^{name}") for name in (
        "A model writes", "Tilewright proves and times", "You steer")])  # fmt: skip
    expect(welcome).to_contain_text("Next: watch the first kernel")
    stages = page.get_by_role("list", name="Up to the first measured kernel").get_by_role("listitem")
    expect(stages.nth(2)).to_contain_text("Write the kernel")
    expect(page.get_by_label("Source of kernel 1")).to_contain_text("ModelNew")
    engine.play_until(lambda event: isinstance(event, ev.Timed))
    expect(page.get_by_role("heading", name="Speed-up by depth")).to_be_visible()
    expect(welcome).to_contain_text("Next: click a point of the curve")
    page.goto(server.url)  # seen once: a later visit begins with the list, and leads there again on a click
    expect(page.get_by_role("heading", name="Begin a run of your own")).to_be_visible()
    page.get_by_role("link", name="Open the demo run").click()
    expect(page.get_by_role("heading", name="Speed-up by depth")).to_be_visible()
    drawn(page).get_by_role("button", name="Dismiss").click()
    expect(welcome).to_be_hidden()
    page.goto(f"{server.url}/run?run=the-demo")
    expect(page.get_by_role("heading", name="Speed-up by depth")).to_be_visible()
    expect(drawn(page).get_by_role("region", name="Welcome")).to_be_hidden()
    page.goto(f"{server.url}/models")
    expect(page.get_by_role("heading", name="By model")).to_be_visible()
    loaded = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "_duckdb" in loaded
    assert "pandas" not in loaded, "what a page does not need is not imported for the first one"
    engine.die()


def test_the_end_of_a_run_is_a_result_to_take_away(server: Server, page: Page) -> None:
    samples.write_run(server.runs, "ended", depths=6)
    page.goto(f"{server.url}/run?run=ended")
    expect(page.locator(".st-key-result")).to_contain_text("as fast as eager PyTorch")
    told = page.get_by_label("Key figures")
    named = (
        "finished",
        "Over eager PyTorch",
        "Latency",
        "over torch.compile",
        "Of the hardware limit",
        "Tokens",
        "Cost",
    )
    for name in named:
        expect(told).to_contain_text(name)
    with page.expect_download() as kernel:
        page.get_by_role("button", name="Download best kernel").click()
    assert "class ModelNew" in kernel.value.path().read_text()
    spent = page.locator(".st-key-time_spent").get_by_role("listitem")
    expect(spent.first).to_contain_text(re.compile(r"Model, \d+ steps.*%"))
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("dialog", name="Limits of this run")).to_be_visible()


def test_a_pasted_module_is_checked_while_it_is_typed(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/new_run")
    drawn(page).get_by_role("radio", name="paste").click()
    box = page.get_by_label("Module", exact=True)
    box.press_sequentially("class Model: pass")
    expect(page.get_by_text("it does not define get_inputs, get_init_inputs").first).to_be_visible()
    expect(page.get_by_role("button", name="Start run")).to_be_disabled()
    box.fill(box.get_attribute("placeholder") or "")
    expect(page.get_by_text("guessed from its code; the first reply decides; no sizes to change")).to_be_visible()
    expect(page.get_by_text("no recording").first).to_be_visible()
    page.get_by_role("radio", name="shipped task").click()
    expect(box).to_be_hidden()
    page.get_by_role("radio", name="paste").click()
    expect(box).to_have_value(re.compile("class Model"))
    box.evaluate("box => { box.value = '#\\n'.repeat(60); box.oninput(); box.scrollTop = 400 }")
    expect(page.locator(".editor .numbers")).to_have_js_property("scrollTop", 400)  # each number beside its line


def test_a_browser_that_asked_for_it_is_told_what_happens(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/models")
    drawn(page).evaluate(f"() => {{ window.Notification = {NOTIFICATION} }}")
    with page.expect_response("**/api/notices?*"):  # what happens from here on is news to this browser
        page.get_by_role("button", name="Get desktop notifications").click()
    expect(page.get_by_text("You are told when a run waits")).to_be_visible()
    engine = PretendEngine(server.runs, "told", seed=1)
    engine.emit(ev.StateChanged(RunState.WAITING, "the model cannot be reached"))
    page.wait_for_function("(window.told ?? []).includes('Softmax waits for you')")
    page.get_by_role("button", name="No more desktop notifications").click()
    engine.die()
