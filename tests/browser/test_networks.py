"""The way through a network: from the list into its modules, to a region, to runs for regions, and to kernels that are
measured in it; and news meanwhile."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine import supervisor
from storage.networks import files
from storage.networks.records import CaptureEnded, CaptureProgressed, CaptureStarted, ProofEnded, Verdict
from storage.networks.standing import standing
from storage.run.folder import RunFolder
from tests import sample_networks
from tests.browser.conftest import Server, becomes, drawn, new_home, width_of_what_is_drawn
from tests.browser.test_manual import choose_in_box
from tests.browser.test_real_engine import SLOW_MS
from tests.sample_networks import TRIALS, Left

pytestmark = pytest.mark.browser


@pytest.fixture
def network_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Iterator[Path]:
    """A home whose engines end with the test."""
    home = new_home(tmp_path / "home", shared_cache)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(home))
    yield home
    for path in (home / "runs").iterdir():
        supervisor.stop(RunFolder(path))


@pytest.mark.usefixtures("network_home")
def test_a_capture_is_followed_and_its_network_read_from_the_list_to_runs_for_two_regions(
    own_server: Callable[..., Server], page: Page
) -> None:
    begun = sample_networks.begin("tiny", CaptureStarted("app.py:make", "eval", "cpu", 1))
    lock = files.hold(begun)
    page.goto(f"{own_server().url}/networks")
    drawn(page).get_by_role("link", name="tiny").click()
    expect(page.get_by_text("It has just begun")).to_be_visible()
    files.append(begun, CaptureProgressed("measuring prefill"))
    expect(page.get_by_text("Measuring prefill")).to_be_visible()
    files.write_network(begun, sample_networks.network())
    sample_networks.write_network(sample_networks.network())
    files.append(begun, CaptureEnded())
    os.close(lock)
    expect(page.get_by_text("No kernel was put back into this network yet.")).to_be_visible()
    expect(page.get_by_text("Being captured")).to_have_count(0)
    look_inside(page)
    start_for_two(page)
    becomes(lambda: sorted(standing(begun).runs), ["attn", "mlp_act"], SLOW_MS)
    expect(page.locator('tr[data-id="mlp_act"] a.pill')).to_be_visible(timeout=SLOW_MS)
    drawn(page).locator('tr[data-id="mlp_act"] a.pill').click()
    expect(page).to_have_url(re.compile(r"run\?run=task-"))


def look_inside(page: Page) -> None:
    """By a click on a module and back by one on the topmost; by the box; and to the region of what is shown."""
    figure = drawn(page).get_by_role("figure", name=re.compile("Time by place"))
    figure.locator(".slice", has_text="layers").first.click()
    expect(page.get_by_text(re.compile(r"^layers \(ModuleList\): "))).to_be_visible()
    drawn(page).get_by_role("figure", name="Time by place inside layers,").locator(".slice").first.click()
    expect(page.get_by_text(re.compile(r"^the network itself \(TinyLM\): "))).to_be_visible()
    choose_in_box(page, "Show inside", "layers.0.mlp.act")
    drawn(page).get_by_role("link", name="Region mlp_act: worth it").click()
    expect(page.get_by_text("layers.5.mlp.act")).to_be_visible()
    expect(page.get_by_role("heading", name="mlp_act")).to_be_visible()
    drawn(page).get_by_role("link", name="Network tiny").click()
    expect(page.get_by_role("heading", name="Regions")).to_be_visible()


def start_for_two(page: Page) -> None:
    for region in ("attn", "mlp_act"):
        drawn(page).get_by_role("checkbox", name=f"Tick {region}", exact=True).check()
    page.get_by_role("button", name="Start runs for the ticked").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("attn, mlp_act")).to_be_visible()
    choose_in_box(page, "Model", "manual")
    drawn(page).get_by_role("button", name="Start 2 runs").click()


@pytest.mark.usefixtures("network_home")
def test_kernels_being_measured_are_followed_and_measured_again_without_one_that_is_switched_off(
    own_server: Callable[..., Server], page: Page
) -> None:
    folder = sample_networks.write_network(sample_networks.network())
    lock = sample_networks.write_proof(folder, Left.AT_WORK)
    assert lock is not None
    page.goto(f"{own_server().url}/networks?network=tiny")
    expect(page.get_by_text("Kernels are being put back. Putting back norm1.")).to_be_visible()
    verdicts = page.get_by_role("table", name="Kernels in the network")
    expect(verdicts.locator('tr[data-id="norm1"]')).to_contain_text("being tried")
    files.append(folder, sample_networks.tried("norm1", Verdict.NOT_ENGAGED, None, TRIALS["norm1"][2]))
    expect(verdicts.locator('tr[data-id="norm1"]')).to_contain_text("5 of 6 calls reach the kernel")
    expect(page.get_by_role("button", name="Measure again with these")).to_be_disabled()
    files.append(folder, sample_networks.stack(("attn", "mlp_act"), 1.105), ProofEnded())
    os.close(lock)
    expect(page.get_by_text(re.compile(r"^1\.105× \(1\.102 to 1\.108\) the best alternative"))).to_be_visible()
    expect(page.get_by_role("button", name="Ship")).to_be_visible()
    expect(page.get_by_role("figure", name=re.compile("Speed-up of the network by .*mlp_act 1.106×"))).to_be_visible()
    drawn(page).get_by_role("switch", name="mlp_act is in the network").click()
    expect(page.get_by_text("Switched off: mlp_act, mlp_act_one_token.")).to_be_visible()
    expect(drawn(page).get_by_role("switch", name="mlp_act is in the network")).not_to_be_checked()
    drawn(page).get_by_role("button", name="Measure again with these").click()
    expect(page.get_by_text("The measurement did not start; it wrote:")).to_be_visible(timeout=SLOW_MS)
    expect(page.get_by_text("no region of network tiny has a correct kernel yet")).to_be_visible()
    verdicts.get_by_role("link", name="attn", exact=True).click()
    expect(page.get_by_role("heading", name="Its kernel in the network")).to_be_visible()


def test_a_phone_opens_a_region_and_scrolls_sideways_nowhere_but_in_what_is_wide(
    own_server: Callable[..., Server], page: Page, network_home: Path
) -> None:
    sample_networks.write_proof(sample_networks.write_network(sample_networks.network()), Left.WHOLE)
    server = own_server()
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{server.url}/networks?network=tiny")
    expect(drawn(page).get_by_role("heading", name="Regions")).to_be_visible()
    expect(page.get_by_role("figure", name=re.compile("Speed-up of the network"))).to_be_visible()
    assert width_of_what_is_drawn(page) == 390
    regions = page.get_by_role("table", name="Regions")
    regions.locator('tr[data-id="attn_one_token"] a.name').click()
    expect(page.get_by_role("button", name="Start a run")).to_be_visible()
    assert width_of_what_is_drawn(drawn(page)) == 390
