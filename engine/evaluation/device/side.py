"""One side of a timing on the GPU. The contents get into the worker's memory while it stands still, and out again.

Compares and decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from engine.evaluation.clock import Call
from engine.evaluation.failures import Failure, TimedCallFailed
from engine.evaluation.poison import Poison
from engine.evaluation.side import (
    Ask,
    Preparation,
    Side,
    Taken,
    Tensors,
    Verify,
    nanoseconds,
    unusable,
)
from engine.evaluation.worker import Worker
from engine.machine.device_memory import DeviceMemory
from engine.machine.process_memory import BadClaim
from engine.machine.shared_tensors import SharedTensors
from storage.records import Verdict

TURN_NS = 10_000_000
LONGEST_TURN_NS = 100_000_000
# What a question costs beside the call; known well enough to choose how many calls make a turn.
QUESTION_NS = 500_000
MOST_SLOTS = 32
SLOTS_BYTES = 4 << 30


class DeviceSide(Side):
    """A turn is one question: the worker calls its model on every slot's inputs, and the judge times them together."""

    def __init__(self, worker: Worker, ask: Ask, shared: SharedTensors, verify: Verify) -> None:
        super().__init__(worker, ask, shared, verify)
        self._memory = DeviceMemory()
        self._slots = 1

    def burst(self, quicker_ns: int, slower_ns: int) -> int:
        """Calls of a turn: enough for the judge's clock, as far as memory and patience reach."""
        one = sum(tensor.nbytes for group in ("inputs", "own") for tensor in self.shared[group])
        call_ns = max(1, quicker_ns - QUESTION_NS)
        patience = LONGEST_TURN_NS // max(1, slower_ns)
        return max(1, min(TURN_NS // call_ns, MOST_SLOTS, SLOTS_BYTES // max(1, one), patience))

    def turn(self, preparation: Preparation, contents: Sequence[Tensors], order: Sequence[int]) -> list[Taken]:
        """Every content in a slot of its own; each call gets an equal share of the turn's time."""
        self._slots = len(contents)
        buffers = self._filled(preparation, [contents[number] for number in order])
        call, answer = self._timed()
        taken: dict[int, Taken] = {}
        for number, told, lent in zip(order, self._calls(answer), buffers, strict=True):
            if failure := self._verify(told):
                raise TimedCallFailed("outputs of timed calls", failure)
            taken[number] = Taken(call, self._outputs(told), lent)
        self._memory.forget()
        return [taken[number] for number in range(len(contents))]

    def twice(self, preparation: Preparation, contents: Sequence[Tensors]) -> tuple[Call, Call]:
        """A turn, and the same turn again on inputs that nobody has touched since."""
        first = self.turn(preparation, contents, range(len(contents)))[0].call
        return first, self._timed()[0]

    def _timed(self) -> tuple[Call, Mapping[str, Any]]:
        torch.cuda.synchronize()
        before = time.perf_counter_ns()
        self.worker.resume()
        answer = self._ask("go")
        after = time.perf_counter_ns()
        self.halt()
        halt_ns = time.perf_counter_ns() - after
        claimed = nanoseconds(answer.get("ns"))
        calls = self._slots
        return Call((after - before) // calls, max(1, claimed // calls), halt_ns, sharing=calls), answer

    def _filled(self, preparation: Preparation, contents: Sequence[Tensors]) -> list[Tensors]:
        """The worker's buffers, by slot, with the contents in them."""
        self.worker.resume()
        told = self._ask(
            "load", leaves=preparation.leaves, poison=str(Poison.NAN), seed=preparation.seed, slots=self._slots
        )
        self.halt()
        claims = told.get("buffers")
        try:
            if not isinstance(claims, list) or len(claims) != len(contents):
                raise BadClaim("it has another number of input buffers")
            return [self._written(claim, fresh) for claim, fresh in zip(claims, contents, strict=True)]
        except BadClaim as error:
            raise unusable("its input buffers", error) from error

    def _written(self, claims: Any, fresh: Tensors) -> Tensors:
        if not isinstance(claims, list) or len(claims) != len(fresh):
            raise BadClaim("it has another number of input buffers")
        buffers = [
            self._memory.view(claim, tensor, list(tensor.stride())) if tensor.numel() else tensor
            for claim, tensor in zip(claims, fresh, strict=True)
        ]
        for buffer, tensor in zip(buffers, fresh, strict=True):
            buffer.copy_(tensor)
        return buffers

    def _calls(self, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        calls = answer.get("calls")
        if not isinstance(calls, list) or len(calls) != self._slots or not all(isinstance(one, dict) for one in calls):
            raise TimedCallFailed(
                "outputs of timed calls", Failure(Verdict.REFUSED, "the worker's answer to a timed turn is malformed")
            )
        return calls

    def _outputs(self, told: Mapping[str, Any]) -> Tensors:
        try:
            return [
                self._memory.view(leaf.get("address"), like, leaf.get("stride")) if like.numel() else like
                for leaf, like in zip(told["outputs"], self.shared["own"], strict=True)
            ]
        except BadClaim as error:
            raise unusable("an output", error) from error
