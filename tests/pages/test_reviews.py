"""What a judge said of a kernel: above the diff, among diagnoses, beside the curve, in the feed and in the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages.parts import index, method, wording
from pages.parts.report.report_run import run_report
from pages.parts.run import feed_sentences
from storage.index import queries
from tests import samples
from tests.pages.conftest import Open, words
from tests.sample_events import POINT


@pytest.fixture
def judged(home: Path) -> str:
    return samples.write_run(home / "runs", "judged", depths=6, strategy="coder_judge").run_id


def test_the_judges_point_stands_above_the_diff_of_the_kernel_made_from_it(open_page: Open, judged: str) -> None:
    shown = words(open_page("candidate", run=judged, candidate="c002", tab="Diff"))
    assert "**Judge, about its parent, kernel 1**" in shown
    for name, text in POINT.items():
        assert f":gray[{name.capitalize()}]&ensp;{wording.plain(text)}" in shown
    assert "Judge, about" not in words(open_page("candidate", run=judged, candidate="c001", tab="Diff"))


def test_a_reply_that_could_not_be_read_is_shown_with_its_reason_where_it_was_about(
    open_page: Open, judged: str
) -> None:
    app = open_page("candidate", run=judged, candidate="c003", tab="Diagnosis and patch")
    assert wording.plain("No JSON object was found in the reply.") in words(app)
    assert "It is slow." in [code.value for code in app.code]


def test_the_panel_beside_the_curve_and_the_feed_tell_it(open_page: Open, judged: str) -> None:
    assert "**Judge, about its parent, kernel 1**" in words(open_page("run", run=judged, candidate="c002"))
    told = [row.text for row in feed_sentences.items(index.current(), judged, words=method.words(judged))]
    assert f"Judge on kernel 1: {POINT['bottleneck']}" in told
    assert "Reply about kernel 3 could not be read: No JSON object was found in the reply." in told
    assert any(text.startswith("Rewrote kernel 1 into kernel 2") for text in told)


def test_the_kernel_counts_as_made_with_the_profile_and_the_calls_of_its_review(open_page: Open, judged: str) -> None:
    open_page("run", run=judged)
    db = index.current()
    kernel = queries.candidate(db, judged, "c002")
    assert kernel is not None
    assert kernel.is_profile_exposed
    roles = [(call.role, call.made_id) for call in queries.conversation(db, judged, "c002")]
    assert roles[:2] == [("judge", None), ("rewrite", "c002")]
    assert queries.kernel_cost(db, judged, "c002").calls == 2


def test_the_report_tells_what_was_said_before_each_round(open_page: Open, judged: str) -> None:
    open_page("run", run=judged)
    html = run_report(index.current(), judged)
    assert "Judge on the parent" in html
    assert "Swizzle the tile" in html


def test_a_review_whose_text_is_gone_is_told_as_such(open_page: Open, home: Path, judged: str) -> None:
    for blob in (home / "runs" / judged / "blobs").iterdir():
        if POINT["change"] in blob.read_text():
            blob.unlink()
    app = open_page("candidate", run=judged, candidate="c002", tab="Diff")
    assert not app.exception
    assert any("The reply is missing from the run folder" in error.value for error in app.error)
    assert "Reply: (this text is missing or damaged in the run folder)" in run_report(index.current(), judged)
