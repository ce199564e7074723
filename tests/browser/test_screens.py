"""Every page in every theme and width, over runs in every state: no error, no sideways scroll, a name on everything.

Axe-core reads each theme of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from storage.networks.records import CaptureEnded, CaptureStarted
from storage.suites import files
from storage.suites.records import Arm, Defined, SuiteTask
from tests import sample_knowledge, sample_networks, samples
from tests.browser import rules
from tests.browser.conftest import STEP, Server, drawn, forget, hold, new_home, start_server, stop_server
from tests.browser.play import PretendEngine, finished_depth, model_step
from tests.sample_suites import write_suite

pytestmark = pytest.mark.browser

CHECK = (Path(__file__).parent / "screen_check.js").read_text()
# A theme decides colours and a width decides places: each in one of two pairs shows what four would.
LOOKS = [("light", 1280), ("dark", 390)]
# Address, and what is there when the page stands.
PAGES = {
    "overview": ("", 'tr[data-id="whole"]'),
    "overview with nothing that fits": ("?find=no+such+run", "text=No matching runs"),
    "first": ("first", "text=Play again"),
    "compare": ("compare?runs=whole,stopped", "h1"),
    "suite": ("benchmark?suite=simulated", "text=Arms compared in pairs"),
    "runs of a suite": ("benchmark?suite=simulated&show_suite=runs", 'tr[data-id="square_matmul"] .pill'),
    "curves of a suite": ("benchmark?suite=simulated&show_suite=curves", "h2:has-text('Over what was spent')"),
    "timeline of a suite": ("benchmark?suite=simulated&show_suite=timeline", "text=Point at a bar"),
    "new suite": ("benchmark?new=demo", "text=The same as a file"),
    "networks": ("networks", 'tr[data-id="tiny"]'),
    "network": ("networks?network=tiny", 'tr[data-id="mlp_act"]'),
    "kernels of a network": (
        "networks?network=tiny&network_view=under+torch.compile,+by+kernel",
        "text=Of all kernels",
    ),
    "region of a network": ("networks?network=tiny&region=mlp_up", "text=The command that starts a run on it"),
    "capture that failed": ("networks?network=failed", "text=The capture failed"),
    "models": ("models", "text=On the dashed line"),
    "knowledge": ("knowledge?in_state=hybrid_bound", 'tr[data-id="larger tile"]'),
    "state": ("kernel_state?state=memory_latency_bound", 'tr[data-id="loads in flight"]'),
    "attempts": ("knowledge?show=attempts", "text=newest first"),
    "picture of what is known": ("knowledge?show=picture", "text=Point at an edge"),
    "changes of what is known": ("knowledge?show=changes", "text=can be reverted"),
    "what a run learned": ("learning?run=whole", "text=had been offered"),
    "technique": ("technique?technique=operator+fusion", "text=newest first"),
    "new run": ("new_run", "button:has-text('Start run')"),
    "whole run with a kernel": ("run?run=whole&candidate=c004", "h2:has-text('Kernel 4')"),
    "presented run": ("run?run=whole&present=1", "text=The scale on the right"),
    "half a run": ("run?run=half", '[role="table"]'),
    "running run": ("run?run=running", 'tr[data-id="c001"]'),
    "lost run": ("run?run=lost", "text=The run was interrupted"),
    "run without anything yet": ("run?run=new", "text=interrupted"),
    "no such page": ("nowhere", "text=There is no page nowhere here"),
    "no such run": ("run?run=nowhere", "text=There is no run"),
    "kernel": ("candidate?run=whole&candidate=c004", "text=Kernel 4"),
    "kernel that failed": ("candidate?run=whole&candidate=c002", "text=Kernel 2"),
    "edit by hand": ("edit?run=running&candidate=c001", "text=Kernel source"),
    "steering": ("steering?run=whole", "text=newest first"),
    "system": ("system", "text=Checked "),
    "no such kernel": ("candidate?run=whole&candidate=c999", "text=has no kernel"),
}
# The same page with other contents: axe-core, which takes longest, reads it once, dark and narrow.
VARIANTS = ("overview with nothing that fits", "no such page", "state", "attempts", "changes of what is known",
            "curves of a suite", "timeline of a suite", "half a run", "running run", "lost run",
            "run without anything yet", "kernel that failed", "kernels of a network",
            "capture that failed")  # fmt: skip
# How far everything has jumped since the page was asked for: share of the screen by distance, and what jumped.
SHIFTS = """() => new Promise(done => {
  new PerformanceObserver(list => done(list.getEntries().map(shift => [
    shift.value, ...shift.sources.map(({ node }) => (node?.parentElement ?? node)?.className)])))
    .observe({ type: "layout-shift", buffered: true })
  setTimeout(done, 1000, [])
})"""
# Only loading leads there: the way back to a list is to the list as it was left, and Streamlit has no page "nowhere".
LOADED = ("", "nowhere")
TABS = {
    "kernel": ["Source", "Diagnosis and patch", "Errors", "Profile", "Prompts and replies", "Trust"],
    "kernel that failed": ["Errors", "Profile", "Trust"],  # the others are as of any kernel
}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, visitor: BrowserContext, shared_cache: Path) -> Iterator[Server]:
    home = new_home(tmp_path_factory.mktemp("screens") / "home", shared_cache)
    now = time.time()
    samples.write_run(home / "runs", "whole", depths=6, created_at=now, knowledge="on")
    sample_knowledge.write_knowledge(home, 80, ("whole",))
    samples.write_run(home / "runs", "stopped", seed=3, depths=5, ending="stopped", created_at=now)
    samples.write_run(home / "runs", "lost", seed=1, depths=4, ending="running", created_at=now)
    samples.write_run(home / "runs", "new", depths=4, ending="new", created_at=now)
    half = samples.write_run(home / "runs", "half", depths=4, created_at=now).journal_file
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 3])
    write_suite(home, 3, 2, 2, 60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", str(home))
        sample_networks.write_network(sample_networks.network())
        for name in ("first", "second", "third"):
            files.append(files.folder_of(name), Defined(name, (SuiteTask("swish", "swish"),), (Arm("a"),)))
        sample_networks.begin("failed", CaptureStarted("app.py:make", "eval", "cpu", 1), CaptureEnded("no checkpoint"))
    engine = PretendEngine(home / "runs", "running", depths=5)
    engine.play_until(finished_depth, times=2)
    engine.play_until(model_step)
    server = start_server(home)
    yield server
    forget(visitor)
    engine.die()
    stop_server(server)


def look(
    page: Page, server: Server, address: str, sign: str, tabs: list[str] | None = None, *, is_variant: bool = False
) -> list[str]:
    """Everything wrong with a page, in every theme and width; and with some of its tabs. A variant is read by axe-core
    in the last theme and width alone."""
    page.set_viewport_size({"width": LOOKS[0][1], "height": 900})
    go(page, server, address, sign)
    found = []
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{scheme} {width}: {problem}" for problem in settled(page)]
        if not is_variant or (scheme, width) == LOOKS[-1]:
            found += [f"{scheme} {width}: {problem}" for problem in rules.broken(page)]
    for tab in tabs or []:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        drawn(page)
        found += [f"{tab} 390: {problem}" for problem in settled(page) + rules.broken(page)]
    return found


def go(page: Page, server: Server, address: str, sign: str) -> None:
    """To the next page as the browser's way back and forth goes there: what all pages share is not loaded again.

    A page whose sign is on the last one already is loaded, as nothing else would tell the two apart."""
    is_open = page.url.startswith(server.url) and page.locator(sign).count() == 0
    if is_open and address.partition("?")[0] not in LOADED:
        drawn(page).evaluate(STEP, f"/{address}")
    else:
        page.goto(f"{server.url}/{address}", wait_until="domcontentloaded")
    expect(page.locator(sign).first).to_be_visible()
    drawn(page)


def settled(page: Page) -> list[str]:
    """What is wrong once the page has settled: a chart takes a moment to follow a new width."""
    deadline = time.monotonic() + 4
    while (found := page.evaluate(CHECK)) and time.monotonic() < deadline:
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return list(found)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_sound_in_every_theme_and_width(full: Server, open_page: Page, name: str) -> None:
    address, sign = PAGES[name]
    assert look(open_page, full, address, sign, TABS.get(name), is_variant=name in VARIANTS) == []


@pytest.mark.parametrize(
    ("address", "sign", "width", "late"),
    [
        ("benchmark", 'tr[data-id="demo"]', 1280, ""),
        ("networks", 'tr[data-id="tiny"]', 390, ""),
        ("new_run", "button:has-text('Start run')", 390, ""),
        ("benchmark?new=demo", "text=The same as a file", 1280, ""),
        ("knowledge", "text=Add a technique", 1280, ""),
        ("candidate?run=whole&candidate=c004", ".st-key-kernel_figures dd", 390, "PageLink,Button"),
    ],
)
def test_nothing_jumps_while_a_page_with_tables_or_fields_comes_in(
    full: Server, open_page: Page, address: str, sign: str, width: int, late: str
) -> None:
    open_page.set_viewport_size({"width": width, "height": 800})
    let_go = hold(open_page, late) if late else None
    open_page.goto(f"{full.url}/{address}")
    expect(open_page.locator(sign).first).to_be_visible()  # a button whose words change stands twice for a moment
    if let_go:
        let_go()
    drawn(open_page)
    jumps = open_page.evaluate(SHIFTS)
    assert sum(jump[0] for jump in jumps) < 0.1, sorted(jumps, reverse=True)[:5]


@pytest.mark.parametrize(
    ("address", "there", "sign"),
    [
        ("benchmark", "Shipped suites", 'tr[data-id="demo"]'),
        ("system", "Checked ", 'tr[data-id="0"]'),
        ("candidate?run=whole&candidate=c004&tab=Trust", "How the latency was measured", 'tr[data-id="0"]'),
    ],
)
def test_nothing_jumps_where_tables_stand_however_late_they_come(
    full: Server, open_page: Page, address: str, there: str, sign: str
) -> None:
    open_page.set_viewport_size({"width": 1280, "height": 800})
    let_go = hold(open_page, "BidiComponent")
    open_page.goto(f"{full.url}/{address}")
    expect(open_page.get_by_text(there).first).to_be_attached(timeout=60_000)  # this machine may be looked at first
    drawn(open_page)
    open_page.evaluate("document.getAnimations().forEach(shown => { shown.currentTime = 10_000 })")  # as after seconds
    let_go()
    expect(open_page.locator(sign).first).to_be_visible()
    jumps = open_page.evaluate(SHIFTS)
    assert sum(jump[0] for jump in jumps) < 0.1, sorted(jumps, reverse=True)[:5]


def test_an_empty_home_is_sound_on_every_page(own_server: Callable[..., Server], page: Page) -> None:
    server = own_server()
    signs = {"": "text=No runs yet", "compare": "h1", "models": "text=No model replies yet"}
    signs |= {
        "benchmark": "text=No suite has been started",
        "system": "text=Checked ",
        "networks": "text=No network has been captured here",
        "knowledge": "text=No attempt has been kept yet",
    }
    for address, sign in signs.items():
        assert look(page, server, address, sign, is_variant=True) == [], address
    page.goto(server.url)
    page.get_by_role("link", name="Start the first run").click()
    expect(page.get_by_role("button", name="Start run")).to_be_visible()


def test_the_check_finds_what_it_is_for(page: Page) -> None:
    page.set_content("<div style='width: 5000px'>wide</div><button></button><img src='data:,'><h1>a</h1><h1>b</h1>")
    found = " ".join(page.evaluate(CHECK))
    for problem in ("no name: <button>", "no name: <img", "2 headings of level 1", "px too wide"):
        assert problem in found
    page.set_content("<h1>a</h1><button aria-label='go'></button>")
    assert page.evaluate(CHECK) == []
    page.set_content("<h1 style='color: #aaa; background: #fff'>faint</h1><h4>far below</h4>")
    assert {"color-contrast", "heading-order"} <= {problem.split()[0] for problem in rules.broken(page)}
