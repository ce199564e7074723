"""One side of a timing: a worker that runs only while it is asked, and gets its inputs while it stands still.

Both sides are asked the same questions in the same order, in every call of a session. Compares and decides nothing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.evaluator.checks.candidate_failures import Failure, TimedCallFailed
from engine.evaluator.checks.clock import Call, TracedCall
from engine.evaluator.checks.launches import Trace
from engine.evaluator.checks.poison import Poison
from engine.evaluator.machine import process_memory, processes
from engine.evaluator.machine.device_memory import DeviceMemory
from engine.evaluator.machine.process_memory import BadClaim, MemoryRefused, Place
from engine.evaluator.machine.shared_tensors import SharedTensors, TensorSpec, private_copy, put
from engine.evaluator.processes.sampled import Sampled
from engine.evaluator.processes.worker import Worker
from storage.results.vocabulary import Verdict

LONGEST_NS = 10**13
SHORT_NS = 1_200_000
BURST = 8

Ask = Callable[..., dict[str, Any]]
Verify = Callable[[Mapping[str, Any]], Failure | None]
Tensors = Sequence[torch.Tensor]
TURN_NS = 10_000_000
LONGEST_TURN_NS = 100_000_000
# What a question costs beside the call; known well enough to choose how many calls make a turn.
QUESTION_NS = 500_000
MOST_SLOTS = 32
SLOTS_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Taken:
    """One call: its times, its outputs, and what the input buffers held afterwards."""

    call: Call
    outputs: Tensors
    inputs: Tensors


@dataclass(frozen=True, slots=True)
class Preparation:
    """The question before each call: what `load` is asked, the same every time."""

    leaves: Mapping[str, Any]
    seed: int


class TimedWorker:
    """Inputs go in, and outputs come out, through the stopped worker's memory.

    The contents are not in the worker's reach before its clock runs, and nothing can finish after it has been stopped.
    """

    def __init__(
        self, worker: Worker, ask: Ask, shared: SharedTensors, verify: Verify, sampled: Sampled | None = None
    ) -> None:
        self.worker = worker
        self.shared = shared
        self._sampled = sampled
        self.is_traced = False
        """Whether what the next turn runs is recorded on the GPU as well."""
        self._ask = ask
        self._verify = verify

    def call(self, preparation: Preparation, fresh: Tensors) -> Taken:
        """One timed call on fresh contents. The worker stands still before and after.

        Raises:
            TimedCallFailed: what it says about its outputs is wrong, or cannot be.
        """
        reply = self._load(preparation, fresh)
        call, answer = self._timed()
        if failure := self._verify(answer):
            raise TimedCallFailed("outputs of timed calls", failure)
        outputs, inputs = self._collected(answer, reply, fresh)
        return Taken(call, outputs, inputs)

    def burst(self, quicker_ns: int, slower_ns: int) -> int:
        """Calls of a turn, from the least that a call of the quicker and of the slower side takes."""
        return BURST if slower_ns < SHORT_NS else 1

    def turn(self, preparation: Preparation, contents: Sequence[Tensors], order: Sequence[int]) -> list[Taken]:
        """A call on each of the contents, in that order; the results in the contents' order."""
        taken = {number: self.call(preparation, contents[number]) for number in order}
        return [taken[number] for number in range(len(contents))]

    def twice(self, preparation: Preparation, contents: Sequence[Tensors]) -> tuple[Call, Call]:
        """A call, and the same call once more on inputs that nobody has touched since."""
        return self.call(preparation, contents[0]).call, self.again()

    def again(self) -> Call:
        """The call once more, on what the input buffers hold."""
        return self._timed()[0]

    def between(self, question: str, **arguments: Any) -> Mapping[str, Any]:
        """The reply to a question between two turns, which is not timed."""
        self.worker.resume()
        reply = self._ask(question, **arguments)
        self._note(reply)
        self.halt()
        return reply

    def _note(self, reply: Mapping[str, Any]) -> None:
        """What the turn before ran is told with the next answer; on the host nothing of it is needed."""

    def rest(self) -> None:
        """The last question: what the last call ran is told with its answer."""
        self.worker.resume()
        self._ask("rest")
        self.halt()

    def _timed(self) -> tuple[Call, Mapping[str, Any]]:
        pid = self.worker.inner_pid
        waited = processes.waited_ns(pid)
        places = processes.spread(pid)
        before = time.perf_counter_ns()
        self.worker.resume()
        processes.release(places)
        answer = self._ask("go")
        after = time.perf_counter_ns()
        self.halt()
        halt_ns = time.perf_counter_ns() - after
        waited_ns = max(0, processes.waited_ns(pid) - waited)
        if self._sampled is not None:
            self._sampled.take(before, after + halt_ns)
        return Call(after - before, nanoseconds(answer.get("ns")), halt_ns, waited_ns), answer

    def halt(self) -> None:
        """Stop the worker's whole tree and wait until its threads stand still.

        Raises:
            TimedCallFailed: it runs on.
        """
        self.worker.stop()
        try:
            processes.wait_until_halted(self.worker.inner_pid)
        except processes.NotHalted as error:
            raise TimedCallFailed("nothing finishes later", Failure(Verdict.REFUSED, str(error))) from error

    def _load(self, preparation: Preparation, fresh: Tensors) -> Mapping[str, Any]:
        reply = self._loaded(preparation)
        try:
            addresses = reply.get("buffers")
            process_memory.write_all(self.worker.inner_pid, addresses if isinstance(addresses, list) else [], fresh)
        except (BadClaim, MemoryRefused) as error:
            raise unusable("its input buffers", error) from error
        return reply

    def _loaded(self, preparation: Preparation) -> Mapping[str, Any]:
        self.worker.resume()
        reply = self._ask("load", leaves=preparation.leaves, poison=str(Poison.NAN), seed=preparation.seed)
        self.halt()
        return reply

    def _collected(
        self, answer: Mapping[str, Any], reply: Mapping[str, Any], fresh: Tensors
    ) -> tuple[Tensors, Tensors]:
        pid = self.worker.inner_pid
        pairs = zip(answer["outputs"], self.shared["own"], strict=True)
        try:
            outputs = [
                process_memory.read_tensor(pid, Place.claimed(leaf, like), like) if like.numel() else like
                for leaf, like in pairs
            ]
            inputs = [private_copy(TensorSpec.of(tensor), "cpu") for tensor in fresh]
            for address, tensor in zip(reply["buffers"], inputs, strict=True):
                if tensor.numel():
                    process_memory.read(pid, address, tensor)
        except (BadClaim, MemoryRefused) as error:
            raise unusable("an output", error) from error
        return outputs, inputs


class StoringTimedWorker(TimedWorker):
    """Where the system lets no process read another: the worker copies, and the evaluator has to believe when."""

    def _load(self, preparation: Preparation, fresh: Tensors) -> Mapping[str, Any]:
        for shared, tensor in zip(self.shared["inputs"], fresh, strict=True):
            shared.copy_(tensor)
        return self._loaded(preparation)

    def _collected(
        self, answer: Mapping[str, Any], reply: Mapping[str, Any], fresh: Tensors
    ) -> tuple[Tensors, Tensors]:
        self.worker.resume()
        stored = self._ask("store", hold=True, copies=True)
        self.halt()
        if failure := self._verify(stored):
            raise TimedCallFailed("outputs of timed calls", failure)
        return [tensor.clone() for tensor in self.shared["own"]], [tensor.clone() for tensor in self.shared["inputs"]]


def unusable(what: str, error: Exception) -> TimedCallFailed:
    """A claim about an address that cannot be."""
    message = f"the candidate's process told an address of {what} that cannot be used: {error}"
    return TimedCallFailed("outputs of timed calls", Failure(Verdict.REFUSED, message))


def _count(claimed: Any) -> int:
    return claimed if isinstance(claimed, int) and 0 <= claimed < LONGEST_NS else 0


def nanoseconds(claimed: Any) -> int:
    """A worker's figure, or a refusal: zero and nonsense are no times."""
    if isinstance(claimed, int) and 0 < claimed < LONGEST_NS and math.isfinite(claimed):
        return claimed
    message = f"the candidate's process reported an impossible time of {str(claimed)[:40]} ns for a call"
    raise TimedCallFailed("clock", Failure(Verdict.REFUSED, message))


class DeviceTimedWorker(TimedWorker):
    """A turn is one question: the worker calls its model on each slot's inputs, the evaluator times them together."""

    def __init__(self, worker: Worker, ask: Ask, shared: SharedTensors, verify: Verify) -> None:
        super().__init__(worker, ask, shared, verify)
        self._memory = DeviceMemory()
        self._slots = 1
        self._open: Call | None = None
        self.traced: list[TracedCall] = []
        """The recorded turns."""
        self.host_ns: list[int] = []
        """What each turn's calls took on the host, each; a claim."""

    def burst(self, quicker_ns: int, slower_ns: int) -> int:
        """Calls of a turn: enough for the evaluator's clock, as far as memory and patience reach."""
        call_bytes = sum(tensor.nbytes for group in ("inputs", "own") for tensor in self.shared[group])
        call_ns = max(1, quicker_ns - QUESTION_NS)
        patience = LONGEST_TURN_NS // max(1, slower_ns)
        return max(1, min(TURN_NS // call_ns, MOST_SLOTS, SLOTS_BYTES // max(1, call_bytes), patience))

    def turn(self, preparation: Preparation, contents: Sequence[Tensors], order: Sequence[int]) -> list[Taken]:
        """Every content in a slot of its own; each call gets an equal share of the turn's time."""
        buffers = self._filled(preparation, [contents[number] for number in order])
        call, answer = self._timed()
        self._open = call if self.is_traced else None
        self.host_ns.append(_count(answer.get("host_ns")) // self._slots)
        taken: dict[int, Taken] = {}
        for number, reply, lent in zip(order, self._calls(answer), buffers, strict=True):
            if failure := self._verify(reply):
                raise TimedCallFailed("outputs of timed calls", failure)
            taken[number] = Taken(call, self._outputs(reply), lent)
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
        reply = self._ask(
            "load",
            leaves=preparation.leaves,
            poison=str(Poison.NAN),
            seed=preparation.seed,
            traced=self.is_traced,
            slots=len(contents),
        )
        self.halt()
        self._note(reply)
        self._slots = len(contents)
        claims = reply.get("buffers")
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
            put(buffer, tensor)
        return buffers

    def _note(self, reply: Mapping[str, Any]) -> None:
        """What the turn before ran on the device is told with the next answer."""
        call, self._open = self._open, None
        if call is None:
            return
        trace = Trace.read(reply.get("seen"))
        kernels_ns, launches = trace.nanoseconds / self._slots, trace.launches / self._slots
        self.traced.append(TracedCall(call, trace.attached, kernels_ns, launches, trace.calls, trace.asks_the_host))

    def _calls(self, answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        calls = answer.get("calls")
        if (
            not isinstance(calls, list)
            or len(calls) != self._slots
            or not all(isinstance(call, dict) for call in calls)
        ):
            raise TimedCallFailed(
                "outputs of timed calls", Failure(Verdict.REFUSED, "the worker's answer to a timed turn is malformed")
            )
        return calls

    def _outputs(self, reply: Mapping[str, Any]) -> Tensors:
        try:
            return [
                self._memory.view(leaf.get("address"), like, leaf.get("stride")) if like.numel() else like
                for leaf, like in zip(reply["outputs"], self.shared["own"], strict=True)
            ]
        except BadClaim as error:
            raise unusable("an output", error) from error
