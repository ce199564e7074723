"""What is told of a kernel's deployment, asked of a candidate's worker after all verdicts: memory of a call, whether it
follows the current stream, whether it can be captured and replayed. Decides no verdict: what fails is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from engine.evaluator.checks import candidate_failures, comparison, float8, poison, tolerance
from engine.evaluator.checks.candidate_failures import CandidateFailed, Failure, WorkerEnded
from engine.evaluator.checks.poison import Poison
from engine.evaluator.checks.trials import Style
from engine.evaluator.processes.worker_pair import WorkerPair, call_candidate
from storage.results.deployment import UNCAPTURED, CallMemory, Deployment, Trait
from storage.results.timeline import Part

CALLS = 4  # to see what stays from call to call
# Bytes that the C library has handed out after the first calls, and by each further one: what Python and our own
# questions leave behind measures up to 37,000 and 160. What PyTorch's allocator says of a GPU is exact.
NOISE = 64 << 10, 1 << 10
BOTH_PASSES = "only a forward is looked at, and here a call is both passes"
OTHERWISE = "replayed with other inputs it gives another answer than a call by itself"
ELSEWHERE = "; its work is launched on another stream than the current one, so that the graph does not hold it"
NOT_PERMITTED = (
    "its call does what a capture does not permit: it waits for the device, copies to the host, or takes memory from "
    "the driver instead of PyTorch's allocator"
)
_REASONS = (
    ("stream is capturing", NOT_PERMITTED),
    ("previous error during capture", NOT_PERMITTED),
    ("legacy stream", "its work is launched on the legacy default stream, not on the current one"),
    ("unjoined", "it starts work on a stream of its own that does not join the current one again"),
    ("uncaptured work", "its work waits for that of another stream, which is not captured"),
)
_LARGEST = 1 << 60


class Deploying:
    """Asks one worker whose model is made and has not been called yet."""

    def __init__(self, workers: WorkerPair) -> None:
        self._workers = workers
        self._seeds = [int.from_bytes(os.urandom(6), "little") for _ in range(2)]
        self._dead: Failure | None = None

    def run(self) -> Deployment:
        """Memory first: what breaks a capture may break the process."""
        workers = self._workers
        if workers.request.policy.backward:
            return Deployment(Trait.NOT_TRIED, BOTH_PASSES, unseen=BOTH_PASSES)
        seen = self._tried(self._memory)
        memory, unseen = (None, seen.message) if isinstance(seen, Failure) else (seen, "")
        if workers.device == "cpu":
            return Deployment(Trait.NOT_TRIED, UNCAPTURED, memory=memory, unseen=unseen)
        answers = self._tried(self._answers)
        if isinstance(answers, str | Failure):
            why = answers if isinstance(answers, str) else answers.message
            return Deployment(Trait.NOT_TRIED, why, memory=memory, unseen=unseen)
        followed = self._tried(lambda: self._follows(answers))
        stream = Trait.NOT_TRIED if isinstance(followed, Failure) else followed
        capture, why = self._captured(answers, stream)
        return Deployment(capture, why, stream, memory, unseen)

    def _tried(self, act: Callable[[], Any]) -> Any:
        """What it gives, or why the candidate gave nothing. A process that was ended is asked no more."""
        try:
            return self._dead or act()
        except CandidateFailed as error:
            return candidate_failures.of_candidate(error)
        except WorkerEnded as error:
            self._dead = candidate_failures.of_death(error, self._workers.stage)
            return self._dead

    def _memory(self) -> CallMemory:
        self._load(self._make(0))
        told = [self._ask("kept", "a call") for _ in range(CALLS)]
        seen = self._ask("memory", "a call")
        taken, allocations, peak = (max(0, _number(seen, name)) for name in ("taken", "allocations", "peak"))
        if any(answer.get("kept") is None for answer in told):
            return CallMemory(taken, allocations, peak, None)
        kept = [_number(answer, "kept") for answer in told]
        least, least_of_a_call = NOISE if self._workers.device == "cpu" else (1, 1)
        return CallMemory(taken, allocations, peak, _from(least, sum(kept)), _from(least_of_a_call, min(kept[1:])))

    def _answers(self) -> list[list[torch.Tensor]] | str:
        """What a call by itself gives to either inputs; those loaded last are the first."""
        answers: list[list[torch.Tensor]] = [[], []]
        made = []
        for number in (1, 0):
            made.append(self._make(number))
            call_candidate(self._workers, made[-1], "deployment")
            answers[number] = [tensor.clone() for tensor in self._workers.shared["own"]]
        return answers if made[0] == made[1] else "what a call is given beside tensors changes with its inputs"

    def _follows(self, answers: Sequence[Sequence[torch.Tensor]]) -> Trait:
        if self._alike(answers[0], answers[1]):
            return Trait.NOT_TRIED
        self._load(self._make(0))
        self._make(1)
        self._hand_over()
        self._ask("beside", "a call on another stream")
        return Trait.HELD if self._alike(self._stored(), answers[1]) else Trait.LACKING

    def _captured(self, answers: Sequence[Sequence[torch.Tensor]], stream: Trait) -> tuple[Trait, str]:
        """Captured with the second inputs, replayed with the first."""
        self._tried(lambda: self._load(self._make(1)))
        begun = self._asked_to("capture", "a call that is captured")
        if isinstance(begun, str):
            return Trait.LACKING, begun
        if untried := begun.get("untried"):
            return Trait.NOT_TRIED, str(untried)[:200]
        self._tried(lambda: self._load(self._make(0)))
        replayed = self._asked_to("replay", "the replay of a graph")
        if isinstance(replayed, str):
            return Trait.LACKING, replayed
        stored = self._tried(self._stored)
        if isinstance(stored, Failure):
            return Trait.LACKING, stored.message
        if self._alike(stored, answers[0]):
            return Trait.HELD, ""
        return Trait.LACKING, OTHERWISE + (ELSEWHERE if stream is Trait.LACKING else "")

    def _asked_to(self, act: str, during: str) -> dict[str, Any] | str:
        """The worker's answer, or why it gave none in the words of a capture."""
        try:
            return {} if self._dead else self._ask(act, during)
        except CandidateFailed as error:
            return explained(str(error.answer.get("text", ""))) or candidate_failures.of_candidate(error).message
        except WorkerEnded as error:
            self._dead = candidate_failures.of_death(error, self._workers.stage)
            return self._dead.message

    def _make(self, number: int) -> Any:
        """The task's own inputs of either seed, in the memory that the reference writes."""
        made = self._workers.ask_reference("make", seed=self._seeds[number], style=str(Style.OWN))
        return made["leaves"]

    def _load(self, leaves: Any) -> None:
        self._hand_over()
        question = {"leaves": leaves, "poison": "", "seed": self._workers.call_seed, "traced": False}
        self._workers.ask_candidate("load", "loading inputs", **question)

    def _hand_over(self) -> None:
        for shared, trusted in zip(self._workers.shared["inputs"], self._workers.trusted["inputs"], strict=True):
            shared.copy_(trusted)

    def _ask(self, act: str, during: str) -> dict[str, Any]:
        with self._workers.spent.on(Part.CALLING):
            return self._workers.ask_candidate("deployed", during, act=act)

    def _stored(self) -> Sequence[torch.Tensor]:
        """The outputs of the last call, where the evaluator sees them."""
        poison.fill(self._workers.shared["own"], Poison.NAN)
        self._workers.ask_candidate("store", "copying outputs", hold=False, copies=True)
        return self._workers.shared["own"]

    def _alike(self, outputs: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
        summed, precision = self._workers.summed, self._workers.request.policy.precision
        return all(_is_alike(*pair, summed, precision) for pair in zip(outputs, others, strict=True))


def _is_alike(output: torch.Tensor, other: torch.Tensor, summed: float, precision: str) -> bool:
    """Equal, or apart by no more than two orders of one sum; NaN stands where NaN stood."""
    output, other = comparison.real(output), comparison.real(other)
    if not other.dtype.is_floating_point:
        return torch.equal(output, other)
    allowed = tolerance.allowed(comparison.dtype_of(other), 0.0, summed, precision)
    is_same = torch.equal(float8.exact(output).isnan(), float8.exact(other).isnan())
    return is_same and comparison.is_close(_finite(output), _finite(other), allowed)


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    return float8.exact(tensor).nan_to_num().to(tensor.dtype)


def explained(text: str) -> str:
    """Why a capture failed, from the words of the driver; empty where they are none of those."""
    return next((reason for words, reason in _REASONS if words in text), "")


def _from(least: int, count: int) -> int:
    return count if count >= least else 0


def _number(answer: dict[str, Any], name: str) -> int:
    number = answer.get(name)
    if not isinstance(number, int) or abs(number) > _LARGEST:
        raise CandidateFailed({"missing": f"its process did not say what a call {name}"}, "a call")
    return number
