"""Lines between evaluator and worker, and shared memory that cannot be pulled away."""

from __future__ import annotations

import os

import pytest
import torch

from engine.evaluator.machine.shared_tensors import SharedTensors, TensorSpec
from engine.evaluator.processes import channel
from engine.evaluator.processes.channel import BadLine, ChannelClosed


def test_messages_arrive_whole_and_the_end_is_noticed() -> None:
    ours, theirs = channel.pair()
    ours.send({"ask": "go", "n": 1})
    assert theirs.receive() == {"ask": "go", "n": 1}
    assert not ours.has_surplus
    theirs.send({"ns": 3})
    assert ours.has_surplus
    assert ours.receive() == {"ns": 3}
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.receive()
    with pytest.raises(ChannelClosed):
        ours.send({"ask": "again"})
    ours.close()


@pytest.mark.parametrize("line", [b"[1]\n", b"not json\n", b"\xff\xfe\n"])
def test_an_answer_that_is_no_object_is_refused(line: bytes) -> None:
    ours, theirs = channel.pair()
    os.write(theirs.write_to, line)
    with pytest.raises(BadLine):
        ours.receive()
    ours.close()
    theirs.close()


def test_a_sized_arena_cannot_be_shrunk_under_its_reader() -> None:
    shared = SharedTensors("test")
    spec = TensorSpec.of(torch.empty(100, 3).T)
    shared.size_to({"inputs": [spec], "own": [spec]})
    shared["inputs"][0].fill_(7.0)
    shared["own"][0].fill_(9.0)
    with pytest.raises(PermissionError):
        os.ftruncate(shared.file, 0)
    again = SharedTensors.__new__(SharedTensors)
    again.file, again._groups = shared.file, {}
    again.map({"inputs": [spec], "own": [spec]})
    assert float(again["inputs"][0].sum()) == 2100.0
    assert again["own"][0].shape == (3, 100)
