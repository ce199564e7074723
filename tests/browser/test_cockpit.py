"""The run page as a cockpit, in a real browser."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from pages.parts.status import away
from storage.run import events as ev
from storage.run.settings import RunState, StepKind
from tests import samples
from tests.browser import curve
from tests.browser.conftest import Server, becomes, drawn, start_server, stop_server, width_of_what_is_drawn
from tests.browser.play import PretendEngine, finished_depth, model_step
from tests.pages.test_provenance import write_fork

pytestmark = pytest.mark.browser


def panel(page: Page) -> Locator:
    return page.locator(".st-key-kernel_panel")


def press(page: Page, key: str) -> None:
    """Press a key as a person does who has just clicked into the page, beside everything."""
    page.get_by_role("heading", name="Speed-up by depth").click()
    page.keyboard.press(key)


def test_the_first_screen_has_curve_state_best_and_headroom_and_its_bar_keeps_its_height_from_stage_to_stage(
    page: Page, server: Server
) -> None:
    engine = PretendEngine(server.runs, "first-screen", depths=8)
    engine.play_until(finished_depth, times=5)
    engine.play_until(model_step)
    page.goto(f"{server.url}/run?run=first-screen")
    page.set_viewport_size({"width": 1280, "height": 800})
    becomes(lambda: curve.chart(page).evaluate("gd => gd.getBoundingClientRect().bottom") <= 800, True)
    becomes(lambda: curve.chart(page).evaluate("gd => gd.getBoundingClientRect().top") <= 290, True)
    page.set_viewport_size({"width": 1280, "height": 900})
    figures = page.get_by_label("Key figures")
    expect(figures).to_contain_text("running")
    expect(figures).to_contain_text(re.compile(r"Of the hardware limit\s*\d+ %\s*[\d.]+× headroom"))
    best = figures.locator(".best .value")
    expect(best).to_contain_text("×")
    assert best.evaluate("value => parseFloat(getComputedStyle(value).fontSize)") >= 40
    expect(curve.chart(page).get_by_text("the model sees no profiles")).to_be_visible()
    expect(curve.chart(page).get_by_text(re.compile("^(the model sees |with )?profiles"))).to_be_visible()
    expect(page.get_by_role("list", name="Stages of this kernel").locator("[aria-current=step]")).to_be_visible()
    expect(page.locator(".usual").get_by_text(re.compile("^(usually|longer than usual)"))).to_be_visible()
    limit = curve.chart(page).get_by_text("hardware limit")
    is_below = "limit => limit.closest('.figure').querySelector('.legend').getBoundingClientRect().top"
    becomes(lambda: limit.evaluate(f"{is_below} >= limit.getBoundingClientRect().bottom"), True)

    numbers = itertools.count(900)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        heights = set()
        for kind in (StepKind.OPTIMISE, StepKind.COMPILE, StepKind.CHECK, StepKind.DIAGNOSE):
            engine.emit(ev.StepStarted(next(numbers), kind, 3, "c004"))
            stages = page.get_by_role("list", name="Stages of this kernel")
            lit = {"compile": "compile", "check": "check"}.get(kind, kind)
            expect(stages.locator("[aria-current=step]")).to_have_text(lit)
            lines = stages.locator("li").evaluate_all("items => items.map(item => item.getClientRects()[0].height)")
            assert max(lines) < 30  # one line each
            heights.add(page.locator(".now").evaluate("bar => bar.getBoundingClientRect().height"))
        assert len(heights) == 1


NAMES = """gd => [...gd.querySelectorAll(".annotation")].map(name => name.getBoundingClientRect())"""


@pytest.mark.parametrize("width", [1280, 390])
def test_no_name_on_the_curve_covers_another_and_what_a_point_is_stands_clear_of_the_line(
    page: Page, server: Server, width: int
) -> None:
    samples.write_run(server.runs, f"named-{width}", depths=8)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(f"{server.url}/run?run=named-{width}")
    chart = curve.chart(page)
    chart.scroll_into_view_if_needed()

    def covered() -> list[tuple[int, int]]:
        boxes = chart.evaluate(NAMES)
        return [(a, b) for a, b in itertools.combinations(range(len(boxes)), 2) if _meet(boxes[a], boxes[b])]

    becomes(covered, [])
    assert len(chart.evaluate(NAMES)) >= 3
    becomes(lambda: width_of_what_is_drawn(page), width)
    point = next(p for p in curve.points(page, "accepted"))
    page.mouse.move(float(str(point["x"])), float(str(point["y"])))
    told = page.locator(".tilewright-tip")
    expect(told).to_contain_text("over eager PyTorch")
    box = told.bounding_box()
    assert box is not None
    assert box["width"] <= 280
    inside = [
        p
        for name in ("accepted", "best")
        for p in curve.points(page, name)
        if box["x"] < float(str(p["x"])) < box["x"] + box["width"]
        and box["y"] < float(str(p["y"])) < box["y"] + box["height"]
    ]
    assert inside == []


def _meet(one: dict[str, float], other: dict[str, float]) -> bool:
    """Beyond what rounding makes of it."""
    return (
        min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 1
    )


def test_why_a_kernel_got_faster_is_one_click_away(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "why", depths=8)
    page.goto(f"{server.url}/run?run=why")
    name = curve.click_point(page, "accepted", -1)
    expect(page).to_have_url(re.compile(rf"/run\?.*candidate={name}"))
    shown = panel(page)
    expect(shown.get_by_role("heading", name="Kernel 16")).to_be_visible()
    expect(shown).to_contain_text(re.compile(r"Over (parent|base) \(kernel \d+\)"))
    expect(shown).to_contain_text(re.compile(r"(Faster|Slower|No measurable difference) \([\d.]+ to [\d.]+×\)"))
    expect(shown).to_contain_text(
        re.compile(r"model calls? · [\d.,k ]+ tokens · \$0\.\d+ · written in .+ · judged in ")
    )
    changes = shown.get_by_role("table", name="Changes in the profile, what matters most for speed first").locator(
        "tbody tr"
    )
    expect(changes.nth(2)).to_be_visible()
    told = changes.all_inner_texts()
    assert all(re.search(", (better|worse|changed)", row) and " → " in row for row in told), told
    expect(shown.locator("table.diff")).to_be_visible()
    expect(curve.chart(page)).to_be_visible()
    shown.get_by_role("link", name="Open kernel").click()
    expect(page).to_have_url(re.compile(rf"candidate\?.*candidate={name}"))
    page.get_by_role("tab", name="Profile").click()
    whole = page.get_by_role("table", name=re.compile("^Changes of the profile since kernel")).locator("tbody tr")
    first = [row.split() for row in told]
    becomes(lambda: [row.split() for row in whole.all_inner_texts()][: len(told)], first)


def test_a_kernel_opened_from_the_table_has_its_head_below_the_bar_of_pages_and_the_axis_its_title_below_the_numbers(
    page: Page, server: Server
) -> None:
    samples.write_run(server.runs, "revealed", depths=8)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.url}/run?run=revealed")
    expect(curve.chart(page).locator(".xtitle")).to_be_visible()
    page.locator('tr[data-id="c005"]').click()
    head = panel(page).get_by_role("heading", name="Kernel 5")
    expect(head).to_be_visible()
    is_below = "head => head.getBoundingClientRect().top >= document.querySelector('header').offsetHeight"
    becomes(lambda: head.evaluate(is_below), True)
    legend = "gd => gd.querySelector('.legend').getBBox().height"
    becomes(lambda: curve.chart(page).evaluate(legend) > 40, True)  # two rows of it beside the panel
    is_clear = """gd => {
        const box = name => gd.querySelector(name).getBoundingClientRect()
        return box('.xtitle').top >= box('.xtick').bottom && box('.legend').top >= box('.xtitle').bottom
    }"""
    becomes(lambda: curve.chart(page).evaluate(is_clear), True)


def test_names_on_the_curve_that_would_cover_each_other_stand_one_above_the_other(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "names", depths=8)
    page.goto(f"{server.url}/run?run=names")
    limit = curve.chart(page).locator(".annotation").filter(has_text="hardware limit")
    expect(limit).to_be_visible()
    # Its place becomes that of the best kernel's number; then the axis changes, as where a person zooms.
    page.get_by_role("figure", name="Speed-up by depth").evaluate("""gd => {
        const notes = gd.layout.annotations
        const { xref, x, yref, y, xanchor, yanchor, xshift } = notes.find(note => note.font.size === 15)
        const moved = Object.entries({ xref, x, yref, y, xanchor, yanchor, xshift })
        const at = notes.findIndex(note => note.text?.includes("hardware limit"))
        const place = Object.fromEntries(moved.map(([name, value]) => [`annotations[${at}].${name}`, value]))
        return window.Plotly.relayout(gd, { ...place, "xaxis.range": [-0.5, 8.2] })
    }""")
    covering = """limit => [...limit.closest(".figure").querySelectorAll(".annotation")].filter(name => {
        const [a, b] = [limit, name].map(node => node.getBoundingClientRect())
        return name !== limit && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
    }).map(name => name.textContent)"""
    becomes(lambda: limit.evaluate(covering), [])


def test_a_failed_kernel_is_explained_beside_the_curve(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "failed-beside", depths=3)
    page.goto(f"{server.url}/run?run=failed-beside")
    curve.click_point(page, "wrong result", 0)
    expect(panel(page)).to_contain_text("First wrong index [0, 96]: expected 0.731, got 0")
    expect(panel(page)).to_contain_text(re.compile("Diagnosis of the parent, kernel 2"))
    expect(panel(page)).to_contain_text("2 edits, +2 −0 lines")
    panel(page).get_by_role("button", name="Repaired in kernel 4").click()
    expect(panel(page).get_by_role("heading", name="Kernel 4")).to_be_visible()
    expect(panel(page).get_by_role("link", name="1 to look at")).to_be_visible()
    panel(drawn(page)).get_by_role("link", name="Diff against its base").click()
    expect(page.get_by_role("tab", name="Diff")).to_have_attribute("aria-selected", "true")
    page.wait_for_url("**/candidate?*against=c001*")


def test_a_deep_link_is_a_first_request_and_a_page_goes_on_with_another_server(
    own_server: Callable[..., Server], page: Page, problems: list[str]
) -> None:
    server = own_server()
    samples.write_run(server.runs, "kept-open", depths=4)
    page.goto(f"{server.url}/candidate?run=kept-open&candidate=c002")
    expect(page.get_by_text("Square matmul").first).to_be_visible()
    expect(page.get_by_role("link", name="New run")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto(f"{server.url}/run?run=kept-open&candidate=c004")
    expect(panel(drawn(page)).get_by_role("heading", name="Kernel 4")).to_be_visible()
    with page.expect_console_message(lambda said: "server is not responding" in said.text):
        stop_server(server)
    expect(page.get_by_role("alert").get_by_text(away.WORDS)).to_be_visible()
    expect(page.get_by_test_id("stDialog")).to_have_count(0)
    expect(panel(page).get_by_role("heading", name="Kernel 4")).to_be_visible()
    with page.expect_navigation():
        again = start_server(server.home)
    expect(page.get_by_text(away.WORDS)).to_be_hidden()
    expect(panel(drawn(page)).get_by_role("heading", name="Kernel 4")).to_be_visible()
    page.get_by_role("button", name="Go back or fork").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.goto("about:blank")
    stop_server(again)
    # What the page's own library and the browser say of a server that is away.
    away_words = ("server is not responding", "Client Error", "net::ERR_")
    problems[:] = [one for one in problems if not any(word in one for word in away_words)]


def test_five_tab_stops_lead_from_the_top_of_a_run_to_what_pauses_it(page: Page, server: Server) -> None:
    watched_at_work(page, server, "tabbed")
    # From the top, wherever the test before this one has left the keyboard in the same window.
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    name = "document.activeElement.textContent.trim()"
    stops: list[str] = []
    while len(stops) < 5 and not any("Pause" in stop for stop in stops):
        page.keyboard.press("Tab")
        if page.evaluate(name) == "To the controls":
            page.keyboard.press("Enter")
        stops.append(page.evaluate(name))
    assert "Pause" in stops[-1], stops


def test_on_a_phone_the_way_to_the_controls_leads_to_pause(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    watched_at_work(page, server, "tabbed-390")
    page.locator(".tilewright-way").focus()
    page.keyboard.press("Enter")
    assert "Pause" in page.evaluate("document.activeElement.textContent")


def watched_at_work(page: Page, server: Server, name: str) -> None:
    """A run that can be paused."""
    engine = PretendEngine(server.runs, name, depths=4)
    engine.play_until(finished_depth)
    engine.play_until(model_step)
    page.goto(f"{server.url}/run?run={name}")
    expect(drawn(page).get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".tilewright-way")).to_be_visible()


def test_kernels_are_walked_with_the_keyboard_and_fit_a_telephone(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "walked", depths=5)
    page.goto(f"{server.url}/run?run=walked&candidate=c003")
    curve.chart(page)
    heading = panel(page).get_by_role("heading", name=re.compile("Kernel"))
    expect(heading).to_have_text("Kernel 3")
    press(page, "j")
    expect(heading).to_have_text("Kernel 4")
    expect(page).to_have_url(re.compile("candidate=c004"))
    press(page, "k")
    expect(heading).to_have_text("Kernel 3")
    press(page, "Escape")
    expect(panel(page)).to_have_count(0)
    expect(page).not_to_have_url(re.compile("candidate="))
    strip = page.get_by_role("group", name="Lineage")
    strip.locator("[tabindex='0']").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(panel(page)).to_be_visible()
    expect(strip.locator(".path.edge").first).to_be_attached()
    expect(strip.locator("[aria-pressed=true]")).to_have_attribute("data-id", re.compile(r"c\d+"))

    press(page, "Escape")
    expect(panel(page)).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    curve.chart(page).scroll_into_view_if_needed()
    curve.click_point(page, "accepted", 1)
    expect(panel(page).get_by_role("heading", name=re.compile("Kernel"))).to_be_in_viewport()
    becomes(lambda: width_of_what_is_drawn(page), 390)


def test_a_frozen_page_keeps_what_it_shows_and_counts_what_is_new(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "frozen", depths=6)
    engine.play_until(finished_depth)
    page.goto(f"{server.url}/run?run=frozen")
    expect(page.locator('tr[data-id="c001"]')).to_be_visible()
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_text("Off while you type")).to_be_visible()
    engine.play_until(finished_depth)
    expect(page.locator('tr[data-id="c004"]')).to_be_attached()  # a page with an open popover goes on
    expect(page.get_by_text("Off while you type")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Off while you type")).to_be_hidden()
    page.get_by_role("button", name="Freeze").click()
    expect(page.get_by_role("button", name="0 new")).to_be_visible()
    expect(page.locator(".now").get_by_text(re.compile(r"^frozen at \d\d:\d\d:\d\d$"))).to_be_visible()
    for _ in range(12):
        engine.emit(ev.StateChanged(RunState.RUNNING, "a beat"))
    expect(page.get_by_role("button", name="12 new")).to_be_visible()
    engine.play_until(finished_depth, times=1)
    fresh = page.locator("button.fresh")
    expect(fresh).not_to_have_text(re.compile("^(0|12) new$"))
    page.locator('tr[data-id="c002"]').get_by_role("link", name="kernel 2").click()
    expect(panel(page)).to_be_visible()  # drawn again by a click, it still shows what it was frozen with
    expect(page.locator('tr[data-id="c005"]')).to_have_count(0)
    fresh.click()
    expect(page.locator('tr[data-id="c005"]')).to_be_visible()
    expect(fresh).to_be_hidden()


def test_alerts_are_counted_on_both_pages_and_can_be_dismissed(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "alarmed", depths=6)
    engine.play_until(finished_depth, times=5)
    engine.emit(ev.BudgetWarned("tokens", 1_600_000.0, 2_000_000.0))
    page.goto(server.url)
    row = page.locator('tr[data-id="alarmed"]')
    expect(row).to_contain_text("2 alerts")
    row.locator('a[href="run?run=alarmed"]').first.click()
    expect(page.get_by_role("heading", name="Speed-up by depth")).to_be_visible()
    page.get_by_role("button", name="2 alerts").click()
    expect(page.get_by_text("Depth 4 got slower")).to_be_visible()
    expect(page.get_by_text("Go back to kernel 6, or let the run continue.")).to_be_visible()
    expect(page.get_by_text("More than 80 % of the budget is used: tokens.")).to_be_visible()
    page.get_by_role("button", name="Dismiss").first.click()
    expect(page.get_by_role("button", name="1 alert", exact=False)).to_be_visible()
    expect(page.get_by_text("Depth 4 got slower")).to_have_count(0)


def test_a_long_run_is_thinned_paged_and_filtered(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "long", depths=600, has_blobs=False)
    page.goto(f"{server.url}/run?run=long")
    expect(page.get_by_text(re.compile(r"1,1\d\d kernels drawn as \d+ marks"))).to_be_visible(timeout=60_000)
    expect(page.get_by_text(re.compile(r"Showing 1–20 of 1,1\d\d"))).to_be_visible()
    expect(page.get_by_role("group", name="Lineage: ", exact=False)).to_have_attribute(
        "aria-label", re.compile(r"the newest 200 of 1,1\d\d kernels")
    )
    errors = page.get_by_role("table", name="Failed kernels by message, most frequent first")
    expect(errors.locator("tbody tr").first).to_contain_text("wrong result")
    page.get_by_label("Find kernels").fill("7")
    page.get_by_label("Find kernels").press("Enter")
    expect(page.get_by_text(re.compile(r"Showing 1–1 of 1 matching kernels \(1,1\d\d in all\)"))).to_be_visible()
    page.locator('tr[data-id="c007"]').get_by_role("link", name="kernel 7").click()
    expect(panel(page).get_by_role("heading", name="Kernel 7")).to_be_visible()
    becomes(lambda: [p["id"] for p in curve.points(page, "selected")], [None])
    expect(page.get_by_label("Find kernels")).to_have_value("7")


def test_a_fork_leads_to_the_run_it_came_from_and_the_address_follows(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "came-from", depths=4)
    write_fork(server.home, "came-to", "came-from")
    page.goto(f"{server.url}/run?run=came-to")
    page.get_by_role("link", name="forked from kernel 6").first.click()
    expect(page).to_have_url(re.compile("run=came-from$"))
    expect(page.get_by_role("link", name="forked from kernel 6")).to_have_count(0)
    press(page, "f")
    expect(page.get_by_role("button", name="Go live")).to_be_visible()
    expect(page).to_have_url(re.compile("run=came-from$"))
