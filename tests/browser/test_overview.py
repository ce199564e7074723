"""The list of runs in a real browser: found, ordered, paged, steered; narrow and wide."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from storage.run import events as ev
from storage.run import labels
from storage.run.settings import RunState
from storage.run.steering.verbs import CommandKind
from tests import samples
from tests.browser.conftest import Server, at_rest, becomes, drawn, width_of_what_is_drawn
from tests.browser.play import PretendEngine, finished_depth, model_step

pytestmark = pytest.mark.browser


def expect_rows(page: Page, *names: str) -> None:
    ids = "all => all.map(row => row.dataset.id)"
    becomes(lambda: page.locator("tbody tr[data-id]").evaluate_all(ids), list(names))


def choose(page: Page, field: str, option: str) -> None:
    box = drawn(page).get_by_role("combobox", name=field)
    box.scroll_into_view_if_needed()  # a page that is scrolled closes the list of an open box
    at_rest(box).click()
    page.get_by_role("option", name=option).click()


def test_a_long_name_is_whole_and_the_curve_of_a_single_kernel_is_a_point(
    own_server: Callable[..., Server], page: Page
) -> None:
    server = own_server()
    folder = samples.write_run(server.runs, "named", depths=1)
    name = "Layer norm: KernelBlaster, two trajectories, and a name as long as one can be"
    labels.change(folder, lambda now: replace(now, name=name))
    page.goto(server.url)
    link = page.get_by_role("link", name=name)
    expect(link).to_be_visible()
    size = "link => link.clientHeight / parseFloat(getComputedStyle(link).fontSize)"
    becomes(lambda: link.evaluate(size) > 2, True)  # two lines
    right = "node => node.getBoundingClientRect().right"
    assert link.evaluate(right) < page.locator("td.line").first.evaluate(right)
    curve = page.locator('tr[data-id="named"] .spark')
    expect(curve.locator("circle")).to_have_count(1)
    expect(curve.locator(".line")).to_have_attribute("d", re.compile(r"^M2 [\d.]+$"))


def test_runs_are_found_ordered_labelled_compared_and_deleted_with_a_way_back(
    own_server: Callable[..., Server], page: Page
) -> None:
    server = own_server()
    for seed, ending in enumerate(samples.ENDINGS):
        samples.write_run(server.runs, f"r{seed}-{ending}", seed=seed, depths=4, ending=ending, created_at=1e9 + seed)
    page.goto(server.url)
    expect(page.get_by_text("showing 1–7 of 7 runs")).to_be_visible()
    row = page.locator('tr[data-id="r0-finished"]')
    for said in ("demo", "imported", "$", "cutegen"):
        expect(row).to_contain_text(said)
    expect(row).to_contain_text(re.compile(r"\d+ of \d+"))
    expect(page.get_by_text("4 interrupted")).to_be_visible()
    choose(page, "State", "interrupted")
    expect(page.get_by_text("showing 1–4 of 4 runs that match, of 7 in all")).to_be_visible()
    expect(page).to_have_url(re.compile("state=interrupted"))
    choose(page, "Task", "softmax")
    expect(page.get_by_text("showing 1–1 of 1 run that match")).to_be_visible()
    page.reload()
    expect(page.get_by_text("showing 1–1 of 1 run that match")).to_be_visible()
    expect_rows(page, "r1-running")
    box = page.get_by_role("searchbox", name="Find")
    box.fill("nothing of this name")
    box.press("Enter")
    expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    expect(page.get_by_text("None of the 7 runs matches all filters.")).to_be_visible()
    page.get_by_role("button", name="Show all runs").click()
    expect(page.get_by_text("showing 1–7 of 7 runs")).to_be_visible()
    choose(page, "Order", "fastest first")
    expect(page).to_have_url(re.compile("sort=fastest"))
    box.fill("matmul")
    box.press("Enter")
    expect(page.get_by_text("showing 1–3 of 3 runs that match")).to_be_visible()
    page.reload()
    expect(page.get_by_text("showing 1–3 of 3 runs that match")).to_be_visible()
    expect_rows(page, "r0-finished", "r3-stopped", "r6-new")
    page.get_by_role("button", name="Best speed-up").click()
    expect(page).to_have_url(re.compile("sort=smallest"))
    expect(page.get_by_role("columnheader", name="Best speed-up")).to_have_attribute("aria-sort", "ascending")
    page.locator('tr[data-id="r0-finished"]').get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("run=r0-finished"))
    drawn(page).go_back()
    expect(page.get_by_text("showing 1–3 of 3 runs that match")).to_be_visible()
    expect(page).to_have_url(re.compile("find=matmul.*sort=smallest"))
    page.goto(f"{server.url}/?groups=by+task")
    expect(page.locator("tbody tr").first).to_contain_text("Square matmul")
    page.get_by_role("link", name="swish").click()
    expect(page.get_by_text("showing 1–2 of 2 runs that match, of 7 in all")).to_be_visible()

    page.goto(server.url)
    first, second = row, page.locator('tr[data-id="r3-stopped"]')
    for one in (first, second):
        one.get_by_role("checkbox").check()
    expect(page.get_by_text("2 ticked")).to_be_visible()
    page.get_by_role("button", name="Name, tags, archive, delete").click()
    box = page.get_by_role("combobox", name="Add tags")
    box.fill("nightly")
    box.press("Enter")
    box.press("Tab")
    page.get_by_role("button", name="Save").click()
    expect(second).to_contain_text("nightly")
    first.get_by_role("button", name="Name, tags and more").click()
    page.get_by_role("textbox", name="Name").fill("the good one")
    page.get_by_role("button", name="Save").click()
    expect(first.get_by_role("link", name="the good one")).to_be_visible()
    second.get_by_role("button", name="Name, tags and more").click()
    page.get_by_role("button", name="Delete this run").click()
    expect(second).to_have_count(0)
    assert not (server.runs / "r3-stopped").exists()
    page.get_by_role("button", name="Undo").click()
    expect(second).to_contain_text("nightly")
    for one in (first, second):
        one.get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page).to_have_url(re.compile("compare"))
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()


def test_many_runs_are_paged_and_say_how_many_there_are(own_server: Callable[..., Server], page: Page) -> None:
    server = own_server()
    for number in range(120):
        samples.write_run(server.runs, f"n{number:03d}", seed=1, depths=1, created_at=1e9 + number, has_blobs=False)
    page.goto(server.url)
    expect(page.get_by_text("showing 1–50 of 120 runs")).to_be_visible()
    expect(page.locator("tbody tr[data-id]").first).to_have_attribute("data-id", "n119")
    page.get_by_role("button", name="Page 3").click()
    expect(page.get_by_text("showing 101–120 of 120 runs")).to_be_visible()
    expect(page).to_have_url(re.compile("page=3"))
    choose(page, "State", "finished")
    expect(page.get_by_text("showing 1–50 of 120 runs")).to_be_visible()
    page.goto(f"{server.url}/?page=3&find=n11")
    expect(page.get_by_text("showing 1–10 of 10 runs that match, of 120 in all")).to_be_visible()


def test_a_running_run_is_steered_from_its_row_and_news_disturb_nothing(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "steered-here", depths=6)
    engine.play_until(finished_depth, times=2)
    engine.play_until(model_step)
    page.goto(f"{server.url}/?find=steered-here")
    row = page.locator('tr[data-id="steered-here"]')
    expect(row).to_contain_text("running")
    row.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Pausing after this step")).to_be_visible()
    assert engine.next_command().kind is CommandKind.PAUSE
    row.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("dialog")).to_contain_text("the run can be resumed")
    page.get_by_role("button", name="Keep running").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert engine.asked() == []
    box = page.get_by_role("searchbox", name="Find")
    box.press("End")
    box.press_sequentially("-not-yet-sent")
    row.evaluate("row => { row.closest('table').isTheSame = true }")
    before = row.locator(".bar").inner_text()
    engine.play_until(finished_depth)
    engine.play_until(model_step)
    expect(row.locator(".bar")).not_to_have_text(before)
    assert row.evaluate("row => row.closest('table').isTheSame")
    expect(box).to_have_value(re.compile("-not-yet-sent$"))
    engine.die()
    expect(row).to_contain_text("its engine ended")
    expect(row.get_by_role("button")).to_have_count(1)  # its labels


def test_a_run_that_waits_says_so_in_the_list(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "asks-for-me", depths=3)
    engine.play_until(lambda event: isinstance(event, ev.RunStarted))
    page.goto(f"{server.url}/?find=asks-for-me")
    row = page.locator('tr[data-id="asks-for-me"]')
    expect(row).to_be_visible()
    engine.emit(ev.StateChanged(RunState.WAITING, "a person has to answer"))
    expect(row).to_contain_text("waiting for you")
    expect(row).to_contain_text("a person has to answer")
    engine.die()


def test_on_a_narrow_screen_each_run_is_a_card(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "card", depths=4, created_at=time.time())
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.url}/?find=card")
    row = page.locator('tr[data-id="card"]')
    expect(row).to_be_visible()
    drawn(page)
    becomes(lambda: width_of_what_is_drawn(page), 390)
    assert row.evaluate("row => row.closest('.scroll').scrollWidth - row.closest('.scroll').clientWidth") == 0
    cells = row.get_by_role("cell")
    labels = cells.evaluate_all("all => all.map(td => getComputedStyle(td, '::before').content)")
    assert '"Best speed-up"' in labels
    first, last = cells.first.bounding_box(), cells.last.bounding_box()
    assert first
    assert last
    assert last["y"] > first["y"] + first["height"]
    menu = page.get_by_test_id("stSidebarContent")
    page.get_by_test_id("stExpandSidebarButton").click()
    menu.get_by_role("link", name="Models").click()
    expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible()
    expect(menu).not_to_be_in_viewport()


def test_of_the_tasks_that_hold_what_is_typed_the_one_that_begins_with_it_is_taken(page: Page, server: Server) -> None:
    page.goto(f"{server.url}/new_run")
    box = drawn(page).get_by_role("combobox", name="What to optimise")
    box.click()
    box.press_sequentially("square")  # which "Mean squared error" holds too
    expect(page.get_by_role("option").first).to_contain_text("Square matrix multiplication")
    box.press("Enter")
    expect(box).to_have_value(re.compile("^Square matrix multiplication"))


def test_a_link_opens_though_a_field_was_being_typed_in(page: Page, server: Server) -> None:
    for depths in "345":  # without the wait for the field one click in two or three was lost
        page.goto(f"{server.url}/new_run")
        drawn(page).locator("input[aria-label=Depths]").fill(depths)
        page.get_by_role("link", name="System").first.click()
        expect(page).to_have_url(re.compile("/system$"))
