"""Where a person answers, approves, and sees what models make of it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pages.parts import index, method, wording
from pages.parts.run import first_kernel
from pages.parts.status import outcome, waiting_strip
from storage import codec
from storage.index import queries
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run import liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.journal import Journal
from storage.run.settings import LEFT, RunState, StepKind
from storage.run.steering import commands
from storage.run.steering.command_arguments import Answer, Fallback
from storage.run.steering.verbs import Command, CommandKind
from tests import samples
from tests.pages.conftest import Open, everything, protos, words


def begin(home: Path, *events: ev.Event, depths: int = 3) -> RunFolder:
    folder = samples.write_run(home / "runs", "r1", depths=depths, ending="stopped")
    journal = Journal(folder.journal_file)
    journal.append(ev.EngineStarted(1, True))
    for event in (*events, ev.StateChanged(RunState.WAITING, "you")):
        journal.append(event)
    journal.close()
    liveness.hold(folder)
    return folder


def question(folder: RunFolder) -> ev.QuestionAsked:
    prompt = Blobs(folder.blobs).put('[{"role": "user", "text": "Make it **faster**."}]')
    return ev.QuestionAsked(90, 0, StepKind.OPTIMISE, 3, "c001", prompt, "patch")


def tell(folder: RunFolder, *events: ev.Event) -> None:
    journal = Journal(folder.journal_file)
    for event in events:
        journal.append(event)
    journal.close()


def test_a_waiting_call_shows_its_prompt_and_sends_what_is_pasted(home: Path, open_page: Open) -> None:
    folder = begin(home)
    tell(folder, question(folder))
    app = open_page("run", run="r1")
    assert not app.exception
    assert "Your reply is needed: make one optimisation" in words(app)
    assert not {"Resume", "Pause"} & {b.label for b in app.button}, "only a reply helps"
    assert "takes line edits as JSON, SEARCH" in words(app)
    assert "Make it **faster**." in everything(app)
    next(b for b in app.button if b.label == "Send reply").click().run()
    assert not commands.read_from(folder.commands_file)[0], "an empty reply is not sent"
    app.text_area(key="draft:reply:r1:90.0").set_value("my reply")
    next(b for b in app.button if b.label == "Send reply").click().run()
    assert not app.exception
    (sent, *_) = [c for c in commands.read_from(folder.commands_file)[0] if c.kind is CommandKind.ANSWER]
    answer = Answer.parse(sent.argument)
    assert (answer.step, answer.call, Blobs(folder.blobs).get(answer.blob)) == (90, 0, "my reply")
    tell(folder, ev.RunEnded(RunState.STOPPED, "waits for a person: your reply is needed", None))
    app = open_page("run", run="r1")
    assert "Your reply is saved. **Resume run** makes the run go on with it." in words(app)
    assert "Resume run" in {b.label for b in app.button}
    assert app.text_area(key="draft:reply:r1:90.0")


def test_a_run_that_a_person_stopped_at_a_prompt_is_not_said_to_need_a_reply(home: Path, open_page: Open) -> None:
    folder = begin(home)
    tell(folder, question(folder), ev.RunEnded(RunState.STOPPED, "stopped by a person", None))
    said = words(open_page("run", run="r1"))
    assert "Stopped at this prompt: make one optimisation" in said
    assert said.count("go on") == said.count("press **Send reply**, then **Resume run**") == 1
    assert "Your reply is needed" not in said


def test_an_example_that_was_stopped_at_a_prompt_asks_nobody(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=3, ending="stopped")
    settings = replace(folder.read_settings(), is_example=True)
    folder.settings_file.unlink()
    folder.write_settings(settings)
    tell(
        folder, ev.EngineStarted(1, True), question(folder), ev.RunEnded(RunState.STOPPED, "stopped by a person", None)
    )
    app = open_page("run", run="r1")
    assert not app.exception
    assert "Make one optimisation" not in words(app)


def test_a_refused_answer_comes_back_with_the_report_even_to_a_new_visitor(home: Path, open_page: Open) -> None:
    folder = begin(home)
    refused = Command("x1", CommandKind.ANSWER, str(Answer(90, 0, Blobs(folder.blobs).put("half a reply"))), "me", 1.0)
    tell(folder, question(folder), ev.CommandAcknowledged(refused, 90), ev.CommandRefused("x1", 90, "nothing in it"))
    with open(folder.commands_file, "a") as file:
        file.write(codec.dumps(refused) + "\n")
    app = open_page("run", run="r1")
    assert not app.exception
    assert "nothing in it" in [code.value for code in app.code]
    assert app.text_area(key="draft:reply:r1:90.0").value == "half a reply"


def test_a_step_that_waits_is_told_and_approved_with_a_hint(home: Path, open_page: Open) -> None:
    folder = begin(home, ev.ApprovalAsked(90, StepKind.COMPILE, 3, "c001", Fallback.NO, 60.0))
    app = open_page("run", run="r1")
    assert not app.exception
    assert "Approve this step?" in words(app)
    assert "rejected at about" in words(app)
    app.text_area(key="draft:hint:r1:90").set_value("mind the tail")
    next(b for b in app.button if b.label == "Approve").click().run()
    sent = commands.read_from(folder.commands_file)[0][-2:]
    assert [(c.kind, c.argument) for c in sent] == [(CommandKind.HINT, "mind the tail"), (CommandKind.APPROVE, "90")]


@pytest.mark.parametrize("model", ["manual", "gpt-5"])
def test_a_run_whose_replies_a_person_writes_calls_nobody_the_model(home: Path, open_page: Open, model: str) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=3, ending="running")
    settings = replace(folder.read_settings(), model=model)
    folder.settings_file.unlink()
    folder.write_settings(settings)
    liveness.hold(folder)
    assert not open_page("run", run="r1").exception
    db = index.current()
    failed = replace(index.attempts("r1")[-1], verdict=Verdict.INCORRECT)
    bars = [bar.label for bar in outcome.time_bars(db, "r1")]
    strip = waiting_strip.of_run(db, "r1", time.time())
    doing = method.words("r1", db).calls["repair"].doing
    by_hand = queries.is_by_hand(db, "r1")
    assert strip is not None
    is_manual = model == "manual"
    assert by_hand is is_manual
    assert doing.startswith("A person is repairing" if is_manual else "The model is repairing")
    assert any(bar.startswith("Taking a person's replies, ") for bar in bars) is is_manual
    assert any(bar.startswith("Model, ") for bar in bars) is not is_manual
    assert ("the model was writing" in waiting_strip.sentence(strip)) is not is_manual
    mended = f"Kernel {failed.number} failed; {'you mend' if is_manual else 'the model mends'} it"
    assert first_kernel.headline([failed], None, by_hand) == mended


def test_a_frozen_page_of_a_run_at_work_does_not_say_that_it_is_running(home: Path, open_page: Open) -> None:
    liveness.hold(samples.write_run(home / "runs", "r1", depths=3, ending="running"))
    app = open_page("run", run="r1")

    def state() -> dict[str, str]:
        figures = next(p for p in protos(app._tree) if getattr(p, "component_name", "") == "tilewright_key_figures")
        shown: dict[str, str] = json.loads(figures.json)["state"]
        return shown

    assert state()["value"] == "running"
    next(button for button in app.button if button.label.startswith("Freeze page")).click().run()
    assert not app.exception
    assert state()["value"] == "frozen"
    assert state()["note"] == "running then, 0 of 3 depths"


def test_the_overview_says_how_many_runs_wait(home: Path, open_page: Open) -> None:
    folder = begin(home)
    assert "1 waiting for you" in words(app := open_page())
    assert "do:resume" in everything(app), "it may have been the network"
    tell(folder, question(folder))
    assert "do:resume" not in everything(open_page()), "only a reply helps"


def test_a_call_about_a_failed_kernel_says_how_that_failed_and_where_the_rest_is(home: Path, open_page: Open) -> None:
    folder = begin(home, depths=9)
    open_page("overview")
    failed = next(kernel for kernel in index.attempts("r1") if kernel.message)
    tell(folder, replace(question(folder), role=StepKind.REPAIR, candidate_id=failed.candidate_id))
    said = words(open_page("run", run="r1")).replace("\\", "")
    assert f"Kernel {failed.number}: {wording.VERDICT_NAME[failed.verdict or Verdict.PASSED]}. {failed.message}" in said


def test_a_run_left_at_its_prompt_waits_in_the_overview_and_offers_nothing_that_needs_an_engine(
    home: Path, open_page: Open
) -> None:
    folder = begin(home)
    tell(folder, question(folder), ev.RunEnded(RunState.STOPPED, f"{LEFT}write the reply to step 90", None))
    shown = everything(open_page())
    assert "1 waiting for you" in shown
    assert "write the reply to step 90" in shown
    assert "do:resume" not in shown
    assert '"waiting", "tone' in everything(open_page("run", run="r1")).replace("\\", "")


def test_the_models_page_has_a_row_per_model(home: Path, open_page: Open) -> None:
    app = open_page("models")
    assert "No model replies yet. Examples and replays do not count here." in words(app)
    samples.write_run(home / "runs", "r1", depths=4)
    app = open_page("models")
    assert not app.exception
    assert "the columns after it count steps" in words(app)


def test_a_replay_that_went_its_own_way_says_so(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=6)
    assert "left its recording" in words(open_page("run", run="r1"))
