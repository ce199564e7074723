"""The knowledge base in a browser: what runs write appears by itself, and a person corrects it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from storage.knowledge import files
from storage.knowledge.records import Evidence, Outcome
from tests import samples
from tests.browser.conftest import Server, becomes, drawn

pytestmark = pytest.mark.browser


def attempt(candidate: str, outcome: Outcome, gain: float | None) -> Evidence:
    return Evidence(
        "told", candidate, "split-K", outcome, time.time(), state="insufficient_parallelism", task="square_matmul",
        kernel_class="matmul", device="NVIDIA H200", architecture="sm_90a", predicted_gain=1.5, gain=gain,
        error="" if gain else "error: no such atom",
    )  # fmt: skip


def test_what_a_run_learns_appears_and_is_corrected_by_a_person(own_server: Callable[..., Server], page: Page) -> None:
    server = own_server(USER="ada")
    samples.write_run(server.runs, "told", depths=3)
    place = server.home / "knowledge"
    page.goto(f"{server.url}/knowledge?in_state=insufficient_parallelism")
    row = page.locator('tr[data-id="split-K"]')
    expect(row).to_contain_text("not tried")
    files.append_evidence([attempt("c001", Outcome.FASTER, 1.3), attempt("c002", Outcome.NOT_COMPILED, None)], place)
    expect(row).to_contain_text("1 of 2")
    expect(row).to_contain_text("1.30×")

    drawn(page).get_by_role("link", name="split-K").click()
    expect(page.get_by_role("heading", name="split-K")).to_be_visible()
    expect(page.get_by_text("error: no such atom")).to_be_visible()
    files.append_evidence([attempt("c003", Outcome.SLOWER, 0.9)], place)
    expect(page.get_by_text("showing 1–3 of 3 attempts")).to_be_visible()
    drawn(page).get_by_role("button", name="Turn off").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Your name")).to_have_value("ada")
    dialog.get_by_label("Reason").fill("too few tiles here")
    dialog.get_by_role("button", name="Turn off").click()
    expect(page.get_by_text("This technique is off")).to_be_visible()
    becomes(lambda: files.load(place).techniques["split-K"].is_disabled, True)

    page.goto(f"{server.url}/knowledge?show=changes")
    change = page.locator("tr", has_text="too few tiles here")
    expect(change).to_contain_text("split-K turned off")
    drawn(page).get_by_role("button", name="Revert: split-K turned off").click()
    dialog.get_by_label("Reason").fill("it was noise")
    dialog.get_by_role("button", name="Revert").click()
    expect(page.locator("tr", has_text="it was noise")).to_contain_text("Revert: too few tiles here")
    assert not files.load(place).techniques["split-K"].is_disabled

    drawn(page).get_by_role("radio", name="states").click()
    page.get_by_role("link", name="hybrid_bound").click()
    expect(page.get_by_role("heading", name="hybrid_bound")).to_be_visible()
    drawn(page).get_by_role("link", name="warp specialisation").click()
    expect(page.get_by_role("heading", name="warp specialisation")).to_be_visible()

    hurts = dialog.get_by_label("When it hurts")
    drawn(page).get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Works on")).to_be_focused()
    hurts.fill("with few registers left")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    drawn(page).get_by_role("button", name="Edit").click()
    expect(hurts).to_have_value("with few registers left")
    dialog.get_by_label("Reason").fill("seen twice")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("with few registers left")).to_be_visible()
    drawn(page).get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Reason")).to_have_value("")
