"""Watching runs in a real browser."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from pages import report
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.settings import RunState, StepKind
from storage.run.steering.command_arguments import Fallback
from tests import samples
from tests.browser import curve, rules
from tests.browser.conftest import SIZE, Server, becomes, hold, start_server, stop_server, width_of_what_is_drawn
from tests.browser.play import PretendEngine, finished_depth, model_step

pytestmark = pytest.mark.browser

# How far everything has jumped since the page was asked for, as browsers measure it: share of the screen by distance.
SHIFTS = """() => { window.jumps = []; new PerformanceObserver(list => jumps.push(...list.getEntries().map(shift => [
  shift.value, ...shift.sources.map(({ node }) => (node?.parentElement ?? node)?.className)])
)).observe({ type: "layout-shift", buffered: true }) }"""
TRUST = {
    "Screening": "outside functions",
    "Isolation": "system calls",
    "Correctness": "trial: wide",
    "Timing": "outputs of timed calls",
}


def test_a_new_run_appears_in_the_list_by_itself_and_is_opened_from_there(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    samples.write_run(server.runs, "listed", depths=5)
    row = page.locator('tr[data-id="listed"]')
    expect(row).to_contain_text("finished")
    expect(row).to_contain_text("×")
    row.get_by_role("link").press("Enter")
    expect(page).to_have_url(re.compile(r"/run\?run=listed"))
    expect(curve.chart(page)).to_be_visible()
    expect(curve.chart(page).get_by_text("torch.compile 1.28×")).to_be_visible()
    expect(page.get_by_label("Key figures")).to_contain_text("over torch.compile")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_nothing_jumps_from_the_first_kernel_to_the_end_of_a_run(
    page: Page, server: Server, width: int, height: int
) -> None:
    name = f"steady-{width}"
    engine = PretendEngine(server.runs, name, depths=3)
    engine.play_until(model_step)
    page.goto("about:blank")
    page.set_viewport_size({"width": width, "height": height})
    late = hold(page, "BidiComponent")  # as on a busy machine: the stages are filled after the page has been seen
    page.goto(f"{server.url}/run?run={name}")
    page.evaluate(SHIFTS)
    expect(page.get_by_text("The code of the first kernel appears here")).to_be_visible()
    late()
    engine.play_until(lambda event: isinstance(event, ev.CandidateCreated))
    expect(page.get_by_label("Source of kernel 1")).to_be_visible()
    engine.emit(ev.BudgetWarned("tokens", 1_600_000.0, 2_000_000.0))
    expect(page.get_by_role("button", name="1 alert")).to_be_visible()
    engine.play_until(finished_depth)
    expect(curve.chart(page)).to_be_visible()
    engine.play_until(finished_depth, times=2)
    expect(page.locator('tr[data-id="c004"]')).to_be_visible()
    engine.play_until(lambda event: isinstance(event, ev.RunEnded))
    expect(page.locator(".st-key-result")).to_be_visible()
    jumps = page.evaluate("jumps")
    assert sum(jump[0] for jump in jumps) < 0.1, sorted(jumps, reverse=True)[:5]


def test_a_narrow_screen_shows_every_figure_of_a_run_whole_and_no_empty_row(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "narrow", depths=4)
    page.goto(f"{server.url}/run?run=narrow")
    curve.chart(page)
    figures = page.get_by_label("Key figures")
    for width in (390, 640):
        page.set_viewport_size({"width": width, "height": 844})
        clock = figures.locator(".elapsed .value")
        page.wait_for_function("() => document.querySelector('.st-key-figures').offsetWidth < innerWidth")
        assert re.fullmatch(r"[\d:]+", clock.inner_text())
        bottom = "getBoundingClientRect().bottom"
        cut = f"list => [...list.querySelectorAll('dd')].filter(a => a.{bottom} > a.parentNode.{bottom} + 1).length"
        assert figures.evaluate(cut) == 0
        assert figures.evaluate("list => list.scrollHeight - list.clientHeight") == 0
        left = "list => Math.round(list.getBoundingClientRect().bottom - list.lastChild.getBoundingClientRect().bottom)"
        assert figures.evaluate(left) < 30, "nothing below the last figure but the line of a note that it has not"
        reserved = "list => parseFloat(getComputedStyle(document.querySelector('.st-key-figures')).minHeight)"
        assert abs(figures.evaluate(reserved) - figures.evaluate("list => list.offsetHeight")) <= 2


def test_a_tab_says_where_it_is_and_what_a_run_needs(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "tabs", depths=3)
    engine.play_until(finished_depth)
    page.goto(f"{server.url}/run?run=tabs")
    running = "Square matmul · Tilewright"
    expect(page).to_have_title(running)
    engine.emit(ev.StateChanged(RunState.PAUSED, "a person"))
    expect(page).to_have_title(f"Paused · {running}")
    prompt = Blobs(engine.folder.blobs).put('[{"role": "user", "text": "Make it faster."}]')
    engine.emit(ev.QuestionAsked(90, 0, StepKind.OPTIMISE, 3, "c001", prompt, "patch"))
    engine.emit(ev.StateChanged(RunState.WAITING, "you"))
    expect(page).to_have_title(f"Your reply is needed · {running}")
    engine.emit(ev.ApprovalAsked(91, StepKind.COMPILE, 3, "c001", Fallback.NEVER, 60.0))
    expect(page).to_have_title(f"Your approval is needed · {running}")
    engine.emit(ev.StateChanged(RunState.RUNNING, "a person has looked"))
    expect(page).to_have_title(running)
    page.goto(f"{server.url}/candidate?run=tabs&candidate=c001")
    expect(page).to_have_title(f"Kernel 1 · {running}")
    menu = page.get_by_role("navigation")
    for name in ("Compare", "Knowledge", "Networks", "Runs"):
        menu.get_by_role("link", name=name, exact=True).click()
        expect(page).to_have_title(f"{name} · Tilewright")
    page.goto(f"{server.url}/run?run=no-such-run")
    expect(page).to_have_title("Run · Tilewright")
    engine.die()


def test_new_data_keeps_zoom_scroll_and_node(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "zoomed", depths=6)
    engine.play_until(finished_depth, times=3)
    page.goto(f"{server.url}/run?run=zoomed")
    expect(page.locator('tr[data-id="c004"]')).to_be_visible()
    curve.zoom(page, 0.4, 2.4)
    before = curve.axis_range(page, "xaxis")
    assert before[0] > 0
    assert before[1] < 3
    curve.chart(page).evaluate("gd => { gd.isTheSame = true }")
    page.get_by_test_id("stMain").evaluate("main => { main.scrollTop = 150 }")
    engine.play_until(finished_depth, times=2)
    expect(page.locator('tr[data-id="c007"]')).to_be_visible()
    page.wait_for_function(
        "() => document.querySelector('.figure')._fullData.find(t => t.name === 'accepted').x.length >= 3"
    )
    becomes(lambda: curve.axis_range(page, "xaxis"), before)
    assert curve.chart(page).evaluate("gd => gd.isTheSame")
    becomes(lambda: page.get_by_test_id("stMain").evaluate("main => main.scrollTop"), 150)


def test_a_click_on_a_point_opens_its_kernel_and_zoom_survives_a_visit_to_its_page(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "visited", depths=5)
    page.goto(f"{server.url}/run?run=visited")
    curve.chart(page)
    curve.zoom(page, 0.6, 3.4)
    before = curve.axis_range(page, "xaxis")
    name = curve.click_point(page, "accepted", 1)
    expect(page).to_have_url(re.compile(f"run\\?run=visited&candidate={name}"))
    expect(page.locator(f'tr[data-id="{name}"]')).to_have_attribute("aria-current", "true")
    becomes(lambda: curve.axis_range(page, "xaxis"), before)
    page.get_by_role("link", name="Open kernel").click()
    expect(page.get_by_role("heading", name=f"Kernel {int(name[1:])}", exact=True)).to_be_visible()
    page.get_by_role("link", name="Square matmul").click()
    expect(page.locator(f'tr[data-id="{name}"]')).to_have_attribute("aria-current", "true")
    becomes(lambda: curve.axis_range(page, "xaxis"), before)


def test_the_engine_time_never_runs_backwards(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "ticking")
    engine.play_until(model_step)
    page.goto(f"{server.url}/run?run=ticking")
    figure = page.locator(".figures .elapsed .value")
    expect(figure).to_have_text(re.compile(r"\d:\d\d"))
    begun = seconds(figure)
    becomes(lambda: seconds(figure) > begun + 1, True)
    before = seconds(figure)
    engine.emit(ev.StateChanged(RunState.PAUSED, "paused by a person"))  # the step in flight is broken off
    expect(page.locator(".figures .state .value")).to_have_text("paused")
    assert seconds(figure) >= before


def test_the_engine_time_stands_in_a_hidden_tab_which_hears_of_no_change(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "in-the-background")
    engine.play_until(model_step)
    page.goto(f"{server.url}/run?run=in-the-background")
    figure, step = page.locator(".figures .elapsed .value"), page.locator(".now .clock")
    expect(step).to_have_text(re.compile(r"0:0[2-9]"))
    hide = "value => { Object.defineProperty(document, 'hidden', { value, configurable: true }) }"
    page.evaluate(hide, True)
    engine.emit(ev.StateChanged(RunState.WAITING, "Your reply is needed."))
    begun = seconds(step)
    becomes(lambda: seconds(step) > begun + 3, True)
    page.evaluate(f"value => {{ ({hide})(value); document.dispatchEvent(new Event('visibilitychange')) }}", False)
    expect(page.locator(".figures .state .value")).to_have_text("waiting")
    shown = seconds(figure)
    page.reload()
    expect(page.locator(".figures .state .value")).to_have_text("waiting")
    assert shown <= seconds(figure) + begun + 1
    engine.die()


def seconds(clock: Locator) -> int:
    minutes, rest = str(clock.text_content()).split(":")
    return int(minutes) * 60 + int(rest)


def test_engine_time_is_rounded_on_the_page_of_a_run_as_in_its_report(page: Page, server: Server) -> None:
    folder = samples.write_run(server.runs, "rounded", depths=3)  # 125.5 s
    assert "Engine time<b>2 min 06 s</b>" in report.report_of([folder])
    page.goto(f"{server.url}/run?run=rounded")
    expect(page.locator(".figures .elapsed .value")).to_have_text("2:06")


def test_no_word_of_the_head_is_cut_while_a_kernel_is_open(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "beside")
    engine.play_until(finished_depth, times=2)
    cut = """things => things.map(thing => [thing.textContent, thing.scrollWidth - thing.clientWidth])
        .filter(([_, over], i) => over > 0 && getComputedStyle(things[i]).display !== "inline")"""
    page.goto(f"{server.url}/run?run=beside&candidate=c001")
    expect(page.get_by_text("Open kernel: source, profile")).to_be_visible()
    for kind, words in ((StepKind.CHECK, "Checking kernel 2 against the reference"), (StepKind.COMPILE, "Compiling")):
        engine.emit(ev.StepStarted(90 + len(words), kind, 2, "c002"))
        expect(page.locator(".now .text")).to_contain_text(words)
        assert page.locator(".now .text, .now .pipeline, .now .tools, .figures dd").evaluate_all(cut) == []


def test_a_page_that_is_opened_by_its_address_asks_for_nothing_that_is_not_there(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "addressed", depths=2)
    page.goto("about:blank")
    missing: list[str] = []
    page.on("response", lambda response: missing.append(response.url) if response.status >= 400 else None)
    page.goto(f"{server.url}/run?run=addressed")
    expect(curve.chart(page)).to_be_visible()
    assert missing == []


def test_an_idle_page_sends_nothing_and_keeps_its_refresh_interval_for_the_browser_session(
    page: Page, server: Server
) -> None:
    engine = PretendEngine(server.runs, "idle", depths=5)
    engine.play_until(model_step, times=4)
    frames: list[str | bytes] = []
    page.goto("about:blank")  # what a page has opened before nobody listens to
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    page.goto(f"{server.url}/run?run=idle")
    curve.chart(page)
    for _ in range(2):
        with page.expect_response(re.compile("api/pulse")):
            pass
    count = len(frames)
    for _ in range(4):
        with page.expect_response(re.compile("api/pulse")):
            pass
    assert len(frames) == count
    page.get_by_label("Refresh every").select_option("10 s")
    page.reload()
    expect(page.get_by_label("Refresh every")).to_have_value("10000")
    engine.die()


def test_the_reply_is_seen_while_it_is_written_until_the_engine_dies_and_the_run_is_lost(
    page: Page, server: Server
) -> None:
    engine = PretendEngine(server.runs, "streamed", depths=4)
    engine.play_until(model_step, times=3)
    page.goto(f"{server.url}/run?run=streamed")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    box = page.get_by_label("Reply being written")
    engine.write("First I will ")
    expect(box).to_have_text("First I will ")
    engine.write("widen the tile <b>not bold</b> ✓")
    expect(box).to_have_text("First I will widen the tile <b>not bold</b> ✓")
    expect(page.locator(".pipeline .active")).to_be_visible()
    engine.die()
    expect(
        page.get_by_text("The run was interrupted: its engine ended at depth 1, while the model was")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Resume run")).to_be_visible()


def test_a_flag_beside_the_best_speed_up_opens_what_stands_behind_it(page: Page, server: Server) -> None:
    samples.write_run(server.runs, "flagged", depths=2)
    page.goto(f"{server.url}/run?run=flagged")
    page.get_by_label("Key figures").get_by_role("link", name="1 to look at").click()
    expect(page).to_have_url(re.compile("candidate=c004&tab=Trust"))
    expect(page.get_by_role("tab", name="Trust")).to_have_attribute("aria-selected", "true")


def test_a_flag_in_the_list_opens_what_stands_behind_the_kernel_and_that_fits_a_narrow_screen(
    page: Page, server: Server
) -> None:
    samples.write_run(server.runs, "trusted", depths=4)
    page.goto(f"{server.url}/run?run=trusted")
    page.locator('tr[data-id="c004"]').get_by_role("link", name="1 to look at").click()
    expect(page).to_have_url(re.compile("candidate=c004&tab=Trust"))
    expect(page.get_by_text("Correct: 30 checks passed, 1 to look at, 3 not done.")).to_be_visible()
    for group, check in TRUST.items():
        expect(page.get_by_role("heading", name=group)).to_be_visible()
        row = page.get_by_role("table", name=f"Checks: {group}").get_by_role("row").filter(has_text=check)
        expect(row).to_contain_text(re.compile("passed|look at this|note"))
    expect(page.get_by_role("figure", name=re.compile("Errors of 7 checks"))).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    becomes(lambda: width_of_what_is_drawn(page), 390)
    wide = "table => table.parentElement.scrollWidth - table.parentElement.clientWidth"
    below = "cells => cells.at(-1).getBoundingClientRect().top >= cells[0].getBoundingClientRect().bottom"

    def stand() -> list[tuple[int, bool]]:
        """How far each table scrolls sideways, and whether the detail stands below its check."""
        tables = {check: page.get_by_role("table", name=f"Checks: {group}") for group, check in TRUST.items()}
        cells = {
            check: table.get_by_role("row").filter(has_text=check).get_by_role("cell")
            for check, table in tables.items()
        }
        return [(table.evaluate(wide), cells[check].evaluate_all(below)) for check, table in tables.items()]

    becomes(stand, [(0, True)] * len(TRUST))
    page.set_viewport_size(SIZE)
    page.get_by_role("tab", name="Source").click()
    expect(page.get_by_label("Kernel source")).to_be_visible()
    page.get_by_role("button", name="1 to look at").click()
    expect(page.get_by_text("this repair removed the CuTe structure")).to_be_visible()


def test_a_second_server_on_the_same_home_says_who_has_it_and_the_first_ends_whoever_takes_nothing_from_it(
    own_server: Callable[..., Server],
) -> None:
    server = own_server()
    with pytest.raises(AssertionError, match=f"process {server.process.pid}.*already serves"):
        stop_server(start_server(server.home))
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        slow.sendall(b"GET /assets/plotly.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.recv(12) == b"HTTP/1.1 200"
        stop_server(server)  # raises when it has to wait for longer than 20 s


def test_the_system_page_looks_again_when_asked(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_role("link", name="System").click()
    expect(page).to_have_url(re.compile(r"/system"))
    building = page.get_by_role("table", name="System: CPU toolchain")
    expect(building).to_contain_text("compiler")
    expect(page.get_by_role("table", name="System: GPU")).to_contain_text("Nsight Compute")
    looked = page.get_by_text("Checked ")
    before = looked.inner_text()
    looked.evaluate("line => { line.id = 'old' }")
    # A check may take less than a second, and reports of one second say the same time.
    page.wait_for_function("shown => new Date().toISOString().slice(11, 19) !== shown", arg=before.split()[2])
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("#old"), "the click was not taken: the old report still stands").to_have_count(0)
    expect(looked, "the click was taken, but no report has come").to_be_visible()
    expect(looked, "a report has come, but it is the old one").not_to_have_text(before)
    expect(building).to_contain_text("compiler")


def test_who_waited_for_what_is_seen_while_a_run_works_and_a_bar_says_what_it_is(page: Page, server: Server) -> None:
    engine = PretendEngine(server.runs, "lanes", depths=6)
    engine.play_until(finished_depth)
    page.goto(f"{server.url}/run?run=lanes")
    strip = page.get_by_role("img", name="Who waited for what")
    expect(strip).to_contain_text("Compiler")
    bars = strip.locator("i.model")
    before = bars.count()
    engine.play_until(finished_depth, times=2)
    becomes(lambda: bars.count() > before, True)
    engine.play_until(model_step)
    engine.die()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        bars.first.hover(force=True)
        expect(page.get_by_text(re.compile("^(Model|Compiler|Evaluator) · .* after the beginning"))).to_be_visible()
        assert width_of_what_is_drawn(page) <= width
    assert rules.broken_in_both_themes(page) == []
