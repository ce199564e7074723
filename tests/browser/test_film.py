"""The first screen: a real run as a film, and a page for an audience."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, WebSocket, expect

from storage.run import events as ev
from tests import samples
from tests.browser import rules
from tests.browser.conftest import Server, becomes, drawn
from tests.browser.play import PretendEngine

pytestmark = pytest.mark.browser
SHIFTS = """() => new Promise(done => new PerformanceObserver(list => done(
  list.getEntries().reduce((sum, shift) => sum + shift.value, 0))).observe({ type: "layout-shift", buffered: true }))"""
# Of the code: by how much it is cut at the right and at the lower edge, and where each row begins and ends.
ROWS = """box => {
  const shown = [...box.children].map(row => row.getBoundingClientRect()).sort((a, b) => a.top - b.top)
  const cut = [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight]
  return [...cut, shown.map(row => row.top), shown.map(row => row.bottom)]
}"""
PRESENTED = re.compile("tilewright-presents")


@pytest.fixture
def moving_page(page: Page) -> Iterator[Page]:
    """The page of somebody who has nothing against motion."""
    page.emulate_media(reduced_motion="no-preference")
    yield page
    page.emulate_media(reduced_motion="reduce")


def test_a_first_visit_is_a_film_that_plays_pauses_steps_and_leads_to_the_demo(
    own_server: Callable[..., Server], moving_page: Page
) -> None:
    page, server = moving_page, own_server()
    engine = PretendEngine(server.runs, "the-demo", depths=3)
    engine.play_until(lambda event: isinstance(event, ev.CandidateCreated))
    asked: list[str | bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: asked.append(frame))

    page.on("websocket", listen)
    page.context.clear_cookies()
    page.goto(server.url)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Tilewright makes a PyTorch module faster")
    expect(page).to_have_url(f"{server.url}/first")
    film = page.get_by_role("region", name="A run in 40 seconds")
    expect(film).to_contain_text("PyTorch takes 6.30 ms on an NVIDIA H200")
    drawn(page)
    before = len(asked)
    expect(film).to_contain_text("Kernel 1: The model writes the first kernel")
    expect(film.locator(".gain b")).to_have_text("0.84×")
    expect(film.locator(".gain span")).to_have_text("correct, but slower than PyTorch")
    assert len(asked) == before, "nothing is asked of the server while the film plays"
    assert page.evaluate(SHIFTS) < 0.1
    page.remove_listener("websocket", listen)

    page.keyboard.press("Space")
    expect(film.get_by_role("button", name="Play")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(film.locator(".caption")).to_have_text("Maximum and sum in one pass")
    expect(film.locator(".gain")).to_contain_text("+28 % against kernel 2")
    expect(film.locator(".removed").first).to_contain_text("walks over it three times")
    expect(film.locator(".added.written", has_text="float const before = m;")).to_be_visible()
    expect(film.get_by_role("listitem").filter(has_text="Timed beside PyTorch")).to_contain_text("2.1 s")
    curve = film.get_by_role("img", name=re.compile("Kernel 3 1.28×"))
    expect(curve.locator("circle")).to_have_count(3)
    film.get_by_role("button", name="Step forward").click()
    expect(film.locator(".gain")).to_contain_text("the cluster is larger than the device can place")
    expect(film.locator(".curve .cross")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(film.locator(".caption")).to_have_text("Maximum and sum in one pass")

    film.get_by_role("button", name="Kernel 9").click()
    film.get_by_role("button", name="Play").click()
    expect(film.get_by_role("heading", name="Now live, on your processor")).to_be_visible()
    expect(film).to_contain_text("It has made 1 kernel so far.")
    engine.play_until(lambda event: isinstance(event, ev.CandidateCreated))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as of somebody who comes back to the tab
    expect(film).to_contain_text("It has made 2 kernels so far.")
    expect(film.get_by_role("button", name="Play again")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile(r"/run\?run=the-demo"))
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    page.get_by_role("link", name="Watch a run in 40 seconds").click()
    expect(film).to_contain_text("PyTorch takes 6.30 ms")
    film.get_by_role("button", name="Result").click()
    film.get_by_role("button", name="Open the run of this film").click()
    expect(page).to_have_url(re.compile(r"/run\?run=softmax-"))
    expect(page.get_by_role("heading", name="Speed-up by depth")).to_be_visible()
    engine.die()


def test_whoever_wants_no_motion_sees_the_whole_curve_and_steps_by_hand(server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"{server.url}/first")
    film = page.get_by_role("region", name="A run in 40 seconds")
    expect(film.get_by_role("button", name="Play again")).to_be_visible()
    expect(film.locator(".curve circle")).to_have_count(8)
    film.get_by_role("button", name="Step back").click()
    expect(film.locator(".caption")).to_have_text("Mark loads and stores as streaming")
    assert film.locator(".added").first.evaluate("row => getComputedStyle(row).transitionDuration") == "0s"
    main = page.get_by_test_id("stMain")
    assert main.evaluate("main => main.scrollHeight - main.clientHeight") <= 0, "it fits on one screen"
    assert rules.broken_in_both_themes(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert rules.broken_in_both_themes(page) == []
    curve, code = film.locator(".curve").bounding_box(), film.locator(".pane").bounding_box()
    assert curve is not None
    assert code is not None
    assert curve["y"] + curve["height"] <= code["y"]


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_long_lines_of_the_film_wrap_and_each_row_has_its_place(
    server: Server, page: Page, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{server.url}/first")
    film = page.get_by_role("region", name="A run in 40 seconds")
    expect(film.get_by_role("button", name="Play again")).to_be_visible()
    wrapped = 0
    for scene in film.locator(".dots button").all()[:-1]:
        scene.click()
        code = film.locator(".rows")
        cut, unseen, tops, bottoms = code.evaluate(ROWS)
        assert cut <= 0, "no line is cut at the right edge"
        assert unseen <= 0 or width < 900, "what fits on a screen is not scrolled"
        assert all(top >= bottom - 0.5 for top, bottom in zip(tops[1:], bottoms, strict=False)), "rows lie over others"
        wrapped += any(bottom - top > 30 for top, bottom in zip(tops, bottoms, strict=True))
    assert wrapped
    page.set_viewport_size({"width": width - 60, "height": height})
    becomes(lambda: code.evaluate(ROWS)[0] <= 0, True)
    _, _, tops, bottoms = code.evaluate(ROWS)
    assert all(top >= bottom - 0.5 for top, bottom in zip(tops[1:], bottoms, strict=False))


def test_a_presented_page_has_large_type_and_no_menus_until_escape(server: Server, page: Page) -> None:
    samples.write_run(server.runs, "shown", depths=6)
    page.goto(f"{server.url}/run?run=shown&present=1")
    expect(page.get_by_role("heading", name="Speed-up by depth")).to_be_visible()
    root = page.locator("html")
    expect(root).to_have_class(PRESENTED)
    expect(root).to_have_css("font-size", "20px")
    for hidden in (
        page.get_by_test_id("stHeader"),
        page.locator(".st-key-run_side"),
        page.locator(".st-key-run_tools"),
    ):
        expect(hidden).to_be_hidden()
    drawn(page).keyboard.press("Escape")
    expect(root).not_to_have_class(PRESENTED)
    expect(page).to_have_url(f"{server.url}/run?run=shown")
    expect(page.locator(".st-key-run_side")).to_be_visible()
    page.goto(f"{server.url}/first?present=1")
    expect(page.get_by_role("region", name="A run in 40 seconds")).to_be_visible()
    expect(root).to_have_class(PRESENTED)
    page.keyboard.press("Escape")
    expect(root).not_to_have_class(PRESENTED)
    expect(page).to_have_url(f"{server.url}/first")
    becomes(lambda: page.get_by_test_id("stHeader").is_visible(), True)
