"""A run whose model gave no kernel: why it ended, what the model said, what can be done next."""

from __future__ import annotations

from pathlib import Path

from engine import supervisor
from storage.run import events as ev
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.saved_models import Program, SavedModel, keep
from storage.run.settings import RunState, StepKind
from tests import samples
from tests.pages.conftest import Open, everything, words


def without_kernel(home: Path, *replies: str, reason: str = "the model gave no kernel in 2 calls") -> str:
    """A run that asked so often for a first kernel and got these replies, of which no tokens and no price are known."""
    keep(SavedModel("mine", program=Program(("cat",))))
    settings = supervisor.new_settings("softmax", model="mine")
    folder = RunFolder(home / "runs" / settings.run_id)
    folder.write_settings(settings)
    blobs, journal = Blobs(folder.blobs), Journal(folder.journal_file)
    prompt, kind = blobs.put('[{"role": "user", "text": "Write a kernel for softmax."}]'), StepKind.SYNTHESISE
    journal.append(ev.EngineStarted(1, False))
    for step, reply in enumerate(replies, 1):
        said = blobs.put(reply)
        journal.append(ev.StepStarted(step, kind, 0, None))
        journal.append(
            ev.ModelCalled(step, 0, kind, 0, None, "mine", prompt, said, None, None, 0, 0, None, 1.0, "stop")
        )
        journal.append(ev.StepFinished(step, kind, 1.0, "patch_failed"))
    journal.append(ev.RunEnded(RunState.FAILED, reason, None))
    journal.close()
    return settings.run_id


def test_the_page_says_what_the_model_replied_shows_it_with_its_prompt_and_offers_another_model(
    home: Path, open_page: Open
) -> None:
    run_id = without_kernel(home, "ready", "ready")
    app = open_page("run", run=run_id)
    said = words(app).replace("\\", "")
    assert "**The model gave no kernel in 2 calls:** it replied “ready” each time." in said
    assert "How many tokens 2 calls took was not told" in said
    shown = everything(app)
    assert "Write a kernel for softmax." in shown
    assert "patch_failed" not in shown
    assert "Try another model" in shown
    assert not {"Resume run", "Go back or fork", "Edit a kernel by hand", "Raise limits and resume"} & {
        button.label for button in app.button
    }
    assert "tokens not told" in shown
    fresh = open_page("new_run", like=run_id, other_model="1")
    assert fresh.selectbox(key="model").value == "recorded"
    assert "Another model is chosen than mine" in words(fresh)


def test_different_replies_are_told_by_the_last_and_the_list_of_runs_has_the_reason(
    home: Path, open_page: Open
) -> None:
    run_id = without_kernel(home, "first I think", "")
    said = words(open_page("run", run=run_id)).replace("\\", "")
    assert "**The model gave no kernel in 2 calls:** last it replied nothing." in said
    assert "the model gave no kernel in 2 calls" in everything(open_page())


def test_replies_that_could_not_be_used_stand_below_the_kernels_of_a_run_that_has_some(
    home: Path, open_page: Open
) -> None:
    samples.write_run(home / "runs", "r1", depths=8)
    app = open_page("run", run="r1")
    assert "Replies without a usable kernel" in words(app)
    assert "Try another model" not in everything(app)
