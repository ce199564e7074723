"""Take a picture of every page, light and dark, wide and narrow: `python -m tests.browser.screenshots OUT --home HOME`.

Shows the runs of HOME; without --home, synthetic ones. Those of README alone, of a home with the examples in it
(`python -m engine examples open`):
`python -m tests.browser.screenshots docs/screenshots --home HOME --docs`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from pages.parts import index
from storage.index import queries
from storage.index.queries import AttemptRow, RunRow
from storage.results.vocabulary import Verdict
from tests import sample_knowledge, sample_networks, samples
from tests.browser.chromium import of_program
from tests.browser.conftest import Server, new_home, start_server, stop_server

NETWORK = "convnext"  # of the examples
# What the width adds to a picture's name: overview-light.png, overview-narrow-light.png.
WIDTHS = {"": 1280, "-narrow": 390}
UNDRAWN = '[data-testid="stSkeleton"], .figure:not(:has(.main-svg))'
AT_WORK = '[data-test-script-state="running"]'
# Letters stand where a screen has them, not on whole pixels: words run together there.
ARGS = ("--no-sandbox", "--disable-dev-shm-usage", "--font-render-hinting=none")


@dataclass(frozen=True)
class Shot:
    """One picture: where, what has to be there before it is taken, how tall, and which tab."""

    name: str
    address: str
    sign: str
    height: int = 860
    tab: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--run", help="the run to show; else the one with the most kernels")
    parser.add_argument("--widths", nargs="+", choices=list(WIDTHS), default=list(WIDTHS), metavar="SUFFIX")
    parser.add_argument("--docs", action="store_true", help="only what README shows, wide")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    home = options.home or sample_home()
    shots = list(for_docs(home, options.run) if options.docs else plan(home, options.run))
    server = start_server(home)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=of_program(), args=ARGS)
            for scheme in ("light", "dark"):
                for width in [""] if options.docs else options.widths:
                    for shot in shots:
                        take(browser, server, shot, scheme, options.out, width)
            browser.close()
    finally:
        stop_server(server)


def sample_home() -> Path:
    home = new_home(Path(tempfile.mkdtemp()) / "home")
    for seed, ending in enumerate(samples.ENDINGS):
        started = time.time() - 3600 * (seed + 1)
        samples.write_run(home / "runs", f"sample-{ending}", seed=seed, depths=10, ending=ending, created_at=started)
    sample_knowledge.write_knowledge(home, 300, [f"sample-{ending}" for ending in samples.ENDINGS])
    os.environ["TILEWRIGHT_HOME"] = str(home)
    sample_networks.write_network(sample_networks.network())
    return home


def for_docs(home: Path, run_id: str | None) -> Iterator[Shot]:
    """A run with its best kernel, that kernel's diff, the list, two languages compared, and a profile from a GPU."""
    runs, _, _ = shown(home, None)
    gpu = [one for one in runs if one.is_example and one.task_name == "square_matmul" and one.language != "cute_dsl"]
    profiled = next(one for one in gpu if one.language == "cute")
    _, run, attempts = shown(home, run_id or profiled.run_id)
    best = next(a for a in attempts if a.is_best)
    yield Shot("overview", "", "Runs", 780)
    yield Shot("run", f"run?run={run.run_id}&candidate={best.candidate_id}", "Kernels", 1100)
    yield kernel("diff", run.run_id, best, "Diff", 1000)
    yield Shot("compare", "compare?runs=" + ",".join(one.run_id for one in gpu), "Compare", 1000)
    address = f"candidate?run={profiled.run_id}&candidate={profiled.best_candidate_id}"
    yield Shot("profile", address, "Kernel ", 1000, "Profile")
    if (home / "networks" / NETWORK).is_dir():
        yield Shot("network", f"networks?network={NETWORK}", "Kernels in the network", 1500)


def shown(home: Path, run_id: str | None) -> tuple[list[RunRow], RunRow, list[AttemptRow]]:
    """All runs of the home, the one to show, and its kernels."""
    opened = index.open_index(home)
    opened.ingest.catch_up()
    runs = queries.overview(opened.database)
    run = next((r for r in runs if r.run_id == run_id), None) or max(runs, key=lambda r: r.attempts)
    attempts = queries.attempts(opened.database, run.run_id)
    index.close_index()
    return runs, run, attempts


def plan(home: Path, run_id: str | None) -> Iterator[Shot]:
    """Pictures of the home's best run and its most telling kernels."""
    runs, run, attempts = shown(home, run_id)
    best = next((a for a in attempts if a.is_best), attempts[-1])
    wrong = next((a for a in reversed(attempts) if a.verdict is Verdict.INCORRECT), None)
    broken = next((a for a in reversed(attempts) if a.verdict is Verdict.COMPILE_ERROR), None)
    yield Shot("first", "first", "Play again", height=800)
    yield Shot("overview", "", run.title)
    yield Shot("run", f"run?run={run.run_id}", "Kernels", height=1250)
    yield Shot("panel", f"run?run={run.run_id}&candidate={best.candidate_id}", "Kernels", height=1250)
    yield Shot("steering", f"steering?run={run.run_id}", "Steering")
    yield Shot("edit", f"edit?run={run.run_id}&candidate={best.candidate_id}", "Edit")
    yield Shot("overview-filtered", "?find=nothing+of+this+name", "No run fits")
    yield Shot("compare", "compare?runs=" + ",".join(r.run_id for r in runs[:3]), "Compare", height=1250)
    for network in sorted((home / "networks").glob("*/network.json"))[:1]:
        yield Shot("network", f"networks?network={network.parent.name}", "Before and after", height=1600)
    yield Shot("models", "models", "Applied at first try")
    yield Shot("knowledge", "knowledge", "most promising", height=1250)
    yield Shot("knowledge-attempts", "knowledge?show=attempts", "newest first", height=1250)
    yield Shot("knowledge-picture", "knowledge?show=picture", "Point at an edge", height=2300)
    yield Shot("technique", "technique?technique=operator+fusion", "newest first", height=1400)
    yield Shot("new-run", "new_run", "Start run", height=960)
    yield Shot("system", "system", "Checked ", height=1400)
    yield kernel("diff", run.run_id, best, "Diff")
    yield kernel("source", run.run_id, best, "Source")
    yield kernel("profile", run.run_id, best, "Profile")
    yield kernel("prompts", run.run_id, best, "Prompts and replies")
    yield kernel("trust", run.run_id, best, "Trust", height=1900)
    refused = next((a for a in reversed(attempts) if a.verdict is Verdict.REFUSED), None)
    if refused:
        yield kernel("refused", run.run_id, refused, "Trust")
    for name, found in (("wrong-result", wrong), ("compile-error", broken)):
        if found:
            yield kernel(name, run.run_id, found, "Errors")
            yield kernel(f"{name}-patch", run.run_id, found, "Diagnosis and patch")


def kernel(name: str, run_id: str, found: AttemptRow, tab: str, height: int = 960) -> Shot:
    return Shot(name, f"candidate?run={run_id}&candidate={found.candidate_id}", f"Kernel {found.number}", height, tab)


def take(browser: Browser, server: Server, shot: Shot, scheme: str, out: Path, width: str = "") -> None:
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": shot.height},
        reduced_motion="reduce",
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    names = ("tilewright-welcome", "tilewright-demo-seen")
    context.add_cookies([{"name": name, "value": "1", "url": server.url} for name in names])
    page.goto(f"{server.url}/{shot.address}")
    expect(page.get_by_text(shot.sign).first).to_be_visible(timeout=30_000)
    if shot.tab:
        page.get_by_role("tab", name=shot.tab).click()
        expect(page.get_by_role("tab", name=shot.tab)).to_have_attribute("aria-selected", "true")
    settle(page)
    path = out / f"{shot.name}{width}-{scheme}.png"
    page.screenshot(path=path)
    print(path)
    context.close()


def settle(page: Page) -> None:
    """Until two looks in a row show the same text, no chart is missing and the page's script rests."""
    page.mouse.move(0, 0)  # where the tab was clicked another thing may have come to lie
    last = ""
    for _ in range(75):
        page.wait_for_timeout(400)
        text = page.locator("body").inner_text() + str(page.locator(".main-svg, td, pre").count())
        if text == last and not page.locator(f"{UNDRAWN}, {AT_WORK}").count():
            return
        last = text


if __name__ == "__main__":
    main()
