"""Every page renders in every state that data can be in."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pages.parts.steering.dialogs import Dialog, Opened
from storage.run import liveness
from storage.run.folder import RunFolder
from tests import samples
from tests.pages.conftest import Open, everything, words

ENDINGS = ("finished", "stopped", "failed", "waiting", "paused", "running", "new")
# Everything that asks for something to be written or started; a page may still offer to look, filter and download.
WRITES = (
    *(
        "Pause",
        "Resume",
        "Stop",
        "Approve",
        "Skip",
        "Send",
        "Set",
        "Save",
        "Start",
        "Go back",
        "Roll back",
        "Answer",
        "Fork",
        "Ban",
    ),
    *("Pin", "Require", "Retry", "Submit", "Measure", "Delete", "Edit", "Raise", "Import", "Revert", "Turn", "Add"),
)


def test_an_empty_home_says_how_to_start(open_page: Open) -> None:
    app = open_page()
    assert not app.exception
    assert "No runs yet" in words(app)
    assert "python -m engine" in words(app)


def test_the_overview_shows_every_state(home: Path, open_page: Open) -> None:
    for seed, ending in enumerate(ENDINGS):
        samples.write_run(home / "runs", f"r-{ending}", seed=seed, depths=4, ending=ending, created_at=time.time())
    app = open_page()
    assert not app.exception
    assert "Showing 1–7 of 7 runs" in words(app)
    assert "4 interrupted" in words(app)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_without_engine_renders(home: Path, open_page: Open, ending: str) -> None:
    samples.write_run(home / "runs", "r1", depths=4, ending=ending)
    app = open_page("run", run="r1")
    assert not app.exception
    is_over = ending in ("finished", "stopped", "failed")
    assert ("The run was interrupted" in words(app)) is not is_over
    assert (
        "**The run was interrupted: its engine ended at depth 2, while the model was optimising kernel 4.** Completed"
        in words(app)
        or ending != "running"
    )
    assert ("its engine ended before its first step" in words(app)) is (ending == "new")
    assert ("resume:r1" in [button.key for button in app.button]) is (ending != "finished")


@pytest.mark.parametrize("ending", ["waiting", "paused", "running", "new"])
def test_a_run_with_an_engine_can_be_steered(home: Path, open_page: Open, ending: str) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending=ending)
    liveness.hold(folder)
    app = open_page("run", run="r1")
    assert not app.exception
    assert app.button(key="opens_stop:r1")
    assert app.button(key=f"{'resume' if ending in ('waiting', 'paused') else 'pause'}:r1:")
    assert ("Waiting for you" in words(app)) is (ending == "waiting")
    assert ("Last step: " in everything(app)) is (ending != "new")  # in the line of the reply, while none is written


def test_half_a_run_renders(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4)
    whole = folder.journal_file.read_bytes()
    for share in (0.02, 0.1, 0.3, 0.55, 0.8):
        folder.journal_file.write_bytes(whole[: int(len(whole) * share)])
        assert not open_page("run", run="r1").exception


def test_an_unknown_run_is_said_to_be_unknown(open_page: Open) -> None:
    for page in ("run", "candidate"):
        app = open_page(page, run="../../etc", candidate="c001")
        assert not app.exception
        assert "There is no run" in words(app)
        assert "etc" in words(app)


def test_a_run_that_is_not_yet_read_is_said_to_be_coming(home: Path, open_page: Open) -> None:
    app = open_page("run", run="r1")
    assert "There is no run" in words(app)
    samples.write_run(home / "elsewhere", "r1", depths=2)
    (home / "elsewhere" / "r1").rename(home / "runs" / "r1")
    assert "is being read" in words(app.run()) or not app.exception


def test_an_unknown_kernel_is_said_to_be_unknown(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=2)
    app = open_page("candidate", run="r1", candidate="c999")
    assert not app.exception
    assert "no kernel **c999**" in words(app)


def test_every_tab_of_every_kernel_renders(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4)
    for name in kernels(folder)[:6]:
        app = open_page("candidate", run="r1", candidate=name)
        assert not app.exception
        for tab in ("Source", "Diagnosis and patch", "Errors", "Profile", "Prompts and replies", "Trust"):
            app.session_state["tab"] = tab
            assert not app.run().exception, (name, tab)


def test_what_the_compiler_noted_of_a_kernel_that_it_built_is_no_error(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=1)
    right = ids(folder, "Timed")[0]
    pages = {tab: open_page("candidate", run="r1", candidate=right, tab=tab) for tab in ("Errors", "Source")}
    assert "No errors: compiles and agrees" in words(pages["Errors"]).replace("\\", "")
    assert "34816 bytes of shared memory" not in words(pages["Errors"])
    assert "34816 bytes of shared memory" in words(pages["Source"])
    assert "Notes of the compiler (3)" in [fold.label for fold in pages["Source"].expander]


def test_a_missing_text_is_said_to_be_missing(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    for blob in folder.blobs.iterdir():
        blob.unlink()
    assert not open_page("candidate", run="r1", candidate=kernels(folder)[1]).exception


def test_read_only_shows_no_controls(home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2, ending="running")
    liveness.hold(folder)
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    app = open_page("run", run="r1")
    assert "read-only" in words(app)
    assert all(button.key == "freeze" or str(button.key).startswith("dismiss:") for button in app.button)
    assert "read-only" in words(open_page("new_run"))
    for ending in ("finished", "stopped", "waiting"):
        samples.write_run(home / "runs", ending, depths=2, ending=ending)
    runs = [("run", {"run": "stopped"}), ("run", {"run": "waiting"}), ("steering", {"run": "finished"})]
    for page, query in (*runs, ("models", {}), ("compare", {"runs": "finished,stopped"})):
        buttons = [button for button in open_page(page, **query).button if not button.disabled]
        assert [button.label for button in buttons if button.label.startswith(WRITES)] == [], page


@pytest.mark.parametrize("page", [{"page": "run"}, {"page": "candidate", "candidate": "c001"}])
def test_a_question_left_over_from_a_run_that_has_ended_is_closed_and_not_acted_on(
    home: Path, open_page: Open, page: dict[str, str]
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    asked = folder.commands_file.read_bytes()
    app = open_page(**page, run="r1")
    app.session_state["open_dialog"] = Opened(Dialog.BASE, "r1", "c001", is_confirmed=True)
    assert not app.run().exception
    assert "open_dialog" not in app.session_state
    assert folder.commands_file.read_bytes() == asked


def kernels(folder: RunFolder) -> list[str]:
    return ids(folder, "CandidateCreated")


def ids(folder: RunFolder, kind: str) -> list[str]:
    found = map(json.loads, folder.journal_file.read_text().splitlines())
    return [line["event"]["candidate_id"] for line in found if line["kind"] == kind]


def test_a_profile_with_awkward_kernel_names_renders(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=3)
    text = folder.journal_file.read_text().replace("kernel<128,128,8>", "void __launch__<int __x>")
    folder.journal_file.write_text(text)
    for name in kernels(folder):
        app = open_page("candidate", run="r1", candidate=name)
        app.session_state["tab"] = "Profile"
        assert not app.run().exception
