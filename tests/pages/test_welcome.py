"""The first visit without a browser: who is shown the film, and what is promised on the page of the demo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts import index
from pages.parts.status import welcome
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.run.folder import RunFolder
from storage.run.settings import RunState
from tests import samples
from tests.pages.conftest import Open, everything, words


def test_whoever_comes_before_the_demo_is_read_is_offered_no_second_one(home: Path, open_page: Open) -> None:
    app = open_page("models")  # so that the list, and not the film, comes next
    index.ingest().stop()  # it reads when this test says so
    demo = RunFolder(home / "runs" / "the-demo")
    demo.write_settings(samples.sample_settings(demo.run_id))
    app.switch_page("overview.py").run()
    assert "The demo run is starting" in words(app)
    assert "start_demo" not in [button.key for button in app.button]
    index.ingest().start()
    index.ingest().catch_up()
    assert "Open the demo run" in everything(app.run())


@pytest.mark.parametrize("has_demo", [True, False])
def test_a_first_visit_begins_with_the_film_and_the_next_one_with_the_list(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, has_demo: bool
) -> None:
    if has_demo:
        samples.write_run(home / "runs", "the-demo", depths=2)
    monkeypatch.setattr(welcome, "was_seen", lambda: True)  # there is no browser here with cookies to read
    app = open_page()
    assert [title.value for title in app.title] == ["Runs"]
    monkeypatch.setattr(welcome, "was_seen", lambda: False)
    assert "tilewright_film" in everything(open_page())
    assert "tilewright_film" not in everything(open_page(find="softmax"))


def test_who_has_runs_of_their_own_is_shown_no_film(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write_run(home / "runs", "own", seed=1, depths=2)
    monkeypatch.setattr(welcome, "was_seen", lambda: False)
    assert "tilewright_film" not in everything(open_page())


@pytest.mark.parametrize("first", ["models", "system"])
def test_a_visit_that_begins_on_another_page_finds_the_list_under_runs(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    samples.write_run(home / "runs", "the-demo", depths=2)
    monkeypatch.setattr(welcome, "is_dismissed", lambda: False)
    monkeypatch.setattr(welcome, "was_seen", lambda: False)
    app = open_page(first)
    app.switch_page("overview.py").run()
    assert [title.value for title in app.title] == ["Runs"]


def test_what_is_promised_fits_the_run_and_the_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples.write_run(home / "runs", "the-demo", depths=2)
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        run = queries.run(db, "the-demo")
    assert run is not None
    untimed = replace(run, best_candidate_id=None, best_speedup=None)
    without = replace(untimed, passed=0)
    assert welcome.following(run, RunState.FINISHED) == (
        "Next: download the best kernel, then start a run of your own under New run."
    )
    assert welcome.following(without, RunState.FAILED) == (
        "The run found no correct kernel; the list of kernels says why each failed. "
        "Next: start a run of your own under New run."
    )
    assert welcome.following(untimed, RunState.FINISHED).startswith("The run found a correct kernel, but no timing")
    assert welcome.following(run, RunState.STOPPED).startswith("Next: resume the run, then download the best kernel")
    assert "being timed" in welcome.following(untimed, RunState.RUNNING)
    assert welcome.following(run, RunState.LOST).startswith("Next: resume the run;")
    assert "being mended" in welcome.following(replace(without, failed=1), RunState.RUNNING)
    assert welcome.steps()[-1][0] == "You steer"
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    assert welcome.following(run, RunState.FINISHED) == "Next: download the best kernel."
    assert "Next" not in welcome.following(without, RunState.FINISHED)
    assert welcome.steps()[-1][0] == "People steer"


def test_the_end_of_the_demo_leads_on_to_its_checks_to_networks_and_to_the_results_from_a_gpu(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write_run(home / "runs", "the-demo", depths=2, ending="running")
    samples.write_run(home / "runs", "the-demo-2", depths=2)
    assert WHERE not in words(open_page("run", run="the-demo")), "it is still at work"
    app = open_page("run", run="the-demo-2")
    assert WHERE in words(app)
    assert {"/candidate", "/networks"} <= {f"/{link.proto.page}" for link in app.get("page_link")}
    app.button(key="open_table").click().run()
    assert not app.exception
    assert app.query_params["suite"] == welcome.TABLE
    assert "all 26 runs finished" in everything(app)
    app = open_page("run", run="the-demo-2")
    assert "open_table" not in [button.key for button in app.button]
    samples.write_run(home / "runs", "own", seed=1, depths=2)
    assert WHERE in words(open_page("run", run="the-demo-2")), "it leads on for whoever has runs of their own, too"
    assert WHERE not in words(open_page("run", run="own"))
    samples.write_run(home / "runs", "the-demo-3", depths=2, ending="stopped")
    assert "The demo was stopped" in words(open_page("run", run="the-demo-3"))


WHERE = "The demo has ended"


def test_a_read_only_server_offers_no_run_of_your_own(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    said = words(open_page())
    assert "Start your own" not in said
    assert "This server is read-only. From a terminal:" in said
    assert "No demo run here" in said
