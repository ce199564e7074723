"""The page of one kernel in a real browser: diff, profile, errors, conversation, keys, narrow screens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from storage.run import events as ev
from storage.run import labels
from storage.run.blobs import Blobs
from storage.run.labels import MarkKind
from storage.run.steering.verbs import CommandKind
from tests import samples
from tests.browser.conftest import Server, becomes, drawn, half_drawn, width_of_what_is_drawn
from tests.browser.play import PretendEngine, finished_depth

pytestmark = pytest.mark.browser


def write_run_with(server: Server, run_id: str, depths: int, **sources: str) -> None:
    """A run of which some kernels have these sources; the server sees it when it is whole."""
    folder = samples.write_run(server.home / "drafts", run_id, depths=depths)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "CandidateCreated" and line["event"]["candidate_id"] in sources:
            line["event"]["source_blob"] = Blobs(folder.blobs).put(sources[line["event"]["candidate_id"]])
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder.path.rename(server.runs / run_id)


def long_source(lines: int, every: int) -> tuple[str, str]:
    """A module with C++ in it and the same with a changed line now and then."""
    body = [f"  acc[{i}] = a[{i}] * b[{i}] + acc[{i}];" for i in range(lines)]
    head, tail = 'import torch\n\nSRC = r"""\n#include <cute/tensor.hpp>\nvoid f() {', '}\n"""\n'
    changed = [line.replace("+ acc", "- acc") if i % every == every // 2 else line for i, line in enumerate(body)]
    return "\n".join([head, *body, tail]), "\n".join([head, *changed, tail])


def test_any_two_kernels_are_compared_hunk_by_hunk(page: Page, server: Server) -> None:
    old, new = long_source(3_000, 250)
    write_run_with(server, "hunks", 4, c004=old, c005=new)
    page.goto(f"{server.url}/candidate?run=hunks&candidate=c005")
    diff = page.locator("table.diff")
    expect(diff.locator("mark").first).to_be_visible()
    expect(page.get_by_text("2 lines added, 0 removed")).to_be_visible()  # as the run counted, whatever its diff is now
    place = page.get_by_role("status").filter(has_text="hunk")
    expect(place).to_have_text("hunk 1 of 12")
    # C++ inside of the Python string is coloured as C++: a type is no string.
    expect(diff.locator("td.del .m").first).to_be_visible()
    page.get_by_role("heading", name="Kernel 5").click()
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(place).to_have_text("hunk 3 of 12")
    expect(diff.locator(".here mark").first).to_be_in_viewport()
    page.keyboard.press("p")
    expect(place).to_have_text("hunk 2 of 12")
    fold = diff.get_by_role("button", name="unchanged lines").first
    count = diff.locator("tr").count()
    fold.click()
    expect(diff.locator("tr").nth(count)).to_be_attached()


def test_the_pair_stands_in_the_address_and_can_be_downloaded(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "pairs", depths=4)
    page.goto(f"{server.url}/candidate?run=pairs&candidate=c005")
    names = page.locator("table.diff th")
    expect(names.first).to_contain_text("kernel 4 (parent)")
    page.get_by_role("button", name="Best").click()
    expect(names.first).to_contain_text("kernel 6 (best)")
    expect(page).to_have_url(re.compile("against=c006"))
    page.get_by_role("button", name="Swap sides").click()
    expect(names.first).to_have_text("kernel 5")
    expect(page).to_have_url(re.compile("swap=1"))
    page.reload()
    expect(names.first).to_have_text("kernel 5")
    page.get_by_role("button", name="Download").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Diff", exact=True).click()
    assert Path(download.value.path()).read_text().startswith("--- kernel 5\n+++ kernel 6 (best)\n@@")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="parent of kernel 6").click()
    expect(page.get_by_role("heading", name="Kernel 6")).to_be_visible()
    expect(page).to_have_url(re.compile("candidate=c006"))
    page.get_by_role("tab", name="Source").click()
    expect(page).to_have_url(re.compile("candidate=c006.*tab=Source"))
    drawn(page).go_back()
    expect(page.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")
    drawn(page).go_back()
    expect(page).not_to_have_url(re.compile("candidate=c006"))
    expect(page.get_by_role("heading", name="Kernel 6")).to_have_count(0)


def test_each_tab_that_a_person_opens_is_one_step_back_and_forth(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "stepped", depths=4)
    page.goto(f"{server.url}/run?run=stepped")
    page.locator('tr[data-id="c003"]').get_by_role("link").first.click()
    page.get_by_role("link", name="Open kernel: source").click()
    expect(page.get_by_role("heading", name="Kernel 3")).to_be_visible()

    def opened(tab: str) -> None:
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        expect(drawn(page).get_by_role("tabpanel", name=tab).locator("> *").first).to_be_visible()

    opened("Errors")  # it failed
    for tab in ("Source", "Trust"):
        drawn(page).get_by_role("tab", name=tab).click()
        expect(page).to_have_url(re.compile(f"candidate=c003.*tab={tab}"))
        opened(tab)
    page.evaluate("window.isTheSame = true")
    for tab in ("Source", "Errors"):
        drawn(page).go_back()
        opened(tab)
    for tab in ("Source", "Trust"):
        drawn(page).go_forward()
        opened(tab)
    assert page.evaluate("window.isTheSame")  # nothing was loaded anew


def test_a_narrow_diff_is_unified_and_a_huge_one_says_what_it_leaves_out(page: Page, server: Server) -> None:
    old, new = long_source(12_000, 900)
    write_run_with(server, "huge", 3, c004=old, c005=new)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.url}/candidate?run=huge&candidate=c005")
    diff = page.locator("table.diff.unified")
    expect(diff.locator("td.add mark").first).to_be_visible()
    expect(
        page.get_by_text(re.compile("Showing 4,000 of 12,0.. lines; the rest differs too; download it to see all."))
    ).to_be_visible()
    becomes(lambda: width_of_what_is_drawn(page), 390)
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator("table.diff.split td.add mark").first).to_be_visible()


def test_the_page_opens_at_its_head_the_source_above_the_middle(page: Page, server: Server) -> None:
    old, new = long_source(400, 250)
    write_run_with(server, "opens", 6, c006=old, c007=new)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.url}/candidate?run=opens&candidate=c007")
    diff, change = page.locator("table.diff"), page.locator("table.diff td.add").first
    expect(change).to_be_in_viewport()
    becomes(lambda: (diff.bounding_box() or {"y": 999})["y"] < 400, True)
    for width, height in ((1280, 380), (390, 780)):
        page.set_viewport_size({"width": width, "height": height})
        page.reload()
        expect(change).to_be_visible()
        expect(drawn(page).get_by_role("heading", name="Kernel 7", exact=True)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("key", ["", "6"])
def test_a_tab_that_is_asked_for_while_the_tabs_are_drawn_anew_is_opened(page: Page, server: Server, key: str) -> None:
    engine = PretendEngine(server.runs, f"tabs{key}", depths=6)
    engine.play_until(finished_depth, times=2)
    page.goto(f"{server.url}/candidate?run=tabs{key}&candidate=c003&tab=Diff")
    tab = drawn(page).get_by_role("tab", name="Prompts and replies")
    expect(page.locator("table.diff")).to_be_visible()
    with half_drawn(page, "Diagnosis and patch"):
        engine.play_until(finished_depth)
        expect(tab).to_be_disabled()
        page.keyboard.press(key) if key else tab.click(force=True)
    expect(page.get_by_label("Search in prompts and replies")).to_be_visible()


def test_new_data_loses_neither_hunk_nor_unfolded_lines_nor_typed_text(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "steady", depths=6)
    engine.play_until(finished_depth, times=3)
    page.goto(f"{server.url}/candidate?run=steady&candidate=c005&tab=Diff")
    diff = page.locator("table.diff")
    diff.get_by_role("button", name="unchanged lines").first.click()
    diff.evaluate("table => { table.isTheSame = true }")
    rows = diff.locator("tr").count()
    expect(page.get_by_role("link", name="parent of kernel 6")).to_have_count(0)
    engine.play_until(finished_depth)
    expect(page.get_by_role("link", name="parent of kernel 6")).to_be_visible()
    assert diff.evaluate("table => table.isTheSame")
    assert diff.locator("tr").count() == rows
    page.get_by_role("tab", name="Prompts and replies").click()
    box = page.get_by_label("Search in prompts and replies")
    box.fill("depth 2")
    engine.play_until(finished_depth)
    expect(box).to_have_value("depth 2")
    box.press("Enter")
    expect(page.get_by_text(re.compile(r"\d+ places? in \d of \d calls"))).to_be_visible()
    expect(page).to_have_url(re.compile("tab=Prompts"))
    engine.die()


def test_a_profile_is_pictures_beside_those_of_its_parent(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "pictured", depths=7)
    page.goto(f"{server.url}/candidate?run=pictured&candidate=c006&tab=Profile")
    expect(page.get_by_text("Kernel 6 changes kernel 5")).to_contain_text("13 % faster than kernel 5")
    expect(
        page.get_by_role(
            "figure", name=re.compile(r"Roofline: kernel 6 at [\d.]+ .FLOP.s.*kernel 4 \(nearest profiled")
        )
    ).to_be_visible()
    expect(page.locator(".figure .annotation-arrow-g, .figure .annotation").first).to_be_attached()
    expect(page.get_by_role("list", name="Blocks that fit on a multiprocessor")).to_contain_text("← limits")
    changes = page.get_by_role("table", name="Changes of the profile since kernel 4")
    expect(changes.get_by_role("row").nth(1)).to_contain_text("share of peak memory bandwidth")
    expect(changes.get_by_role("row").nth(1)).to_contain_text("better")
    expect(page.get_by_role("figure", name=re.compile("Warp stall reasons"))).to_be_visible()
    expect(page.get_by_text(re.compile("Shown to recorded-replies in 1 prompt"))).to_be_visible()


def test_a_profile_is_asked_for_where_there_is_none(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "unprofiled", depths=6)
    engine.play_until(finished_depth)
    page.goto(f"{server.url}/candidate?run=unprofiled&candidate=c001&tab=Profile")
    expect(
        page.get_by_text("On “auto”, profiles are collected for the first kernel and then from depth 4 on")
    ).to_be_visible()
    page.get_by_role("button", name="Profile every correct kernel from now on").click()
    expect(page.get_by_text("Collect profiles: on from the next step")).to_be_visible()
    asked = engine.next_command()
    assert (asked.kind, asked.argument) == (CommandKind.COLLECT, "on")
    engine.play_until(lambda event: isinstance(event, ev.StepStarted))
    engine.die()
    expect(page.get_by_text("No engine is running (the run is interrupted)")).to_be_visible()
    expect(page.get_by_role("button", name="Profile every correct kernel")).to_have_count(0)


def test_an_error_shows_where_it_is_who_mended_it_and_who_else_made_it(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "erring", depths=7)
    page.goto(f"{server.url}/candidate?run=erring&candidate=c003&tab=Errors")
    heat = page.get_by_role("img", name=re.compile("all of block columns 13 to 16 of 16, 12 on the diagonal"))
    expect(heat).to_be_visible()
    expect(page.get_by_text("100 % of a block is wrong")).to_be_visible()
    expect(page.get_by_text("The wrong elements are all in the last 256 of 1024 columns.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ kernels of this run failed with this error"))).to_be_visible()
    page.get_by_role("link", name="made from kernel 2").click()
    expect(page.get_by_role("heading", name="Kernel 2")).to_be_visible()
    page.get_by_role("tab", name="Errors").click()
    marked = page.get_by_label(re.compile("Source lines 8 to")).locator(".marked")
    expect(marked.last).to_contain_text("named by the compiler")
    page.locator('a[href*="candidate=c004"][href*="against=c002"]').click()
    expect(page).to_have_url(re.compile("candidate=c004.*against=c002"))
    expect(page.locator("table.diff th").first).to_contain_text("kernel 2")


def test_a_person_marks_a_kernel_and_everybody_sees_it_also_in_the_exported_file(page: Page, server: Server) -> None:
    run = samples.write_run(server.runs, "marked", depths=4)
    page.goto(f"{server.url}/candidate?run=marked&candidate=c004")
    page.get_by_role("button", name="Mark").click()
    page.get_by_role("radio", name="hack").click()
    page.get_by_label("Why").fill("returns what the first call had")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Kernel 4 is marked hack.")).to_be_visible()
    expect(page.locator(".st-key-kernel_head")).to_contain_text("hack")
    mark = labels.read(run).mark_of("c004")
    assert mark is not None
    assert (mark.kind, mark.note) == (MarkKind.HACK, "returns what the first call had")
    page.goto(f"{server.url}/run?run=marked")
    expect(page.locator('tr[data-id="c004"]')).to_contain_text("hack")
    assert f"# It was {mark.in_words}." in supervisor.exported(run, "c004")


def test_keys_open_tabs_and_neighbours(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "keyed", depths=4)
    page.goto(f"{server.url}/candidate?run=keyed&candidate=c004")
    expect(page.locator("table.diff td").first).to_be_visible()
    page.get_by_role("heading", name="Kernel 4").click()
    page.keyboard.press("7")
    expect(page.get_by_role("tab", name="Trust")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("tab=Trust"))
    expect(page.get_by_text(re.compile(r"Correct: \d+ checks passed, 1 to look at"))).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Kernel 5")).to_be_visible()
    expect(page.get_by_role("tab", name="Trust")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("k")
    expect(page.get_by_role("heading", name="Kernel 4")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Correct: \d+ checks passed, 1 to look at"))).to_be_visible()
    page.keyboard.press("6")
    page.get_by_label("Search in prompts and replies").fill("j7k")
    expect(page.get_by_role("heading", name="Kernel 4")).to_be_visible()
    expect(page.get_by_role("tab", name="Prompts and replies")).to_have_attribute("aria-selected", "true")
    page.get_by_role("heading", name="Kernel 4").click()
    for key in "2kk5jj4kj7jk":  # faster than pages are drawn: each counts where it should
        page.keyboard.press(key)
    expect(page.get_by_role("tab", name="Trust")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("candidate=c004.*tab=Trust"))
    expect(page.get_by_role("heading", name="Kernel 4")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Correct: \d+ checks passed, 1 to look at"))).to_be_visible()


def test_the_profile_stands_in_the_margin_of_source_and_diff(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "heated", depths=8)
    page.goto(f"{server.url}/candidate?run=heated&candidate=c016&tab=Source")
    hot = page.get_by_label("Kernel source").locator(".line", has=page.locator(".heat[title]"))
    expect(hot.first.locator(".heat")).to_have_text("58 %")
    expect(hot).to_have_count(2)
    page.get_by_role("tab", name="Diff").click()
    page.get_by_role("button", name="expand all").click()
    margin = page.locator("table.diff td.heat[title]")
    expect(margin.first).to_have_attribute("title", re.compile(r"58 % of the samples, about .* ms of the call; mostly"))
    page.goto(f"{server.url}/candidate?run=heated&candidate=c001&tab=Source")
    expect(page.get_by_label("Kernel source")).to_be_visible()
    expect(page.locator(".heat")).to_have_count(0)


def test_a_failed_kernel_opens_with_its_errors(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "opened", depths=4)
    page.goto(f"{server.url}/candidate?run=opened&candidate=c003")
    expect(page.get_by_role("tab", name="Errors")).to_have_attribute("aria-selected", "true")
    page.get_by_role("tab", name="Source").click()
    expect(page).to_have_url(re.compile("tab=Source"))
    expect(page.get_by_label("Kernel source")).to_be_visible()
    page.goto(f"{server.url}/candidate?run=opened&candidate=c004")
    expect(page.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")


def test_a_key_counts_that_is_pressed_while_the_page_is_still_being_drawn(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "early", depths=4)
    page.goto("about:blank")  # a page that is loaded reads the script
    # As soon as a key can be heard and the tabs are there, whatever else is still to come. The script stays with the
    # browser's tab, which other tests use after this one.
    page.add_init_script("""if (location.search.includes("run=early&")) {
        const look = setInterval(() => {
            if (!window.tilewrightKeys?.data || !document.querySelector('[role="tab"]')) return
            clearInterval(look)
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "7", bubbles: true, cancelable: true }))
        })
    }""")
    page.goto(f"{server.url}/candidate?run=early&candidate=c004")
    expect(page.get_by_role("tab", name="Trust")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("tab=Trust"))
