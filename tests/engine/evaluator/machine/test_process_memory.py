"""Tensors moved in and out of a stopped process, and claims about where they lie."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
import torch

from engine.evaluator.machine import process_memory, processes
from engine.evaluator.machine.process_memory import BadClaim, MemoryRefused, Place

LIKE = torch.empty(3, 4)


@pytest.fixture
def stopped() -> Iterator[tuple[int, torch.Tensor]]:
    """A child that stopped itself, and a tensor both had before they parted."""
    tensor = torch.arange(24.0).view(4, 6)
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0 if float(tensor.sum()) == -24.0 else 1)
    processes.wait_until_halted(pid)
    yield pid, tensor
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def claim(**changed: object) -> dict[str, object]:
    return {"address": 1 << 20, "stride": [4, 1], **changed}


def test_a_strided_tensor_of_another_process_is_read_as_it_lies_there(stopped: tuple[int, torch.Tensor]) -> None:
    pid, tensor = stopped
    part = tensor[1:, ::2].t()
    place = Place.claimed({"address": part.data_ptr(), "stride": list(part.stride())}, part)
    tensor_there = process_memory.read_tensor(pid, place, part)
    assert torch.equal(tensor_there, part)
    tensor.fill_(0.0)
    assert not torch.equal(process_memory.read_tensor(pid, place, part), part)


def test_what_is_written_is_there_and_only_there(stopped: tuple[int, torch.Tensor]) -> None:
    pid, tensor = stopped
    process_memory.write(pid, tensor.data_ptr(), torch.full((4, 6), -1.0))
    back = torch.empty(4, 6)
    process_memory.read(pid, tensor.data_ptr(), back)
    assert float(back.sum()) == -24.0
    assert float(tensor.sum()) == 276.0


def test_an_address_of_nothing_is_refused_and_memory_is_known_to_be_readable(stopped: tuple[int, torch.Tensor]) -> None:
    pid, _ = stopped
    assert process_memory.is_permitted(pid)
    with pytest.raises(MemoryRefused):
        process_memory.read(pid, process_memory.LOWEST, torch.empty(1))
    with pytest.raises(BadClaim):
        process_memory.write_all(pid, ["here"], [torch.ones(1)])
    with pytest.raises(BadClaim):
        process_memory.write_all(pid, [], [torch.ones(1)])


@pytest.mark.parametrize(
    "leaf",
    [
        claim(address=None),
        claim(address=-8),
        claim(address=1 << 60),
        claim(address=1.5),
        claim(stride=None),
        claim(stride=[1]),
        claim(stride=[4, -1]),
        claim(stride=["4", 1]),
        claim(stride=[1 << 40, 1]),
    ],
)
def test_a_place_where_no_tensor_can_lie_is_no_place(leaf: dict[str, object]) -> None:
    with pytest.raises(BadClaim):
        Place.claimed(leaf, LIKE)


def test_bits_are_compared_and_not_values() -> None:
    nan = torch.tensor([float("nan"), 1.0])
    assert process_memory.is_same(nan, nan.clone())
    assert not process_memory.is_same(torch.tensor([0.0]), torch.tensor([-0.0]))
