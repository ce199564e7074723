"""A model that is connected in the browser: saved with its key, used at once, removed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server, drawn
from tests.browser.test_manual import fill_in
from tests.browser.test_overview import choose
from tests.chat_server import says, serving

pytestmark = pytest.mark.browser

KEY = "sk-planted-91d2ee07"


def test_a_model_is_saved_in_the_page_offered_for_a_pasted_module_and_removed(
    own_server: Callable[..., Server], page: Page
) -> None:
    server = own_server()
    with serving(says("ready")) as endpoint:
        page.goto(f"{server.url}/models")
        fill_in(page, "Address", endpoint.address)
        fill_in(page, "Model", "small")
        fill_in(page, "Name", "work")
        drawn(page).get_by_label("Key", exact=True).press_sequentially(KEY)
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Show password")).to_be_focused()
        drawn(page).get_by_role("button", name="Save").click()
        row = page.locator("[class*=st-key-saved]")
        expect(row.get_by_text("small at")).to_be_visible()
        expect(row.get_by_text("key in a file that only this user may read")).to_be_visible()
        row.get_by_role("button", name="Test").click()
        expect(row.get_by_text("It replied “ready”")).to_be_visible()
        assert endpoint.keys == [KEY]
    holders = [file for file in server.home.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    assert holders == [server.home / "keys" / "work"]
    assert holders[0].stat().st_mode & 0o777 == 0o600
    assert KEY not in page.content()
    row.get_by_role("button", name="Start a run with it").click()
    expect(page).to_have_url(re.compile("/new_run$"))
    expect(page.get_by_role("combobox", name="Model")).to_have_value("work")
    choose(page, "Model", "recorded")
    drawn(page).get_by_role("link", name="Models").first.click()
    drawn(page).get_by_role("button", name="Start a run with it").click()
    expect(page.get_by_role("combobox", name="Model")).to_have_value("work")
    drawn(page).get_by_role("radio", name="paste").click()
    box = page.get_by_label("Module", exact=True)
    box.fill(box.get_attribute("placeholder") or "")
    expect(page.get_by_role("combobox", name="Model")).to_have_value("work")
    expect(drawn(page).get_by_role("button", name="Start run")).to_be_enabled()
    page.goto(f"{server.url}/models")
    drawn(page).get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove work").click()
    expect(page.get_by_text("Saved models")).to_be_hidden()
    assert list((server.home / "keys").iterdir()) == []


def test_what_was_typed_for_a_new_run_is_there_after_a_visit_to_models(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/new_run")
    fill_in(page, "Maximum model calls", "41")
    drawn(page).get_by_role("link", name="Connect a model").click()
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible()
    drawn(page).get_by_role("link", name="New run").first.click()
    expect(page.get_by_label("Maximum model calls")).to_have_value("41")


def test_a_run_without_a_kernel_shows_the_replies_and_its_test_button_covers_no_field(
    own_server: Callable[..., Server], page: Page
) -> None:
    server = own_server()
    page.goto(f"{server.url}/models")
    with serving(says("ready"), says("ready"), says("ready"), says("ready")) as endpoint:
        fill_in(page, "Address", endpoint.address)
        fill_in(page, "Model", "small")
        fill_in(page, "Name", "work")
        drawn(page).get_by_role("button", name="Test").click()
        expect(page.get_by_text("It replied “ready”")).to_be_visible()
        expect(page.get_by_test_id("stTooltipContent")).to_have_count(0)
        drawn(page).get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved models")).to_be_visible()
        page.goto(f"{server.url}/new_run")
        expect(drawn(page).get_by_text("work writes the kernels. Recorded replies")).to_be_visible()
        choose(page, "Model", "work")
        drawn(page).get_by_role("button", name="Start run").click()
        expect(page.get_by_text("The model gave no kernel in 3 calls:")).to_be_visible(timeout=120_000)
    expect(page.get_by_text("it replied “ready” each time")).to_be_visible()
    expect(page.get_by_role("heading", name="Replies without a usable kernel")).to_be_in_viewport()
    expect(page.get_by_text("ready", exact=True).first).to_be_visible()
    expect(page.get_by_role("button", name="Resume run")).to_have_count(0)
    assert "patch_failed" not in page.content()
    page.get_by_role("link", name="Try another model").click()
    expect(page.get_by_role("combobox", name="Model")).to_have_value("recorded")
    expect(page.locator(".stMarkdownBadge", has_text="recorded replies").first).to_be_visible()
