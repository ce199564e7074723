"""What is told of a kernel's deployment, wherever a run is shown; older runs say nothing of it."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from engine.cli import report
from engine.cli.terminal import Console
from pages.parts import index
from pages.parts.api import api_answers
from pages.parts.report.report_run import run_report
from pages.parts.run.feed_sentences import FeedKind, items
from storage.index import queries
from storage.results import deployment
from storage.results.deployment import UNCAPTURED, CallMemory, Deployment, Trait
from storage.run import events as ev
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from tests import samples
from tests.pages.conftest import Open, everything, words

ON_A_GPU = Deployment(Trait.HELD, stream=Trait.HELD, memory=CallMemory(4_200_000, 2, 2_100_000, 0))
ON_A_PROCESSOR = Deployment(Trait.NOT_TRIED, UNCAPTURED, memory=CallMemory(0, 0, 0, 65_536, 4096))
LACKING = Deployment(Trait.LACKING, "its call waits", Trait.LACKING, None, "the process ended")


def write(home: Path, *seen: Deployment) -> tuple[RunFolder, str]:
    """A whole run and its best kernel, looked at."""
    folder = samples.write_run(home / "runs", "r1", seed=0)
    best = report.load(folder).best_id
    assert best is not None
    told = Journal(folder.journal_file, clock=lambda: 1.76e9)
    for one in seen:
        told.append(ev.DeploymentSeen(best, one))
    told.close()
    return folder, best


def test_every_way_a_kernel_can_stand_is_told_in_plain_words() -> None:
    assert deployment.line(ON_A_GPU) == (
        "CUDA graph: capturable; Current stream: followed; Memory of a call: 4.20 MB beyond its outputs"
    )
    assert [row.standing for row in deployment.told(ON_A_PROCESSOR)] == [
        "not tried", "its outputs alone, and it grows",
    ]  # fmt: skip
    sentences = {row.name: row.sentence for row in deployment.told(LACKING)}
    assert sentences["CUDA graph"] == "Its call waits."
    assert "does not wait for the current stream" in sentences["Current stream"]
    assert sentences["Memory of a call"] == "The process ended."
    memory = [*deployment.told(ON_A_GPU)][-1].sentence
    assert memory == (
        "Beyond its outputs a call takes 4.20 MB in 2 allocations from PyTorch's allocator, at most 2.10 MB at a time. "
        "It keeps none."
    )
    grown = [*deployment.told(ON_A_PROCESSOR)][-1].sentence
    assert grown.endswith("It keeps 65.5 kB from call to call, and each call adds 4.10 kB.")
    unknown = Deployment(Trait.NOT_TRIED, memory=CallMemory(0, 0, 0, None))
    assert [*deployment.told(unknown)][-1].sentence.endswith("What it keeps is not known here.")


def test_the_trust_tab_the_report_the_feed_and_programs_tell_it(
    home: Path, open_page: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, best = write(home, LACKING, ON_A_GPU)
    app = open_page("candidate", run="r1", candidate=best, tab="Trust")
    assert not app.exception
    assert "## Deployment" in words(app)
    assert "capturable" in everything(app)
    assert "4.20 MB in 2 allocations" in everything(app)
    assert "The process ended" not in everything(app), "the last look counts"
    text = html.unescape(run_report(index.current(), "r1"))
    assert "Deployment of the best kernel" in text
    assert "A call was captured and replayed with other inputs" in text
    feed = [item.text for item in items(index.current(), "r1") if item.kind is FeedKind.DEPLOYMENT]
    number = report.load(folder).number(best)
    assert feed[0] == f"Deployment of kernel {number}: {deployment.line(ON_A_GPU)}"
    kernel = api_answers.whole_kernel("r1", best)
    assert kernel is not None
    assert kernel["deployment"]["capture"] == "yes"
    assert report.details(folder)["deployment"]["memory"]["allocations"] == 2
    report.print_run(Console(), folder)
    assert f"deployment of kernel {number}: CUDA graph: capturable;" in capsys.readouterr().out


def test_a_run_that_nobody_looked_at_says_nothing_of_it(home: Path, open_page: Open) -> None:
    folder, best = write(home)
    app = open_page("candidate", run="r1", candidate=best, tab="Trust")
    assert not app.exception
    assert "Deployment" not in words(app)
    assert "Deployment of" not in run_report(index.current(), "r1")
    assert queries.deployment(index.current(), "r1", best) is None
    kernel = api_answers.whole_kernel("r1", best)
    assert kernel is not None
    assert kernel["deployment"] is None
    assert report.details(folder)["deployment"] is None
