"""The two workers of one evaluation and the memory they share: start, describe, construct, ask. Decides no verdict."""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from engine.evaluator import languages, tasks
from engine.evaluator.build import just_in_time
from engine.evaluator.build import request as build_request
from engine.evaluator.build.host import installation
from engine.evaluator.build.host.build import BuildFailed, Built
from engine.evaluator.build.host.flags import FlagRefused
from engine.evaluator.build.just_in_time import Place
from engine.evaluator.build.request import RequestRefused
from engine.evaluator.checks import contract, dtypes, operators, poison, structure, weights
from engine.evaluator.checks.candidate_failures import (
    CandidateFailed,
    ComputedElsewhere,
    ContractBroken,
    FailedBuild,
    Failure,
    WorkerEnded,
)
from engine.evaluator.checks.contract import Expected
from engine.evaluator.checks.gradients import Plan
from engine.evaluator.checks.launches import Launches, Trace, kernel_names
from engine.evaluator.checks.operators import Observed, Operator
from engine.evaluator.checks.poison import Poison
from engine.evaluator.checks.screening.python_text import fall_backs
from engine.evaluator.machine import quiet, shared_tensors
from engine.evaluator.machine.shared_tensors import SharedTensors, TensorSpec
from engine.evaluator.machine.worker_limits import memory_here
from engine.evaluator.processes import candidate_worker, model_caller, reference_worker
from engine.evaluator.processes.evaluation_request import EvaluationRequest
from engine.evaluator.processes.sampled import Sampled
from engine.evaluator.processes.task_facts import UnusableTask
from engine.evaluator.processes.worker import Worker
from storage.results.policy import StateDict, Weights
from storage.results.timeline import Part
from storage.results.vocabulary import Verdict

UNLIMITED = 1 << 46
ANSWERING = {
    "make": Part.INPUTS,
    "answer": Part.REFERENCE,
    "sensitivity": Part.REFERENCE,
    "vary": Part.REFERENCE,
}
"""Where the time of a question to the reference goes; those of timed calls are not looked up further."""
SUMS_OF_GRADIENT = 4


class WorkerPair:
    """A reference worker and a candidate worker. Both are forked before this process computes anything.

    `inspect` sees each library and its sources before the candidate does; a text it returns is the reason not to
    hand it over. `compiles_to` is where the compile step of a just-in-time language keeps its kernels. `is_timed` says
    whether the reference's calls may be.
    """

    def __init__(
        self,
        request: EvaluationRequest,
        folder: Path,
        with_reference: bool = True,
        with_candidate: bool = True,
        inspect: Callable[[Path, tuple[str, ...]], str] | None = None,
        compiles_to: Path | None = None,
        *,
        is_timed: bool = True,
    ) -> None:
        self.request = request
        self._is_timed = is_timed
        self.spent = request.spent
        self._inspect = inspect
        self.builds: list[Built] = []
        self.answers: list[dict[str, str]] = []
        self.failed_build: FailedBuild | None = None
        self._trusted = shared_tensors.new("reference", request.device)
        self._shared = shared_tensors.new("candidate", request.device)
        self.stage = "import"
        self.weights = "none"
        self.call_seed = _secret()
        self.observed = Observed(request.policy, written=fall_backs(request.source))
        self.launches = Launches(request.policy)
        self._open: tuple[list[int], bool, int, str] | None = None
        self._calls = self._took_ns = 0
        self.others_share = 0.0  # of the processors, that others used when the turn came
        self._weight_seed = _secret()
        self._weights_by: tuple[int | None, tuple[str, ...]] | None = (None, ())
        dtypes.compute_within(request.policy.precision)  # the candidate's process inherits it, and may not change it
        with self.spent.on(Part.FORKING):
            self._fork(folder, with_reference, with_candidate, compiles_to)
        # Only now, or the workers would inherit it. A thread pool of the evaluator's own would spin on the processors
        # that a timed call needs, and comparing piece by piece in cache gains little from a second thread.
        torch.set_num_threads(1)

    def _fork(self, folder: Path, with_reference: bool, with_candidate: bool, compiles_to: Path | None) -> None:
        request = self.request
        limits = dataclasses.replace(request.limits, processor_s=3600, address_space=UNLIMITED, tree_memory=UNLIMITED)
        self.reference: Worker | None = None
        allowed, of_task = tasks.imported.trees(request.policy.imports), tasks.imported.files(request.task_source)
        if with_reference:
            body = functools.partial(reference_worker.body, request.task_source, self._trusted, request.policy)
            self.reference = Worker.fork(
                body,
                dataclasses.replace(limits, tree_memory=memory_here()) if request.is_confined else limits,
                folder / "reference",
                self._trusted.inherited,
                isolation=request.isolation if request.is_confined else None,
                readable=(*of_task, *allowed) if request.is_confined else (),
            )
        self._candidate: Worker | None = None
        self.sampled: list[Sampled] = []
        if not with_candidate:
            return
        self.libraries = folder / "libraries"
        self.libraries.mkdir(exist_ok=True)
        self.place = self._place(compiles_to) if request.is_just_in_time else None
        body = functools.partial(candidate_worker.body, request.source, self._shared, self.place)
        imported: tuple[Path, ...] = ()
        if request.details.get("imports_freely"):  # a person's own baseline, or the task's module compiled
            imported = (*tasks.imported.files(request.source), *installation.compilers_on_path())
        self._candidate = Worker.fork(
            body,
            request.limits,
            folder / "candidate",
            self._shared.inherited,
            self._serve,
            request.isolation,
            # Where it is to compile its kernels it calls them as the task's text, run beside it, would be called.
            readable=(self.libraries, *allowed, *imported, *(of_task if compiles_to else ())),
            writable=(compiles_to,) if compiles_to else (),
        )
        # Before either has a second thread.
        is_sampled = self._is_timed and request.device == "cpu" and self.reference is not None
        sides = [self.candidate, self.reference] if is_sampled and self.reference else []
        self.sampled = [Sampled(worker.inner_pid) for worker in sides]

    def __enter__(self) -> WorkerPair:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.spent.on(Part.ENDING):
            for sampled in self.sampled:
                sampled.close()
            for worker in (self._candidate, self.reference):
                if worker:
                    worker.end()

    @property
    def candidate(self) -> Worker:
        """The worker that runs the candidate."""
        assert self._candidate is not None
        return self._candidate

    def _place(self, compiles_to: Path | None) -> Place:
        """Where the candidate's process finds its compiled kernels, in a copy, or puts them."""
        self.launches.own |= languages.kernel_names(self.request.source)
        self.launches.beginnings = languages.beginnings(self.request.source)
        language = languages.of(self.request.source, self.request.language).name
        arch = str(self.request.details.get("arch", ""))
        first = self.request.first_calls
        if first is None or first.kept is None:
            self.failed_build = first.failure if first else None
            return Place(language, None, compiles_to, arch)
        kept = self.libraries / just_in_time.CACHE
        shutil.rmtree(kept, ignore_errors=True)  # the workers of the task's other sizes have the same folder
        shutil.copytree(first.kept, kept)
        return Place(language, kept, compiles_to, arch)

    def take_turn(self) -> dict[str, str]:
        """Wait for the device and for a quiet moment, and let this process and both workers go first from here on.

        Returns:
            What a timing tells of that.
        """
        self.candidate.stop()  # what it has started would disturb who has the device now
        self.request.turn()
        self.candidate.resume()
        with self.spent.on(Part.QUIET):
            is_first = quiet.raise_priority()
            pids = [worker.inner_pid for worker in (self.reference, self.candidate) if worker is not None]
            for pid in pids:
                quiet.raise_process(pid)
            busy = quiet.wait(self.request.times.timing_s, None if self.device == "cpu" else quiet.BESIDE_A_DEVICE)
            is_before_all = quiet.go_before_all(*pids)
        self.others_share = busy
        priority = "real-time" if is_before_all else "raised" if is_first else "normal"
        return {"others before": f"{busy:.0%} of the processors", "priority": priority}

    def import_candidate(self) -> None:
        """Build and import.

        Raises:
            CandidateFailed, WorkerEnded: it did not get that far.
        """
        with self.spent.on(Part.IMPORTING):
            answer = self.candidate.ask({"ask": "load_module"}, self.request.times.import_s)
        _raise_failed(answer, "import")

    def describe(self) -> None:
        """Run the reference once, size the shared memory, and hand the candidate its construction."""
        if self.device != "cpu":
            # What is drawn, filled and compared from here on is made where the outputs are.
            torch.set_default_device(self.device)
        reply = self._described(meanwhile=lambda: model_caller.open_device(self.device, is_timed=False))
        self.flop, self.needed_flop = int(reply["flop"]), self._needed_flop(reply)
        self._terms = math.inf if reply["terms"] is None else float(reply["terms"])
        self.form = str(reply["form"])
        self._input_names = [str(name) for name in reply["input_names"]]
        self._output_names = [str(name) for name in reply["output_names"]]
        self.changing = [str(name) for name in reply["changing"]]
        self.observed.moves = operators.only_moves(operators.read(reply["seen"]))
        self.plan = Plan.from_plain(reply["plan"]) if reply["plan"] else None
        self.weight_names = [str(name) for name in reply["weight_names"]]
        self.parameter_names = [str(name) for name in reply["parameter_names"]]
        self.reference_s = float(reply["seconds"])
        layout = shared_tensors.from_plain(reply["layout"])
        self.input_specs = layout["inputs"]
        self._trusted.size_to(layout)
        if self.plan is not None:
            first = len(layout["inputs"]) - len(self.plan.outputs)
            self.observed.handed = [tensor.numel() for tensor in self._trusted["inputs"][first:]]
        with self.spent.on(Part.DESCRIBING):
            mapped = self.ask_reference("map", layout=reply["layout"], place=self._trusted.place)
        self.baseline = str(mapped["baseline"])
        self._shared.size_to({name: layout[name] for name in ("inputs", "own", "weights")})
        self._construction = reply

    def needs(self) -> tuple[int, int, bool, str, list[Operator], dict[str, TensorSpec]]:
        """Bytes of the inputs, outputs and weights, operations, whether masks leave some out, how forward is called
        where the task's text does not tell, what a call of it runs, and weights that lie in another order than the
        usual one; no GPU is opened for it but by the reference."""
        reply = self._described()
        layout = shared_tensors.from_plain(reply["layout"])
        size = sum(spec.nbytes for name in ("inputs", "own", "weights") for spec in layout[name])
        ran = operators.at_work(operators.read(reply["seen"]))
        lying = weights.reordered(dict(zip(reply["weight_names"], layout["weights"], strict=True)))
        operations, is_masked = self._needed_flop(reply), int(reply["needed_flop"]) < int(reply["flop"])
        return size, operations, is_masked, str(reply["signature"]), ran, lying

    def _needed_flop(self, reply: Mapping[str, Any]) -> int:
        share = self.request.policy.counts_operations
        # A task that names a share has its masks in mind.
        return int(reply["needed_flop"]) if share is True else int(int(reply["flop"]) * share)

    def _described(self, meanwhile: Callable[[], object] = lambda: None) -> dict[str, Any]:
        with self.spent.on(Part.DESCRIBING):
            varied = dict(self.request.examined.varied) if self.request.examined else {}
            about = {"weight_seed": self._weight_seed, "is_timed": self._is_timed, "varied": varied}
            reply = self.ask_reference("describe", meanwhile, **about, inner=self.inner)
            self.spent.add(Part.CONTEXT, float(reply["context_s"]))
        return reply

    def construct(self) -> None:
        """Make the candidate's model and note where its weights come from."""
        with self.spent.on(Part.CONSTRUCTING):
            self._construct(self._construction)

    def _construct(self, reply: Mapping[str, Any]) -> None:
        policy = self.request.policy
        self.hand_over_weights()
        layout = {name: reply["layout"][name] for name in ("inputs", "own", "weights")}
        answer = self.ask_candidate(
            "construct",
            "ModelNew(...)",
            init_inputs=reply["init_inputs"],
            weight_seed=self._weight_seed,
            weight_names=reply["weight_names"],
            layout=layout,
            place=self._shared.place,
            plan=reply["plan"],
            dtype=policy.dtype,
            mode=policy.mode,
            loads=policy.state_dict is StateDict.REFERENCE,
            inner=self.inner,
        )
        if answer["weights"] == "differ":
            lacking = answer.get("modules")
            failure = (
                contract.modules_failure(lacking) if lacking else contract.state_failure(answer.get("differences"))
            )
            raise ContractBroken(failure)
        self.weights = str(answer["weights"]) if reply["weight_names"] else "none"

    def hand_over_weights(self) -> None:
        """The reference's weights into the memory shared with the candidate."""
        for shared, trusted in zip(self._shared["weights"], self._trusted["weights"], strict=True):
            shared.copy_(trusted)

    @property
    def varied(self) -> Sequence[str]:
        """The tensors of the state that may get other values, by name."""
        return list(self.request.examined.varied) if self.request.examined else []

    @property
    def inner(self) -> Sequence[str]:
        """The modules whose outputs are compared too, by name."""
        return list(self.request.examined.inner) if self.request.examined else []

    def take_claims(self, outputs: Sequence[torch.Tensor]) -> None:
        """What the candidate claims of these modules, to where the reference goes on from it."""
        for target, claimed in zip(self._trusted["claimed"], outputs[len(outputs) - len(self.inner) :], strict=True):
            target.copy_(claimed)

    @property
    def can_vary_weights(self) -> bool:
        """Whether both sides can get other weights than the constructed ones."""
        examined = self.request.examined
        varies = self.request.policy.weights is Weights.VARY and examined is not None and bool(examined.varied)
        return varies and self.takes_checkpoints

    @property
    def takes_checkpoints(self) -> bool:
        """Whether the reference's state can be loaded into the candidate's module."""
        return self.weights in ("taken over", "converted")

    def set_weights(self, seed: int | None, only: Sequence[str] = ()) -> None:
        """Other weights on both sides by a seed, or those as constructed without one; loaded as a checkpoint is.

        With names `only` these change.
        """
        if (seed, tuple(only)) == self._weights_by:
            return
        with self.spent.on(Part.WEIGHTS):
            self.ask_reference("set_weights", seed=seed, only=list(only))
            self.hand_over_weights()
            self.ask_candidate("load_weights", "load_state_dict")
        self._weights_by = (seed, tuple(only))

    def set_recorded_weights(self, values: Mapping[str, torch.Tensor]) -> None:
        """The weights that a network had, on both sides; loaded as a checkpoint is.

        Raises:
            UnusableTask: they are others than the task's.
        """
        with self.spent.on(Part.WEIGHTS):
            for name, target in zip(self.weight_names, self.trusted["weights"], strict=True):
                if (value := values.get(name)) is None or value.shape != target.shape or value.dtype != target.dtype:
                    raise UnusableTask(f"the recording has no {name} of the task's shape and dtype: capture again")
                target.copy_(value)
            self.ask_reference("take_state")
            self.hand_over_weights()
            self.ask_candidate("load_weights", "load_state_dict")
        self._weights_by = None

    def ask_candidate(self, name: str, during: str, **arguments: Any) -> dict[str, Any]:
        """One question to the candidate, within the limit of one call.

        On a GPU the kernels of a call are recorded, unless `traced` says not to.
        """
        self.stage = during
        model_caller.settle()
        marks = _marks() if name == "load" else []
        traced = bool(arguments.pop("traced", self.device != "cpu"))
        extra = {"marks": marks, "traced": traced} if marks else {}
        answer = self.candidate.ask({"ask": name, **arguments, **extra}, self.request.times.call_s)
        if name == "go":
            self._calls += 1
            self._took_ns += max(0, took) if isinstance(took := answer.get("ns"), int) else 0
        if name != "go":
            self._look(answer)
        _raise_failed(answer, during)
        if marks:
            self._open, self._calls, self._took_ns = (marks, traced, int(arguments.get("slots", 1)), during), 0, 0
        return answer

    def _look(self, answer: Mapping[str, Any]) -> None:
        """What ran between the last `load` and this question."""
        if self._open is None:
            return
        (marks, traced, slots, during), self._open = self._open, None
        # On a GPU operators only launch: their time is the host's, the call's is the device's.
        took_ns = self._took_ns if self.device == "cpu" else 0
        seen, calls = answer.get("seen"), slots * max(1, self._calls)
        failure = self.observed.add(seen, marks, calls, during, took_ns)
        if traced and not failure:
            trace = _trace(seen, during)
            failure = trace if isinstance(trace, Failure) else self.launches.add(trace, calls, during)
        if failure:
            raise ComputedElsewhere(failure)

    def ask_reference(
        self, name: str, meanwhile: Callable[[], object] = lambda: None, **arguments: Any
    ) -> dict[str, Any]:
        """One question to the reference. `meanwhile` is done here while it is at work.

        Raises:
            UnusableTask: the task failed or is too slow.
        """
        assert self.reference is not None
        model_caller.settle()
        extra = {"marks": _marks()} if name == "load" else {}
        part = ANSWERING.get(name)
        try:
            with self.spent.on(part) if part else nullcontext():
                question = {"ask": name, **arguments, **extra}
                answer = self.reference.ask(question, self.request.times.reference_s, meanwhile)
        except WorkerEnded as error:
            raise UnusableTask(f"the reference broke while asked to {name}: {error}") from error
        if "failed" in answer:
            raise UnusableTask(f"the reference failed: {answer['failed']}")
        return answer

    @property
    def seen(self) -> str:
        """What the candidate's calls ran, for a check."""
        detail = self.observed.detail
        return detail if self.device == "cpu" else f"{detail}; {self.launches.detail}"

    @property
    def device(self) -> str:
        """Where inputs and outputs live, as torch names it."""
        return self.request.device

    @property
    def device_name(self) -> str:
        """What the GPU is called; it has been used by now."""
        return str(torch.cuda.get_device_name())

    @property
    def trusted(self) -> SharedTensors:
        """Shared with the reference: inputs, own, answer, weights."""
        return self._trusted

    @property
    def shared(self) -> SharedTensors:
        """Shared with the candidate: inputs, own (its outputs), weights."""
        return self._shared

    @property
    def expected(self) -> Expected:
        """What the candidate must return, by the reference's outputs now in the shared memory."""
        return Expected(self._trusted["own"], self._form, self.device, tuple(self.output_names))

    @property
    def _form(self) -> str:
        """Outputs and gradients come as one tuple."""
        return self.form if self.plan is None else structure.form_of(tuple(self._trusted["own"]))

    @property
    def output_names(self) -> list[str]:
        """What each tensor is that a call returns."""
        if self.plan is not None:
            return self.plan.names
        return [*self._output_names, *(f"the output of module {name!r}" for name in self.inner)]

    @property
    def input_names(self) -> list[str]:
        """What each tensor is that a call is given."""
        given = [self.plan.result_names[number] for number in self.plan.outputs] if self.plan is not None else []
        inputs = [f"its {name}" for name in self._input_names]
        return [*inputs, *(f"the gradient that backward is given for {name}" for name in given)]

    @property
    def call_name(self) -> str:
        """What a call is, for messages."""
        return self.request.policy.passes

    def longest_into(self, number: int) -> int:
        """How many numbers one after another may go into an element of output `number` with all roundings one way.

        The gradient of a normalisation sums a row four times over: mean, variance, and two sums of the backward pass.
        """
        return self.longest * (SUMS_OF_GRADIENT if self._is_gradient(number) else 1)

    def _is_gradient(self, number: int) -> bool:
        return self.plan is not None and number >= self.plan.results

    def summed_into(self, number: int) -> float:
        """Numbers summed into one element of output `number`: a gradient sums what there is of every larger tensor."""
        if not self._is_gradient(number):
            return self.summed
        largest = max(tensor.numel() for name in ("own", "inputs") for tensor in self._trusted[name])
        return max(self.summed, largest / max(1, self._trusted["own"][number].numel()))

    @property
    def summed(self) -> float:
        """Numbers summed into one output element: products, from the operation count, or inputs per output.

        Where a row is summed and scaled back to a row (softmax) neither tells: a part of the longest row counts then.
        """
        outputs, inputs = (sum(tensor.numel() for tensor in self._trusted[name]) for name in ("own", "inputs"))
        return max(max(self.flop / 2, inputs) / outputs, self.longest / 4) if outputs else 0.0

    @property
    def longest(self) -> int:
        """Length of the longest row of any input, along any dimension, but no more than an operator of the reference
        adds up: 0 where each element comes of its own."""
        row = max((size for tensor in self._trusted["inputs"] for size in tensor.shape), default=0)
        return int(min(row, self._terms))

    def _serve(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Build what the candidate's import asks for."""
        with self.spent.on(Part.BUILDING):
            return self._built(request)

    def _built(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        try:
            wanted = build_request.read(request["build"] if isinstance(request.get("build"), dict) else {})
            built = self.request.builder.build(wanted, self.request.source)
        except BuildFailed as failure:
            verdict = Verdict.TIMEOUT if failure.is_timeout else Verdict.COMPILE_ERROR
            self.failed_build = FailedBuild(str(failure), failure.log, verdict)
            return {"excerpt": str(failure)}
        except (RequestRefused, FlagRefused) as refusal:
            self.failed_build = FailedBuild(str(refusal), str(refusal))
            return {"excerpt": str(refusal)}
        if self._inspect and (refused := self._inspect(Path(built.library), (*wanted.sources, *wanted.cuda_sources))):
            self.failed_build = FailedBuild(refused, refused, Verdict.REFUSED)
            return {"excerpt": refused}
        self.builds.append(built)
        if self.device != "cpu":
            self.launches.own |= kernel_names(Path(built.library))
        answer = {"library": self._shown(built), "binding": str(built.binding), "namespace": built.namespace}
        self.answers.append(answer)
        return answer

    def _shown(self, built: Built) -> str:
        """A copy of the library where the candidate can read it: it sees neither the cache nor others' libraries."""
        target = self.libraries / f"{len(self.builds)}.so"
        shutil.copyfile(built.library, target)
        return str(target.resolve())


def _trace(seen: Any, during: str) -> Trace | Failure:
    try:
        return Trace.read(seen)
    except ValueError as error:
        return Failure(Verdict.REFUSED, f"{during}: {error}")


def _raise_failed(answer: Mapping[str, Any], during: str) -> None:
    if "raised" in answer or "missing" in answer:
        raise CandidateFailed(answer, during)


def _secret() -> int:
    return int.from_bytes(os.urandom(8), "little") >> 1


def _marks() -> list[int]:
    """Two lengths that nobody guesses, far beyond any real tensor's."""
    return [_secret() >> 3 | 1 << 59 for _ in range(2)]


def call_candidate(
    workers: WorkerPair, leaves: Any, trial: str, poisoned: Poison = Poison.NAN, *, is_strided: bool = False
) -> dict[str, Any]:
    """Hand over the inputs now shared with the reference, call once, and return what the worker says of its outputs."""
    for shared, trusted in zip(workers.shared["inputs"], workers.trusted["inputs"], strict=True):
        shared.copy_(trusted)
    poison.fill(workers.shared["own"], poisoned)
    during = f"{workers.call_name} (trial {trial!r})"
    with workers.spent.on(Part.CALLING):
        question = {"leaves": leaves, "poison": str(poisoned), "seed": workers.call_seed, "is_strided": is_strided}
        workers.ask_candidate("load", during, **question)
        workers.ask_candidate("go", during)
        answer = workers.ask_candidate("store", during, hold=True, copies=True)
    if workers.inner:
        workers.take_claims(workers.shared["own"])
        workers.ask_reference("answer", leaves=leaves, seed=workers.call_seed, is_by_claims=True)
    return answer
