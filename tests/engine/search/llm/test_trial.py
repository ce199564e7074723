"""One small question to a model: what counts as an answer, and when it is not asked again."""

from __future__ import annotations

import socket
import time

import pytest

from engine.search.llm import trial
from engine.search.llm.endpoint import EndpointModel
from engine.search.llm.trial import Trial
from storage.run.models import ModelOptions
from storage.run.saved_models import SavedModel
from tests.chat_server import Act, fails, says, serving


def tried(address: str) -> Trial:
    def no_program(*_: object) -> EndpointModel:
        raise AssertionError

    entry = SavedModel("work", ModelOptions(model="m", base_url=address))
    return trial.try_model("work", (), EndpointModel, no_program, entry=entry)


def asked(*acts: Act) -> Trial:
    with serving(*acts) as server:
        return tried(server.address)


@pytest.mark.parametrize("reply", ["ready", "Ready.", " **READY**\n", "“ready”"])
def test_the_word_that_was_asked_for_is_known_whatever_its_case_and_punctuation(home: object, reply: str) -> None:
    assert asked(says(reply)).doubt == ""


@pytest.mark.parametrize("reply", ["Sure! I am ready to help.", "hello from dummy", "already"])
def test_another_answer_is_told_apart_from_the_word_that_was_asked_for(home: object, reply: str) -> None:
    answer = asked(says(reply))
    assert (answer.failure, answer.reply) == ("", reply)
    assert answer.doubt == "that is not the word it was asked for, “ready”: it may not follow instructions"
    assert trial.sentence(answer).endswith(answer.doubt)


def test_where_nobody_listens_is_told_at_once_and_a_busy_endpoint_is_asked_again(
    home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, and listening to nobody
        refused = tried(f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    unknown = tried("http://no-such-host.invalid/v1")
    for failure in (refused.failure, unknown.failure):
        assert failure.startswith("the endpoint cannot be reached: ")
    assert pauses == []
    assert asked(fails(503, "loading the model"), says("ready")).reply == "ready"
    assert len(pauses) == 1
