"""The trusted reference worker: makes inputs from secret seeds, answers in float64, and is timed as the baseline."""

from __future__ import annotations

import functools
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from engine.evaluator import tasks
from engine.evaluator.checks import (
    arguments,
    comparison,
    distributions,
    dtypes,
    float8,
    flop_formulas,
    gradients,
    seeding,
    structure,
    terms,
    weights,
)
from engine.evaluator.checks.arguments import Arguments, Kinds, Unusable
from engine.evaluator.checks.comparison import is_rounded, nudged, wide_dtype, widened
from engine.evaluator.checks.executed import TASK_FILE, executed
from engine.evaluator.checks.gradients import ForwardBackward, Plan
from engine.evaluator.checks.inner_outputs import WithInnerOutputs, comparable
from engine.evaluator.checks.masked_products import MaskedProducts
from engine.evaluator.checks.poison import Poison
from engine.evaluator.checks.trials import Style, of_gradients
from engine.evaluator.checks.weights import Kind
from engine.evaluator.checks.widening import InDouble
from engine.evaluator.machine import shared_tensors
from engine.evaluator.machine.shared_tensors import SharedTensors, TensorSpec
from engine.evaluator.processes import half_baseline, model_caller, task_facts
from engine.evaluator.processes.channel import Channel
from engine.evaluator.processes.held_state import HeldState
from engine.evaluator.processes.model_caller import ModelCaller
from engine.evaluator.processes.observer import Observer
from engine.evaluator.processes.task_facts import UnusableTask
from storage.results.policy import Draws, Policy

MARKS = (1 << 41, 1 << 42)
NO_GPU_HERE = ("not compiled with CUDA", "No CUDA GPUs", "no NVIDIA driver", "re-initialize CUDA in forked")


class OperationCounter(TorchDispatchMode):
    """Counts operations by PyTorch's formulas, as its FlopCounterMode does, and which of them masks leave.
    Notes 8-bit floats too, and how many numbers an operator adds up at most."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0
        self.terms = 0.0
        self.masked = MaskedProducts()
        self.meets_float8 = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first operation would import torch._dynamo, which takes a second and is not needed."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is not torch.ops.prim.device.default:
            with self:
                result = func.decompose(*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        result = func(*args, **(kwargs or {}))
        self.meets_float8 |= isinstance(result, torch.Tensor) and float8.is_float8(result)
        flop = flop_formulas.flop_of(func, args, kwargs or {}, result)
        self.masked.take(func, args, kwargs or {}, result, flop)
        self.total += flop
        self.terms = max(self.terms, terms.of_call(func, args, kwargs or {}, result, flop))
        return result


class Reference:
    """The task's module, executed."""

    def __init__(self, source: str, shared: SharedTensors, policy: Policy) -> None:
        self._source = source
        self._names = executed(source)
        if lacking := [name for name in tasks.REQUIRED if not callable(self._names.get(name))]:
            raise UnusableTask(f"the task's file and what it imports define no {', '.join(lacking)}")
        structure.read_registered()
        self._kinds = Kinds()
        self._form = ""
        self._shared = shared
        dtypes.compute_within(policy.precision)  # after the task's text, which may have set something else
        self._is_half = policy.precision == "half"
        self._policy = policy
        self._plan: Plan | None = None
        self._given: list[TensorSpec] = []
        if (self._is_half or policy.dtype == "bf16") and (why := half_baseline.missing(shared.device)):
            raise UnusableTask(why)
        self.observer = Observer()
        self._caller: ModelCaller | None = None
        self._inner: Sequence[str] = ()
        self._is_by_claims = False

    def describe(
        self, weight_seed: int, is_timed: bool, varied: Mapping[str, str], inner: Sequence[str]
    ) -> dict[str, Any]:
        """Build the model, run it once, and say what goes in, what comes out and what it costs.

        `is_timed` says whether later calls are; `varied` which tensors of its state may get other values, and how;
        `inner` the modules whose outputs are compared too.
        """
        context_s = model_caller.open_device(self._shared.device, is_timed=is_timed)
        self._init_node = self._described_init()
        seeding.seed(weight_seed)
        self._model = self._again()
        for name, value in self._model.state_dict().items():
            if not is_lazy(value) and not arguments.is_judged(value):
                raise UnusableTask(
                    f"Model holds {name} of {value.dtype}, whose numbers cannot be compared or drawn: hold its bits as "
                    "uint8 and take them apart in forward"
                )
        self._inner = inner
        self._weight_seed = weight_seed
        is_made_by_a_call = any(is_lazy(tensor) for tensor in self._model.state_dict().values())
        if not is_made_by_a_call:
            self._state = self._held()
        seeding.seed(weight_seed)
        if self._policy.backward:
            self._see_what_is_differentiated()
        inputs = self._drawn()
        tensors, node = self._flattened(inputs)
        counter = OperationCounter()
        not_drawn = seeding.state()
        self.observer.begin(MARKS)
        started = time.perf_counter()
        with torch.no_grad(), counter:
            result = inputs.passed_to(self._whole(self._model))
        outputs = _leaves(result)
        self._form = structure.form_of(result)
        model_caller.settle()
        seconds = time.perf_counter() - started
        seen = self.observer.end()
        held = [*tensors, *outputs, *self._model.state_dict().values()]
        self._has_float8 = counter.meets_float8 or any(map(float8.is_float8, held))
        self._draws = seeding.state() != not_drawn
        if is_made_by_a_call:
            self._state = self._held()
        self._state.see_what_changed()
        self.take_weights(varied)
        self._specs = [TensorSpec.of(tensor) for tensor in tensors]
        layout = {
            "inputs": self._specs,
            "own": [TensorSpec.of(output) for output in outputs],
            "answer": [TensorSpec.of(output).as_dtype(wide_dtype(output.dtype)) for output in outputs],
            "weights": [TensorSpec.of(value) for value in self._state.values.values()],
            "claimed": [TensorSpec.of(output) for output in outputs[len(outputs) - len(inner) :]],
        }
        return {
            "layout": shared_tensors.to_plain(layout),
            "init_inputs": self._init_node,
            "weight_names": list(self._state.values),
            "parameter_names": [name for name, _ in self._model.named_parameters(remove_duplicate=False)],
            "changing": self._state.changing,
            "flop": counter.total,
            "terms": None if self._plan else counter.terms,  # autograd's sums are not all seen
            "needed_flop": counter.masked.needed,
            "seconds": seconds,
            "context_s": context_s,
            "form": self._form,
            "input_names": arguments.names_of(node),
            "output_names": structure.names_of(result[0] if inner else result),
            "signature": self._signature(node, tensors, result[0] if inner else result),
            "seen": seen,
            "plan": asdict(self._plan) if self._plan else None,
        }

    def _held(self) -> HeldState:
        return HeldState(self._model, lambda: self._by_another_seed().state_dict(), self._shared.device)

    def _by_another_seed(self) -> nn.Module:
        seeding.seed(self._weight_seed + 1)
        return self._initialized(self._again())

    def set_weights(self, seed: int | None, only: Sequence[str] = ()) -> dict[str, Any]:
        """Give the state other values by a seed, or those as constructed without one, here and in the shared memory.

        With names `only` these get other values.
        """
        with torch.no_grad():
            self._state.set(seed, only)
            self._state.copy_to(self._shared["weights"])
        return {"set": True}

    def take_state(self) -> dict[str, Any]:
        """The values in the shared memory become the state."""
        with torch.no_grad():
            self._state.take(self._shared["weights"])
        return {"taken": True}

    def _initialized(self, model: nn.Module) -> nn.Module:
        """Lazy modules have no state before a call."""
        if any(is_lazy(tensor) for tensor in model.state_dict().values()):
            with torch.no_grad():
                self._items().passed_to(model)
        return model

    def state_after(self, leaves: arguments.Node, seed: int, in_double: bool = False) -> dict[str, Any]:
        """The state as a call on the inputs in the shared memory leaves it, into the shared memory.

        `in_double`, as a call in float64 leaves it, rounded to its own dtypes; `is_done` is false where there is none.
        """
        if in_double:
            return {"is_done": self._wide_state_after(leaves, seed)}
        seeding.seed(seed)
        given = [self._copied(spec, tensor) for spec, tensor in zip(self._specs, self._shared["inputs"], strict=True)]
        forced = [claimed.clone() for claimed in self._shared["claimed"]]
        with torch.no_grad():
            arguments.rebuilt(leaves, given, self._kinds).passed_to(self._whole(self._model, forced=forced))
            self._state.copy_to(self._shared["weights"])
            self._state.restore()
        return {"is_done": True}

    def _wide_state_after(self, leaves: arguments.Node, seed: int) -> bool:
        if self._has_float8 or self._draws:
            return False
        try:
            model = self._widened()
            self._forward(
                model, leaves, list(map(_wide, self._shared["inputs"])), seed, list(map(_wide, self._forced()))
            )
        except (RuntimeError, TypeError, ValueError):
            return False
        wide = model.state_dict()
        with torch.no_grad():
            for target, name in zip(self._shared["weights"], self._state.values, strict=True):
                target.copy_(wide[name])
        return True

    def plan_weights(self) -> dict[str, Any]:
        """Which tensors of the state may get other values, and how; why the others stay. Values are as constructed."""
        plan = weights.planned(self._model, self._by_another_seed())
        return {"varied": dict(plan.varied), "stays": dict(plan.stays)}

    def observe(self, seed: int, call_seed: int) -> dict[str, Any]:
        """What calls do beside answering: see `task_facts`."""
        seeding.seed(seed)
        with torch.no_grad():
            facts = task_facts.observed(self._model, self._whole(self._model), self._drawn(), call_seed)
        return asdict(facts) | {"hidden": task_facts.hidden(self._model, self._source, TASK_FILE)}

    def inner_modules(self, depth: int, seed: int) -> dict[str, list[str]]:
        """The modules whose outputs can be compared, by name."""
        seeding.seed(seed)
        with torch.no_grad():
            names = comparable(self._model, self._drawn(), depth)
            self._state.restore()
        return {"names": names}

    def take_weights(self, varied: Mapping[str, str]) -> dict[str, Any]:
        """Another choice of what may vary."""
        self._state.varied = {name: Kind(kind) for name, kind in varied.items()}
        return {"taken": True}

    def _see_what_is_differentiated(self) -> None:
        with torch.no_grad():
            self._plan, examples = gradients.planned(self._model, self._items())
        if self._plan.is_empty:
            raise UnusableTask(
                "there is no backward pass: no output depends differentiably on an input or a parameter. Run this task "
                "without --backward"
            )
        self._given = [TensorSpec.of(gradient) for gradient in examples]

    def _whole(
        self, model: nn.Module, forward: Callable[..., Any] | None = None, forced: Sequence[torch.Tensor] = ()
    ) -> Callable[..., Any]:
        """What a call is: `forward`, the model's own where none is named, and backward where the policy has it.

        Modules that are compared too go on from `forced` outputs.
        """
        if self._inner:
            return WithInnerOutputs(forward or model, model, self._inner, forced)
        if self._plan is None:
            return forward or model
        return ForwardBackward(forward or model, dict(model.named_parameters()), self._plan)

    def map(self, layout: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Map the sized shared memory and put the weights into it."""
        self._shared.map(shared_tensors.from_plain(layout), place)
        self._state.copy_to(self._shared["weights"])
        timed, name = self._in_half() if self._is_half else (self._whole(self._model), half_baseline.AS_IT_IS)
        name += self._policy.baseline
        self._caller = model_caller.of(timed, self._shared, self._specs, "own", self._kinds)
        self.observer.own = self._caller.flushed
        return {"mapped": True, "baseline": name}

    def _in_half(self) -> tuple[Callable[..., Any], str]:
        results = self._plan.results if self._plan else None
        outputs = [tensor.dtype for tensor in self._shared["own"][:results]]
        whole = functools.partial(self._whole, self._model)
        return half_baseline.faster(self._model, self._shared.device, outputs, self._drawn(), whole)

    def make(self, seed: int, style: str) -> dict[str, Any]:
        """Draw the inputs of one trial into the shared memory; items that are no tensors come back as values."""
        seeding.seed(seed)
        items = self._drawn()
        tensors, node = self._flattened(items)
        if [TensorSpec.of(tensor) for tensor in tensors] != self._specs:
            raise UnusableTask("get_inputs() must return the same shapes, strides and dtypes every time")
        with torch.device(self._shared.device):
            own_count = len(tensors) - len(self._given)
            ways = [Style(style)] * own_count + [of_gradients(Style(style))] * len(self._given)
            styled = [distributions.restyle(tensor, way) for tensor, way in zip(tensors, ways, strict=True)]
        for spec, target, tensor in zip(self._specs, self._shared["inputs"], styled, strict=True):
            # Along a dimension of stride 0 all values are one.
            target.copy_(tensor if spec.is_dense else shared_tensors.laid_out(spec, tensor, self._shared.device))
        self._give_back()
        return {"leaves": node, "is_styled": any(a is not b for a, b in zip(styled, tensors, strict=True))}

    def answer(
        self,
        leaves: arguments.Node,
        seed: int,
        may_refuse: bool = False,
        is_own_enough: bool = False,
        is_by_claims: bool = False,
    ) -> dict[str, Any]:
        """Outputs in the task's dtype, and unless these are enough in float64, for the inputs now in the shared memory.

        With `may_refuse` inputs that the task does not take are told as `refused` instead of failing the task. Modules
        that are compared too go on from what is claimed of them, or else in float64 from the task's own outputs.
        """
        tensors = self._shared["inputs"]
        self._is_by_claims = is_by_claims
        try:
            outputs = self._forward(self._model, leaves, tensors, seed, self._forced())
        except Exception as error:  # a task is a person's code and may raise anything
            if not may_refuse or isinstance(error, UnusableTask):
                raise
            return {"refused": f"{type(error).__name__}: {str(error)[:200]}"}
        if [tuple(output.shape) for output in outputs] != [tuple(reference.shape) for reference in self._shared["own"]]:
            raise UnusableTask(
                "the shape of the answer depends on the values of the inputs: write a forward whose outputs have fixed "
                "shapes"
            )
        _put(self._shared["own"], outputs)
        if is_own_enough:
            return {"is_wide": False}
        names = [spec.dtype for spec in map(TensorSpec.of, self._shared["answer"])]
        answers, is_wide = outputs, False
        if any(is_rounded(tensor) for tensor in (*tensors, *outputs)):
            answers, is_wide = self._forward_wide(leaves, tensors, seed, outputs)
        _put(
            self._shared["answer"],
            [answer.to(getattr(torch, name)) for answer, name in zip(answers, names, strict=True)],
        )
        self._give_back()
        return {"is_wide": is_wide}

    def sensitivity(self, leaves: arguments.Node, seed: int, by_rows: bool) -> dict[str, Any]:
        """How far each float64 answer moves when every input moves by up to half a unit in its last place.

        All up, and neighbours against each other: the larger of the two, for each output.
        """
        changes = [self._moved_by(leaves, seed, by_rows=by_rows, alternately=way) for way in (False, True)]
        return {"changes": [max(pair) for pair in zip(*changes, strict=True)]}

    def _moved_by(self, leaves: arguments.Node, seed: int, *, by_rows: bool, alternately: bool) -> list[float]:
        move = functools.partial(nudged, alternately=alternately)
        tensors, forced = (
            list(map(move, some)) for some in (self._shared["inputs"], self._forced(self._shared["own"]))
        )
        moved = self._forward_in_double(leaves, tensors, seed, forced)
        return [
            comparison.errors(there, here, here, comparison.row_scales(here, reference) if by_rows else scale).relative
            for there, here, reference in zip(moved, self._shared["answer"], self._shared["own"], strict=True)
            for scale in (comparison.scale_of(here, reference),)
        ]

    def vary(self, leaves: arguments.Node, seed: int, other_seed: int) -> dict[str, list[float]]:
        """How far the outputs in the shared memory move with other inputs, and with other weights if there are any."""
        seeding.seed(other_seed)
        tensors, node = self._flattened(self._drawn())
        by_inputs = self._changes(lambda: self._forward(self._model, node, tensors, seed))
        if not self._state.varied:
            return {"inputs": by_inputs, "weights": []}
        given = self._shared["inputs"]
        with torch.no_grad(), self._state.other(other_seed):
            by_weights = self._changes(lambda: self._forward(self._model, leaves, given, seed))
        return {"inputs": by_inputs, "weights": by_weights}

    def _again(self) -> nn.Module:
        """Factory functions in a task make their tensors on the device; what insists on the CPU is moved."""
        with torch.device(self._shared.device):
            given = arguments.rebuilt(self._init_node, (), self._kinds)
            model: nn.Module = given.passed_to(self._names["Model"])
        model = dtypes.model_in(self._policy.dtype, model.to(self._shared.device))
        return dtypes.in_mode(self._policy.mode, model)

    def _items(self) -> Arguments:
        device = self._shared.device
        try:
            with torch.device(device):
                items = Arguments.of(self._names["get_inputs"]())
            return dtypes.arguments_in(self._policy.dtype, items, device)
        except Unusable as error:
            raise UnusableTask(f"get_inputs() returns {error}") from error

    def _drawn(self) -> Arguments:
        """The arguments of a call; where it has a backward, gradients of the outputs come last."""
        items = self._items().mapped(torch.Tensor.detach)
        given = [torch.randn(spec.shape, dtype=spec.torch_dtype, device=self._shared.device) for spec in self._given]
        return Arguments(items.positional, items.named, given)

    def _flattened(self, given: Arguments) -> tuple[list[torch.Tensor], arguments.Node]:
        return arguments.flattened(given, self._kinds)

    def _signature(self, node: arguments.Node, tensors: Sequence[torch.Tensor], result: Any) -> str:
        """What forward takes and returns; empty where the task's text tells: tensors by position, tensors alone or in
        one tuple."""
        if self._plan is not None:
            with torch.no_grad():
                result = self._items().passed_to(self._model)
            self._state.restore()
        if arguments.is_plain(node) and structure.is_simple(result):
            return ""
        return f"forward({arguments.shown(node, tensors)}) returns {structure.shown(result)}"

    def _described_init(self) -> arguments.Node:
        try:
            return arguments.of_constructor(self._names["get_init_inputs"](), self._kinds)
        except Unusable as error:
            raise UnusableTask(f"get_init_inputs() returns {error}") from error

    def _give_back(self) -> None:
        """Device memory that is cached here is missing elsewhere: the float64 answer needs several times the inputs."""
        if self._shared.device != "cpu":
            torch.cuda.empty_cache()

    def _changes(self, outputs: Callable[[], list[torch.Tensor]]) -> list[float]:
        """Nothing for a module that does not take it: this is a question about the task, not a rule."""
        try:
            return [_change(other, reference) for other, reference in zip(outputs(), self._shared["own"], strict=True)]
        except Exception:  # noqa: BLE001 - a task is a person's code and may raise anything
            return []

    def load(
        self,
        leaves: arguments.Node,
        poison: str,
        seed: int,
        marks: Sequence[int],
        traced: bool = False,
        slots: int = 1,
    ) -> dict[str, Any]:
        """Load the calls as the candidate's worker does, observed as it is."""
        assert self._caller is not None
        self._state.restore()
        seeding.seed(seed)
        loaded = self._caller.load(leaves, Poison(poison) if poison else None, slots)
        self.observer.begin(marks, traced)
        return loaded

    def go(self) -> dict[str, Any]:
        """Make the calls as the candidate's worker does."""
        assert self._caller is not None
        return self._caller.go()

    def store(self, hold: bool, copies: bool) -> dict[str, Any]:
        """Describe and store the outputs as the candidate's worker does."""
        assert self._caller is not None
        return self._caller.store(hold, copies)

    def _forward_wide(
        self,
        leaves: arguments.Node,
        tensors: Sequence[torch.Tensor],
        seed: int,
        outputs: list[torch.Tensor],
    ) -> tuple[list[torch.Tensor], bool]:
        """Float64 outputs, or the task's own where widening changes what the function is, or what it draws."""
        if self._draws and self._policy.draws is Draws.SEEDED and not self._policy.is_judged_as_constructed:
            return outputs, False
        wide = list(map(_wide, tensors))
        try:
            answers = self._forward_in_double(leaves, wide, seed, list(map(_wide, self._forced(outputs))))
        except (RuntimeError, TypeError, ValueError):
            return outputs, False
        fits = [
            a.shape == o.shape and a.dtype == getattr(torch, wide_dtype(o.dtype))
            for a, o in zip(answers, outputs, strict=False)
        ]
        return (answers, True) if all(fits) and len(answers) == len(outputs) else (outputs, False)

    def _forward_in_double(
        self, leaves: arguments.Node, tensors: Sequence[torch.Tensor], seed: int, forced: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """The outputs for tensors in double precision; those of 8 bits before they were rounded."""
        model = self._widened()
        if not self._has_float8:
            return self._forward(model, leaves, tensors, seed, forced)
        with InDouble() as mode:
            outputs = self._forward(model, leaves, tensors, seed, forced)
        return list(map(mode.unrounded, outputs))

    def _widened(self) -> nn.Module:
        """A copy in float64. Modules that keep what they computed of a parameter (`weight_norm`) cannot be copied."""
        try:
            return widened(self._model)
        except RuntimeError:
            with torch.no_grad():
                twin = self._initialized(self._again())
                twin.load_state_dict(self._state.values)
                return comparison.in_double(twin)

    def _forward(
        self,
        model: nn.Module,
        leaves: arguments.Node,
        tensors: Sequence[torch.Tensor],
        seed: int,
        forced: Sequence[torch.Tensor] = (),
    ) -> list[torch.Tensor]:
        """The outputs for tensors that lie as `get_inputs` made them; a call that changes its inputs changes a copy."""
        given = [self._copied(spec, tensor) for spec, tensor in zip(self._specs, tensors, strict=True)]
        return self._called(model, arguments.rebuilt(leaves, given, self._kinds), seed, forced)

    def _forced(self, outputs: Sequence[torch.Tensor] = ()) -> Sequence[torch.Tensor]:
        """What modules that are compared too go on from, in memory that a call may change; else with their own."""
        sources = self._shared["claimed"] if self._is_by_claims else outputs[len(outputs) - len(self._inner) :]
        return [source.clone() for source in sources]

    def _copied(self, spec: TensorSpec, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor as `get_inputs` laid it out, and not the shared one; a widened copy may be changed as it is."""
        if spec.is_dense and all(tensor is not shared for shared in self._shared["inputs"]):
            return tensor
        return shared_tensors.laid_out(spec.as_dtype(_name(tensor)), tensor, self._shared.device)

    def _called(
        self, model: nn.Module, given: Arguments, seed: int, forced: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        seeding.seed(seed)
        try:
            with torch.no_grad():
                result = given.passed_to(self._whole(model, forced=forced))
        finally:
            if model is self._model:
                self._state.restore()
        if model is self._model and (form := structure.form_of(result)) != self._form:
            raise UnusableTask(
                f"what forward returns beside tensors must be the same in every call, and was {self._form} and then "
                f"{form}: return a number that depends on the values as a tensor, without .item(), int() or float()"
            )
        return _leaves(result)


def body(source: str, shared: SharedTensors, policy: Policy, line: Channel) -> None:
    """Answer questions until the evaluator closes the line. A failing task is told, not raised."""
    reference: Reference | None = None
    while True:
        question = line.receive()
        name, number = question.pop("ask"), question.pop("number")
        try:
            if reference is None:
                reference = Reference(source, shared, policy)
            seen = reference.observer.end() if name != "go" else None
            answer = {**getattr(reference, name)(**question), **({"seen": seen} if seen else {})}
            model_caller.settle()
        except Exception as error:  # noqa: BLE001 - a task is a person's code and may raise anything
            hint = f" (with {policy.dtype} tensors: without --dtype they stay as written)" if policy.dtype else ""
            message = str(error) if isinstance(error, UnusableTask) else f"{told(error, source)}{hint}"
            answer = {"failed": message}
        line.send({**answer, "number": number})


def told(error: Exception, source: str) -> str:
    """What a task's own code raised: the line of it, the words, and what mends what is met often."""
    message = f"{type(error).__name__}: {str(error)[:1000]}"
    where = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == TASK_FILE]
    lines = source.splitlines()
    if where and where[-1] and where[-1] <= len(lines):
        message = f"line {where[-1]} of the task (`{lines[where[-1] - 1].strip()[:120]}`): {message}"
    if isinstance(error, ModuleNotFoundError):
        message += f": install {error.name}, put its folder on PYTHONPATH, or put the code into the task's file"
    if any(words in message for words in NO_GPU_HERE):
        message += ": leave the device out, tensors are made on the device that judges"
    return message


def _leaves(outputs: Any) -> list[torch.Tensor]:
    leaves = structure.leaves_of(outputs)
    if refusal := structure.refusal(leaves):
        raise UnusableTask(refusal)
    return leaves


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _change(there: torch.Tensor, after: torch.Tensor) -> float:
    if there.shape != after.shape:
        return math.inf
    if not is_rounded(after):
        return 0.0 if torch.equal(there, after) else math.inf
    return comparison.errors(there, after, after, comparison.scale_of(after)).relative


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(getattr(torch, wide_dtype(tensor.dtype)))


def _put(targets: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    for target, output in zip(targets, outputs, strict=True):
        target.copy_(output)
