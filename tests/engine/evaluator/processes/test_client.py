"""How the fork server of evaluations is started and ended."""

from __future__ import annotations

import os
from contextlib import closing

import pytest

from engine.evaluator.machine.stopwatch import Stopwatch
from engine.evaluator.processes.client import EvaluatorClient
from storage.results.timeline import Part

pytestmark = pytest.mark.usefixtures("own_server")


def pid_of(client: EvaluatorClient) -> int:
    assert client._process is not None
    return client._process.pid


def test_the_fork_server_that_was_begun_is_the_one_that_answers() -> None:
    spent = Stopwatch()
    with closing(EvaluatorClient(1, spent=spent)) as client:
        client.begin()
        begun = pid_of(client)
        client.begin()
        assert spent.parts == {}, "nothing was waited for"
        client.start()
        assert pid_of(client) == begun
        assert spent.parts[Part.STARTING] > 0
        waited_s = sum(spent.parts.values())
        client.start()
        assert pid_of(client) == begun
        assert sum(spent.parts.values()) == waited_s, "it is ready"


def test_a_fork_server_that_is_not_ready_is_ended_at_once_and_one_that_was_killed_is_replaced() -> None:
    with closing(EvaluatorClient(1)) as client:
        client.begin()
        left = pid_of(client)
        client.close()
        with pytest.raises(ProcessLookupError):
            os.kill(left, 0)
        client.begin()
        killed = pid_of(client)
        os.kill(killed, 9)
        os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
        client.start()
        assert pid_of(client) != killed
