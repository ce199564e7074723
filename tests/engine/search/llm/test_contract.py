"""What every model keeps to, whatever answers: endpoints by both protocols and by role, a recording, a person."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import CallError, ModelError, StopRequested
from engine.evaluator.sandbox import hiding
from engine.search.llm import Completion, LanguageModel, Message, OnText, Purpose
from engine.search.llm.agent import AgentModel
from engine.search.llm.command import CommandModel
from engine.search.llm.endpoint import EndpointModel
from engine.search.llm.manual import ManualModel
from engine.search.llm.opening import ModelsByRole
from engine.search.llm.recorded import NAP_S, RecordedModel
from engine.search.llm.recording import Line, read_recording, write_recording
from storage.run.models import CallFailure, ModelOptions, ModelRole, WireProtocol
from storage.run.saved_models import Program, SavedModel
from storage.run.settings import StepKind
from tests import documented
from tests.chat_server import ChatServer, fails, hangs, says, serving

PIECES = ("The first piece, ", "ünïcode 😀\r\n", "and the last one.\n")
TEXT = "".join(PIECES)
PURPOSE = Purpose(StepKind.OPTIMISE, "a" * 64, 0, depth=1)
UNKNOWN = Purpose(StepKind.REPAIR, "b" * 64, 0, depth=7)
MESSAGES = [Message("system", "s"), Message("user", "u")]
PROTOCOLS = {"chat": WireProtocol.CHAT, "responses": WireProtocol.RESPONSES}
ENDPOINTS = (*PROTOCOLS, "by role")
OTHERS = (
    "recorded",
    "manual",
    "program",
    "command",
    "agent",
)  # what asks no server: the same purpose gets the same reply
KINDS = (*ENDPOINTS, *OTHERS)


class Stage:
    """One kind of model, set up to answer PURPOSE with TEXT; `finish` and `pace` before it is opened."""

    def __init__(self, kind: str, folder: Path, server: ChatServer) -> None:
        self.kind, self.server, self.finish = kind, server, "stop"
        self.naps: list[float] = []
        self._file, self._opened = folder / "replies.jsonl", list[EndpointModel]()

    def open(self, reply_seconds: float = 0.0) -> LanguageModel:
        """The model, as a process opens it."""
        match self.kind:
            case "recorded":
                line = Line(PURPOSE.role, PURPOSE.source_hash, TEXT, PURPOSE.depth, self.finish)
                self._file.write_text(write_recording({}, [line]))
                return RecordedModel(read_recording(self._file), reply_seconds, self.naps.append)
            case "manual":
                return ManualModel({PURPOSE: TEXT}.get)
            case "program" | "command" | "agent":
                self._file.write_bytes(TEXT.encode())
                return self.program("cat", str(self._file))
            case "by role":
                return ModelsByRole(dict.fromkeys(ModelRole, self._endpoint(WireProtocol.AUTO)))
            case _:
                return self._endpoint(PROTOCOLS[self.kind])

    def program(self, *command: str) -> LanguageModel:
        """The example of docs/extending.md, or what is shipped."""
        if self.kind == "command":
            return command_model(self._file.parent, *command)
        if self.kind == "agent":
            return command_model(self._file.parent, *command, kind=AgentModel)
        model: LanguageModel = documented.module("program.py").ProgramModel(list(command))
        return model

    def break_down(self) -> None:
        """From now on nothing can be answered."""
        self.server.acts = [fails(500)]
        self._file.unlink(missing_ok=True)

    def _endpoint(self, protocol: WireProtocol) -> EndpointModel:
        self.server.acts = [says(*PIECES, finish=self.finish)]
        options = ModelOptions(model="tester", timeout_s=5.0, protocol=protocol)
        self._opened.append(EndpointModel(options, self.server.address, "sk-planted-0123456789"))
        return self._opened[-1]

    def close(self) -> None:
        for model in self._opened:
            model.close()


@pytest.fixture
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    with serving(says(TEXT)) as server:
        stage = Stage(request.param, tmp_path, server)
        yield stage
        stage.close()


def command_model(folder: Path, *command: str, kind: type[CommandModel] = CommandModel) -> CommandModel:
    """A program behind what it is started behind in a run."""
    (folder / "home").mkdir(exist_ok=True)

    def around(failed: int, scratch: Path) -> list[str]:
        return hiding.guarded(os.getpid(), failed, scratch, [folder / "home"])

    return kind(SavedModel("mine", program=Program(command)), around, ())


def every(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stage", kinds, indirect=True)


def answer(model: LanguageModel, on_text: OnText = lambda piece: None, purpose: Purpose = PURPOSE) -> Completion:
    return model.complete(MESSAGES, purpose, on_text)


@every(*KINDS)
def test_one_call_is_one_request_and_its_pieces_joined_are_the_text(stage: Stage) -> None:
    heard: list[str] = []
    model = stage.open()
    done = answer(model, heard.append)
    assert done.text == "".join(heard) == TEXT
    assert (done.model, done.finish_reason) == (model.name, "stop")
    assert done.seconds >= 0
    assert len(stage.server.requests) == (stage.kind in ENDPOINTS)


@every(*ENDPOINTS, "recorded")
def test_a_reply_that_was_cut_off_says_length(stage: Stage) -> None:
    stage.finish = "length"
    done = answer(stage.open())
    assert (done.text, done.finish_reason) == (TEXT, "length")


@every(*KINDS)
def test_what_the_listener_raises_breaks_the_call_off_and_the_model_answers_again(stage: Stage) -> None:
    model = stage.open()
    own: list[Exception] = [StopRequested("stop"), KeyError("k"), CallError(CallFailure.EMPTY, "mine"), TimeoutError()]
    for error in own:
        for is_deaf in (lambda piece: True, bool):  # at the first word, also an empty one; at the first piece
            with pytest.raises(type(error)) as caught:
                answer(model, raising(error, is_deaf))
            assert caught.value is error
    assert answer(model).text == TEXT


def raising(error: Exception, is_due: Callable[[str], bool]) -> OnText:
    def on_text(piece: str) -> None:
        if is_due(piece):
            raise error

    return on_text


@every(*ENDPOINTS)
def test_a_silent_endpoint_can_be_broken_off(stage: Stage) -> None:
    model, told = stage.open(), StopRequested("stop")
    for act in (hangs(), hangs(*PIECES)):
        heard: list[str] = []

        def on_text(piece: str, heard: list[str] = heard) -> None:
            heard.append(piece)
            if heard[-2:] == ["", ""] and stage.server.began.is_set():
                raise told

        stage.server.acts = [act]
        stage.server.began.clear()
        with pytest.raises(StopRequested):
            answer(model, on_text)
        assert TEXT.startswith("".join(heard))


@every("recorded")
def test_a_slow_replay_can_be_broken_off_between_its_pieces(stage: Stage) -> None:
    told = StopRequested("stop")
    heard: list[str] = []
    assert answer(stage.open(reply_seconds=60.0), heard.append).text == "".join(heard) == TEXT
    assert sum(stage.naps) > 30.0
    assert max(stage.naps) <= NAP_S
    assert heard.count("") == len(stage.naps)
    with pytest.raises(StopRequested):
        answer(stage.open(reply_seconds=60.0), raising(told, lambda piece: not piece))


@every("program", "command")
def test_a_silent_program_can_be_broken_off(stage: Stage) -> None:
    told = StopRequested("stop")
    with pytest.raises(StopRequested):
        answer(stage.program("sleep", "60"), raising(told, lambda piece: True))


@every("program", "command")
def test_what_a_program_has_started_ends_with_it_when_it_is_broken_off(stage: Stage, tmp_path: Path) -> None:
    told, held = StopRequested("stop"), tmp_path / "held"
    command = f"exec 9>{held}; flock 9; sleep 60 & echo begun; wait"  # the child holds the lock for as long as it lives
    with pytest.raises(StopRequested):
        answer(stage.program("sh", "-c", command), raising(told, lambda piece: "begun" in piece))
    subprocess.run(["flock", "--timeout", "5", str(held), "true"], check=True)


@every("program")
def test_the_program_that_the_guide_shows_is_one(stage: Stage, tmp_path: Path) -> None:
    program = tmp_path / "answer.py"
    program.write_text("#!" + documented.TEXT.partition("```python\n#!")[2].partition("```")[0])
    program.chmod(0o755)
    assert answer(stage.program(str(program))).text == f"Here the reply to: {MESSAGES[-1].text}\n"


@every(*KINDS)
def test_what_cannot_be_answered_is_a_model_error(stage: Stage) -> None:
    model = stage.open()
    stage.break_down()
    heard: list[str] = []
    with pytest.raises(ModelError) as caught:
        answer(model, heard.append, UNKNOWN)
    assert "".join(heard) == ""
    assert str(caught.value)
    assert len(stage.server.requests) == (stage.kind in ENDPOINTS)


@every(*KINDS)
def test_terms_stay_the_same_and_only_what_is_free_has_none(stage: Stage) -> None:
    model, later = stage.open(), stage.open()
    for purpose in (PURPOSE, UNKNOWN, replace(PURPOSE, output_limit=77, wants_edits=True)):
        assert model.terms(purpose) == model.terms(purpose) == later.terms(purpose)
    terms = model.terms(PURPOSE)
    done = answer(model)
    assert model.terms(PURPOSE) == terms
    if terms is None:
        assert (done.cost_usd, done.input_tokens, done.output_tokens) == (0.0, 0, 0)
        assert not stage.server.requests
    else:
        assert (terms.model, done.cost_usd) == (done.model, None), "a price that nobody set is unknown, not zero"
        assert 0 < terms.reply_room < terms.window


@every(*OTHERS)
def test_the_same_purpose_gets_the_same_reply_in_a_later_process_too(stage: Stage) -> None:
    first, later = stage.open(), stage.open()
    assert answer(first).text == answer(first).text == answer(later).text == TEXT
