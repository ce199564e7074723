"""Showing a run to somebody else: told once more while they watch, and as one file that needs nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pages.parts.steering.package_dialog import as_shown
from storage.run.folder import RunFolder
from tests.browser import rules
from tests.browser.conftest import Server, drawn
from tests.browser.test_steering import RESUME
from tests.engine.packaging.judged import IN_PYTORCH, judged_run
from tests.samples import rewrite_texts, write_run

pytestmark = pytest.mark.browser
SLOW_MS = 60_000


def open_menu(page: Page) -> None:
    page.get_by_role("button", name="Share", exact=True).click()


def test_a_replay_is_watched_stopped_and_deleted_and_steers_nothing(server: Server, page: Page) -> None:
    original = write_run(server.runs, "retold", depths=20)  # told in a minute: a busy machine is to pause it before
    before = original.journal_file.read_bytes()
    page.goto(f"{server.url}/run?run=retold")
    open_menu(page)
    page.get_by_text("10×", exact=True).click()
    page.get_by_role("button", name="Start replay").click()
    expect(page.get_by_text("This is a replay of a recorded run at 10× speed")).to_be_visible(timeout=SLOW_MS)
    expect(page).to_have_url(re.compile("run=retold-replay-"))
    kernels = page.get_by_role("table", name="Kernels of this run, newest first").locator("tbody tr")
    drawn(page)  # until then the kernels are still those of the run that is told again
    expect(kernels.nth(1)).to_be_visible(timeout=SLOW_MS)  # the second kernel came while the page was open
    page.get_by_role("button", name=re.compile("^Pause")).click()
    expect(page.get_by_role("button", name=RESUME)).to_be_visible(timeout=SLOW_MS)

    bar = page.get_by_role("slider", name="Replay: drag to any step")
    bar.press("End")  # ahead of the playback
    expect(page.locator(".now").get_by_text(re.compile(r"as it stood after step \d\d"))).to_be_visible()
    expect(kernels.nth(9)).to_be_visible()
    expect(page.get_by_role("button", name="Delete replay")).to_have_count(0)  # it is still being told
    bar.press("Home")
    expect(page.locator(".now").get_by_text("as it stood after step 0")).to_be_visible()
    expect(kernels).to_have_count(0)
    spending = page.locator(".st-key-spending")
    expect(spending).to_contain_text(
        "No model calls yet."
    )  # as the figures above the curve, which are of that step too
    assert rules.broken(page) == []
    page.get_by_role("button", name="Back to playback").click()
    expect(kernels.nth(1)).to_be_visible()
    expect(spending).to_contain_text("What the calls came to")

    expect(page.get_by_text("A replay can only be paused and stopped")).to_be_visible()
    expect(page.get_by_label("Hint for the next prompt")).to_have_count(0)
    expect(page.get_by_role("button", name="Go back or fork")).to_have_count(0)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop the run").click()
    replay = RunFolder(server.runs / page.url.partition("run=")[2])
    page.get_by_role("button", name="Delete replay").click(timeout=SLOW_MS)
    expect(page).to_have_url(re.compile("run=retold$"), timeout=SLOW_MS)
    expect(page.get_by_text("This is a replay")).to_have_count(0)
    assert not replay.path.exists()
    assert original.journal_file.read_bytes() == before


def test_a_report_opens_from_a_file_without_a_network_and_leads_to_its_depths(
    server: Server, page: Page, tmp_path: Path
) -> None:
    folder = write_run(server.home / "drafts", "reported")
    rewrite_texts(folder, lambda text: f"{text}\n# </pre><script>document.title = 'taken over'</script>\n")
    folder.path.rename(server.runs / "reported")
    page.goto(f"{server.url}/run?run=reported")
    open_menu(page)
    expect(page.get_by_text(f"{server.url}/run?run=reported")).to_be_visible()
    with page.expect_download(timeout=SLOW_MS) as download:
        page.get_by_role("button", name="Download report").click()
    file = tmp_path / "run.html"
    download.value.save_as(file)
    page.goto("about:blank")
    page.context.set_offline(True)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        expect(page.get_by_role("heading", level=1)).to_contain_text("over eager PyTorch")
        assert page.title() != "taken over"
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert rules.broken_in_both_themes(page) == []
    assert page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n") == 2
    page.locator('svg a[href="#depth-3"]').first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#depth-3$"))
    expect(page.get_by_role("heading", name="Depth 3", exact=True)).to_be_in_viewport()
    page.get_by_text("Difference to kernel").first.click()
    expect(page.locator("pre.diff .add").first).to_be_visible()


def test_a_packages_card_has_its_tables_as_tables_that_fit_on_a_phone(server: Server, page: Page) -> None:
    run_id = judged_run(server.home, "softmax", IN_PYTORCH, {"batch_size": 4, "dim": 64}).run_id
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.url}/run?run={run_id}")
    drawn(page).get_by_role("button", name="Package", exact=True).click()
    dialog = page.get_by_role("dialog")
    table = dialog.get_by_role("table")
    expect(table.get_by_role("row").filter(has_text="judged on").get_by_role("cell").last).to_have_text("a processor")
    expect(dialog).not_to_contain_text("|")
    place, room = table.bounding_box(), dialog.bounding_box()
    assert place is not None
    assert room is not None
    assert place["x"] + place["width"] <= room["x"] + room["width"], "nothing of it is cut"
    assert rules.broken(page) == []
    assert as_shown("# a ![x](http://elsewhere/x.png)") == r"## a !\[x](http://elsewhere/x.png)"
