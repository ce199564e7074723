"""The untrusted worker: imports the candidate and calls it. What it answers is a claim that the evaluator checks."""

from __future__ import annotations

import faulthandler
import functools
import linecache
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from engine.evaluator import languages
from engine.evaluator.build import request as build_request
from engine.evaluator.build.cute_dsl import Compiled
from engine.evaluator.build.just_in_time import Compiler, Kernels, Place
from engine.evaluator.build.request import CANDIDATE_FILE
from engine.evaluator.checks import arguments, dtypes, gradients, live_code, seeding, weights
from engine.evaluator.checks.arguments import Arguments
from engine.evaluator.checks.candidate_failures import is_device_memory
from engine.evaluator.checks.executed import executed
from engine.evaluator.checks.gradients import ForwardBackward, Plan
from engine.evaluator.checks.inner_outputs import WithInnerOutputs
from engine.evaluator.checks.poison import Poison
from engine.evaluator.machine import shared_tensors
from engine.evaluator.machine.shared_tensors import SharedTensors
from engine.evaluator.processes import model_caller, observer
from engine.evaluator.processes.capturing import Capturing
from engine.evaluator.processes.channel import Channel
from engine.evaluator.processes.model_caller import ModelCaller
from engine.evaluator.processes.observer import Observer

MAX_TRACE = 6000


class Candidate:
    """The candidate's module and, once constructed, its model."""

    def __init__(self, source: str, shared: SharedTensors, place: Place | None, line: Channel) -> None:
        self._source = source
        self._place = place
        self.compiler = languages.find(place.language).compiler if place is not None else None
        self._kernels: Kernels | None = None
        self._shared = shared
        self._line = line
        self.observer = Observer()
        self._caller: ModelCaller | None = None
        self._capturing: Capturing | None = None

    def load_module(self) -> dict[str, Any]:
        """Execute the file; builds are asked of the evaluator on the way."""
        linecache.cache[CANDIDATE_FILE] = (len(self._source), None, self._source.splitlines(True), CANDIDATE_FILE)
        build_request.intercept(self._build)
        if self._place is not None:
            assert self.compiler is not None
            self._kernels = self.compiler.prepare(self._place)
        module = types.ModuleType("candidate")
        module.__file__ = CANDIDATE_FILE
        sys.modules["candidate"] = module
        exec(live_code.code(self._source, CANDIDATE_FILE), module.__dict__)
        self._kind = getattr(module, "ModelNew", None)
        self._convert = getattr(module, live_code.CONVERTER, None)
        if not (isinstance(self._kind, type) and issubclass(self._kind, torch.nn.Module)):
            return {"missing": "the file defines no class ModelNew(nn.Module)"}
        return {"loaded": True}

    def call_first(self, task_source: str, seed: int, backward: bool, dtype: str, mode: str) -> dict[str, Any]:
        """Make the model and call it at the task's sizes: what is compiled or tuned when it is launched is so then.

        The task's text is executed here: what it makes in this process decides nothing. Where there is no GPU its
        tensors have no contents.
        """
        assert self._kernels is not None
        assert self._kind is not None
        if isinstance(self._kernels, Compiled) and self._kernels.is_traced_only:
            with self._kernels.without_device():
                # With its number: nobody can be asked which device is meant. Parameters without contents are made there
                # and cannot be moved.
                device = f"{self._shared.device}:0"
                self._call_twice(task_source, seed, backward, dtype, mode, device, moves_model=False)
        else:
            self._call_twice(task_source, seed, backward, dtype, mode, self._shared.device, moves_model=True)
            model_caller.settle()
        return self._kernels.as_plain()

    def _call_twice(
        self, task_source: str, seed: int, backward: bool, dtype: str, mode: str, device: str, *, moves_model: bool
    ) -> None:
        assert self._kernels is not None
        assert self._kind is not None
        with torch.device(device), torch.no_grad():
            task = types.SimpleNamespace(**executed(task_source))
            layout = weights.layout_of(lambda: task.Model(*task.get_init_inputs()))
            seeding.seed(seed)
            model = self._kind(*task.get_init_inputs())
            if moves_model:
                model = model.to(device)
            model = dtypes.in_mode(mode, dtypes.model_in(dtype, model))
            weights.lay_out(model, layout)
            inputs = dtypes.arguments_in(dtype, Arguments.of(task.get_inputs()), device)
            call = gradients.both_passes(model, inputs) if backward else functools.partial(inputs.passed_to, model)
            call()
            self._kernels.listen()
            call()

    def construct(
        self,
        init_inputs: arguments.Node,
        weight_seed: int,
        weight_names: Sequence[str],
        layout: Mapping[str, Any],
        place: str,
        plan: Mapping[str, Any] | None,
        dtype: str,
        mode: str,
        loads: bool,
        inner: Sequence[str],
    ) -> dict[str, Any]:
        """Make the model and load the reference's weights, if it `loads` any or its own have the same names, shapes and
        dtypes; else tell how they differ.

        Its own lie in memory as the reference's of the same names do. With a `plan` its calls are forward and backward,
        with a `dtype` its weights are converted to that first, with a `mode` it is put into that. The outputs of its
        `inner` modules are compared too.
        """
        specs = shared_tensors.from_plain(layout)
        self._shared.map(specs, place)
        seeding.seed(weight_seed)
        assert self._kind is not None
        with torch.device(self._shared.device):
            model = arguments.rebuilt(init_inputs, ()).passed_to(self._kind).to(self._shared.device)
        self._model = dtypes.in_mode(mode, dtypes.model_in(dtype, model))
        self._names = weight_names
        weights.lay_out(self._model, dict(zip(weight_names, specs["weights"], strict=True)))
        differences = self._differences([(spec.shape, spec.dtype) for spec in specs["weights"]])
        self._takes_over = callable(self._convert) or not any(differences.values())
        if self._takes_over:
            self.load_weights()
        elif loads:
            return {"weights": "differ", "differences": differences}
        called: Any = self._model
        if plan is not None:
            called = ForwardBackward(model, dict(model.named_parameters()), Plan.from_plain(plan))
        if inner:
            module_names = {name for name, _ in model.named_modules()}
            if lacking := [name for name in inner if name not in module_names]:
                return {"weights": "differ", "modules": lacking}
            called = WithInnerOutputs(model, model, inner)
        self._caller = model_caller.of(called, self._shared, specs["inputs"], "own")
        self.observer.own = self._caller.flushed
        way = "converted" if callable(self._convert) else "taken over"
        return {"weights": way if self._takes_over else "same seed"}

    def _differences(self, specs: Sequence[tuple[tuple[int, ...], str]]) -> dict[str, list[str]]:
        """From the reference's state. What a lazy module holds before it has weights is not known yet."""
        state = self._model.state_dict()
        materialized = {name: value for name, value in state.items() if not is_lazy(value)}
        pairs = [
            (name, spec)
            for name, spec in zip(self._names, specs, strict=True)
            if name in materialized or name not in state
        ]
        return weights.misfits([name for name, _ in pairs], [spec for _, spec in pairs], materialized)

    def load_weights(self) -> dict[str, Any]:
        """What stands in the shared memory becomes the model's state, as a checkpoint is loaded."""
        state = dict(zip(self._names, self._shared["weights"], strict=True))
        self._model.load_state_dict(self._convert(state) if callable(self._convert) else state)
        return {"loaded": True}

    def load(
        self,
        leaves: arguments.Node,
        poison: str,
        seed: int,
        marks: Sequence[int],
        traced: bool = False,
        slots: int = 1,
        is_strided: bool = False,
    ) -> dict[str, Any]:
        """Fresh contents into the private buffers; what runs next is observed, between two tensors as long as `marks`.

        `poison` may say with what freed memory is filled.
        """
        assert self._caller is not None
        seeding.seed(seed)
        loaded = self._caller.load(leaves, Poison(poison) if poison else None, slots, is_strided)
        self.observer.begin(marks, traced)
        return loaded

    def keep(self) -> dict[str, Any]:
        """Hold the outputs stored last to the end."""
        assert self._caller is not None
        return self._caller.keep()

    def recall(self) -> dict[str, Any]:
        """The outputs kept, copied out once more."""
        assert self._caller is not None
        return self._caller.recall()

    def state(self, names: Sequence[str]) -> dict[str, Any]:
        """The weights that were taken over, as they are now, into the shared memory."""
        if not self._takes_over:
            return {"names": []}
        state = self._model.state_dict()
        copied = []
        for name, target in zip(names, self._shared["weights"], strict=True):
            if name in state and state[name].shape == target.shape and state[name].dtype == target.dtype:
                target.copy_(state[name])
                copied.append(name)
        return {"names": copied}

    def go(self) -> dict[str, Any]:
        """The call."""
        assert self._caller is not None
        return self._caller.go()

    def store(self, hold: bool, copies: bool) -> dict[str, Any]:
        """Outputs into the shared memory."""
        assert self._caller is not None
        return self._caller.store(hold, copies)

    def deployed(self, act: str) -> dict[str, Any]:
        """One of the acts by which a kernel's deployment is looked at."""
        assert self._caller is not None
        self._capturing = self._capturing or Capturing(self._caller, self._shared.device)
        answer: dict[str, Any] = getattr(self._capturing, act)()
        return answer

    def rest(self) -> dict[str, Any]:
        """Nothing more is asked."""
        return {"rests": True}

    def _build(self, request: Mapping[str, object]) -> Mapping[str, Any]:
        self._line.send({"request": request})
        return self._line.receive()


def body(source: str, shared: SharedTensors, place: Place | None, line: Channel) -> None:
    """Answer questions until the evaluator closes the line; an exception of the candidate's is an answer too."""
    faulthandler.enable()
    candidate = Candidate(source, shared, place, line)
    observer.watch_leaving(candidate.compiler.HANDED if candidate.compiler else ())
    while True:
        question = line.receive()
        name, number = question.pop("ask"), question.pop("number")
        seen = candidate.observer.end() if name != "go" else None
        try:
            answer = getattr(candidate, name)(**question)
            model_caller.settle()
        except BaseException as error:  # noqa: BLE001 - untrusted code may raise anything, SystemExit included
            answer = _failure_of(error, source, candidate.compiler)
        line.send({**answer, "number": number} | ({"seen": seen} if seen else {}))


def _failure_of(error: BaseException, source: str, compiler: Compiler | None) -> dict[str, Any]:
    return {
        "raised": type(error).__name__,
        "text": str(error)[:MAX_TRACE],
        "trace": _trace(error)[-MAX_TRACE:],
        "compiler": compiler.explained(error, source)[:MAX_TRACE] if compiler else "",
        "is_memory": isinstance(error, MemoryError)
        or "can't allocate memory" in str(error)
        or "bad_alloc" in str(error)
        or is_device_memory(str(error)),
    }


def _trace(error: BaseException) -> str:
    """The traceback cut to the candidate's own lines, those of its cause among them: an interpreter's error has one."""
    causes = [cause for cause in (error, error.__cause__) if cause is not None]
    frames = [frame for cause in causes for frame in traceback.extract_tb(cause.__traceback__)]
    shown = [frame for frame in frames if frame.filename == CANDIDATE_FILE]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(shown[-8:])] if shown else []
    return "".join([*lines, *traceback.format_exception_only(error)]).rstrip()
