"""The trusted reference worker: makes inputs from secret seeds, answers in float64, and is timed as the baseline."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from engine.evaluation import comparison, distributions, dtypes, gradients
from engine.evaluation.comparison import is_rounded, nudged, wide_dtype, widened
from engine.evaluation.gradients import ForwardBackward, Plan
from engine.evaluation.poison import Poison
from engine.evaluation.trials import Style, of_gradients
from engine.evaluator import half_baseline, model_caller
from engine.evaluator.channel import Channel
from engine.evaluator.model_caller import ModelCaller
from engine.evaluator.observer import Observer
from engine.machine import shared_tensors
from engine.machine.shared_tensors import SharedTensors, TensorSpec
from storage.policy import Policy

MARKS = (1 << 41, 1 << 42)


class UnusableTask(Exception):
    """The reference cannot be judged against; the message is for the person who wrote it."""


class OperationCounter(TorchDispatchMode):
    """Counts operations by PyTorch's formulas, as its FlopCounterMode does."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first operation would import torch._dynamo, which takes a second and is not needed."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is not torch.ops.prim.device.default:
            with self:
                made = func.decompose(*args, **(kwargs or {}))
            if made is not NotImplemented:
                return made
        made = func(*args, **(kwargs or {}))
        if formula := flop_registry.get(func._overloadpacket):
            self.total += int(formula(*args, **(kwargs or {}), out_val=made))
        return made


class Reference:
    """The task's module, executed."""

    def __init__(self, source: str, shared: SharedTensors, policy: Policy) -> None:
        self._names: dict[str, Any] = {"__name__": "task"}
        exec(compile(source, "task.py", "exec"), self._names)
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

    def describe(self, weight_seed: int, is_timed: bool) -> dict[str, Any]:
        """Build the model, run it once, and say what goes in, what comes out and what it costs. `is_timed` says whether
        later calls are."""
        context_s = model_caller.open_device(self._shared.device, is_timed=is_timed)
        init_inputs = list(self._names["get_init_inputs"]())
        torch.manual_seed(weight_seed)
        self._model = self._again()
        torch.manual_seed(weight_seed)
        if self._policy.backward:
            self._see_what_is_differentiated()
        inputs = self._drawn()
        tensors = [item for item in inputs if isinstance(item, torch.Tensor)]
        counter = OperationCounter()
        self.observer.begin(MARKS)
        started = time.perf_counter()
        with torch.no_grad(), counter:
            found = self._whole(self._model)(*inputs)
        outputs = _leaves(found)
        model_caller.settle()
        seconds = time.perf_counter() - started
        seen = self.observer.end()
        self._specs = [TensorSpec.of(tensor) for tensor in tensors]
        state = self._model.state_dict()
        layout = {
            "inputs": self._specs,
            "own": [TensorSpec.of(output) for output in outputs],
            "answer": [TensorSpec.of(output).as_dtype(wide_dtype(output.dtype)) for output in outputs],
            "weights": [TensorSpec.of(value) for value in state.values()],
        }
        return {
            "layout": shared_tensors.to_plain(layout),
            "init_inputs": init_inputs,
            "weight_names": list(state),
            "parameter_names": [name for name, _ in self._model.named_parameters()],
            "flop": counter.total,
            "seconds": seconds,
            "context_s": context_s,
            "is_single": isinstance(found, torch.Tensor),
            "seen": seen,
            "plan": asdict(self._plan) if self._plan else None,
        }

    def _see_what_is_differentiated(self) -> None:
        with torch.no_grad():
            self._plan, examples = gradients.planned(self._model, self._items())
        if self._plan.is_empty:
            raise UnusableTask(
                "there is no backward pass: no output depends differentiably on an input or a parameter. Run this task "
                "without --backward"
            )
        self._given = [TensorSpec.of(one) for one in examples]

    def _whole(self, model: nn.Module, forward: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """What a call is: `forward`, the model's own where none is named, and backward where the policy has it."""
        if self._plan is None:
            return forward or model
        return ForwardBackward(forward or model, dict(model.named_parameters()), self._plan)

    def map(self, layout: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Map the sized shared memory and put the weights into it."""
        self._shared.map(shared_tensors.from_plain(layout), place)
        for target, value in zip(self._shared["weights"], self._model.state_dict().values(), strict=True):
            target.copy_(value)
        timed, name = self._in_half() if self._is_half else (self._whole(self._model), half_baseline.AS_IT_IS)
        name += self._policy.baseline
        self._caller = model_caller.of(timed, self._shared, self._specs, "own")
        self.observer.own = self._caller.flushed
        return {"mapped": True, "baseline": name}

    def _in_half(self) -> tuple[Callable[..., Any], str]:
        results = self._plan.results if self._plan else None
        outputs = [own.dtype for own in self._shared["own"][:results]]
        whole = functools.partial(self._whole, self._model)
        return half_baseline.faster(self._model, self._shared.device, outputs, self._drawn(), whole)

    def make(self, seed: int, style: str) -> dict[str, Any]:
        """Draw the inputs of one trial into the shared memory; items that are no tensors come back as values."""
        torch.manual_seed(seed)
        items = self._drawn()
        tensors = [item for item in items if isinstance(item, torch.Tensor)]
        if [TensorSpec.of(tensor) for tensor in tensors] != self._specs:
            raise UnusableTask("get_inputs() must return the same shapes and dtypes every time")
        with torch.device(self._shared.device):
            own = len(tensors) - len(self._given)
            ways = [Style(style)] * own + [of_gradients(Style(style))] * len(self._given)
            styled = [distributions.restyle(tensor, way) for tensor, way in zip(tensors, ways, strict=True)]
        for target, tensor in zip(self._shared["inputs"], styled, strict=True):
            target.copy_(tensor)
        self._give_back()
        return {"leaves": _numbered(items), "is_styled": any(a is not b for a, b in zip(styled, tensors, strict=True))}

    def answer(self, leaves: Sequence[Mapping[str, Any]], seed: int, may_refuse: bool = False) -> dict[str, Any]:
        """Outputs in the task's dtype and in float64 for the inputs now in the shared memory.

        With `may_refuse` inputs that the task does not take are told as `refused` instead of failing the task.
        """
        tensors = [source.clone() for source in self._shared["inputs"]]
        try:
            own = self._forward(self._model, leaves, tensors, seed)
        except Exception as error:
            if not may_refuse:
                raise
            return {"refused": f"{type(error).__name__}: {str(error)[:200]}"}
        _put(self._shared["own"], own)
        names = [spec.dtype for spec in map(TensorSpec.of, self._shared["answer"])]
        answers, is_wide = own, False
        if any(is_rounded(tensor) for tensor in (*tensors, *own)):
            answers, is_wide = self._forward_wide(leaves, tensors, seed, own)
        _put(
            self._shared["answer"],
            [answer.to(getattr(torch, name)) for answer, name in zip(answers, names, strict=True)],
        )
        self._give_back()
        return {"is_wide": is_wide}

    def sensitivity(self, leaves: Sequence[Mapping[str, Any]], seed: int, by_rows: bool) -> dict[str, Any]:
        """How far each float64 answer moves when every input moves by up to half a unit in its last place.

        All up, and neighbours against each other: the larger of the two, for each output.
        """
        changes = [self._moved_by(leaves, seed, by_rows=by_rows, alternately=way) for way in (False, True)]
        return {"changes": [max(pair) for pair in zip(*changes, strict=True)]}

    def _moved_by(
        self, leaves: Sequence[Mapping[str, Any]], seed: int, *, by_rows: bool, alternately: bool
    ) -> list[float]:
        tensors = [nudged(source, alternately=alternately) for source in self._shared["inputs"]]
        moved = self._forward(widened(self._model), leaves, tensors, seed)
        return [
            comparison.errors(there, here, here, comparison.row_scales(here, own) if by_rows else scale).relative
            for there, here, own in zip(moved, self._shared["answer"], self._shared["own"], strict=True)
            for scale in (comparison.scale_of(here, own),)
        ]

    def vary(self, leaves: Sequence[Mapping[str, Any]], seed: int, other_seed: int) -> dict[str, list[float]]:
        """How far the outputs in the shared memory move with other inputs, and with other weights if there are any."""
        torch.manual_seed(other_seed)
        other_inputs = self._drawn()
        by_inputs = self._changes(lambda: self._called(self._model, other_inputs, seed))
        if not any(True for _ in self._model.parameters()):
            return {"inputs": by_inputs, "weights": []}
        torch.manual_seed(other_seed)
        tensors = [source.clone() for source in self._shared["inputs"]]
        return {
            "inputs": by_inputs,
            "weights": self._changes(lambda: self._forward(self._again(), leaves, tensors, seed)),
        }

    def _again(self) -> nn.Module:
        """Factory functions in a task make their tensors on the device; what insists on the CPU is moved."""
        with torch.device(self._shared.device):
            model: nn.Module = self._names["Model"](*self._names["get_init_inputs"]())
        return dtypes.model_in(self._policy.dtype, model.to(self._shared.device))

    def _items(self) -> list[Any]:
        device = self._shared.device
        with torch.device(device):
            items = list(self._names["get_inputs"]())
        return dtypes.items_in(self._policy.dtype, items, device)

    def _drawn(self) -> list[Any]:
        """The arguments of a call; where it has a backward, gradients of the outputs come last."""
        items = [item.detach() if isinstance(item, torch.Tensor) else item for item in self._items()]
        given = (torch.randn(one.shape, dtype=one.torch_dtype, device=self._shared.device) for one in self._given)
        return [*items, *given]

    def _give_back(self) -> None:
        """Device memory that is cached here is missing elsewhere: the float64 answer needs several times the inputs."""
        if self._shared.device != "cpu":
            torch.cuda.empty_cache()

    def _changes(self, outputs: Callable[[], list[torch.Tensor]]) -> list[float]:
        """Nothing for a module that does not take it: this is a question about the task, not a rule."""
        try:
            return [_change(other, own) for other, own in zip(outputs(), self._shared["own"], strict=True)]
        except Exception:  # noqa: BLE001 - a task is a person's code and may raise anything
            return []

    def load(
        self,
        leaves: Sequence[Mapping[str, Any]],
        poison: str,
        seed: int,
        marks: Sequence[int],
        traced: bool = False,
        slots: int = 1,
    ) -> dict[str, Any]:
        """As the candidate does, observed as it is."""
        assert self._caller is not None
        torch.manual_seed(seed)
        loaded = self._caller.load(leaves, Poison(poison) if poison else None, slots)
        self.observer.begin(marks, traced)
        return loaded

    def go(self) -> dict[str, Any]:
        """As the candidate does."""
        assert self._caller is not None
        return self._caller.go()

    def store(self, hold: bool, copies: bool) -> dict[str, Any]:
        """As the candidate does."""
        assert self._caller is not None
        return self._caller.store(hold, copies)

    def _forward_wide(
        self, leaves: Sequence[Mapping[str, Any]], tensors: list[torch.Tensor], seed: int, own: list[torch.Tensor]
    ) -> tuple[list[torch.Tensor], bool]:
        """Float64 outputs, or the task's own where widening changes what the function is."""
        wide = [tensor.to(getattr(torch, wide_dtype(tensor.dtype))) for tensor in tensors]
        try:
            answers = self._forward(widened(self._model), leaves, wide, seed)
        except (RuntimeError, TypeError, ValueError):
            return own, False
        fits = [
            a.shape == o.shape and a.dtype == getattr(torch, wide_dtype(o.dtype))
            for a, o in zip(answers, own, strict=True)
        ]
        return (answers, True) if all(fits) else (own, False)

    def _forward(
        self, model: nn.Module, leaves: Sequence[Mapping[str, Any]], tensors: list[torch.Tensor], seed: int
    ) -> list[torch.Tensor]:
        arguments = [tensors[leaf["tensor"]] if "tensor" in leaf else leaf["value"] for leaf in leaves]
        return self._called(model, arguments, seed)

    def _called(self, model: nn.Module, arguments: Sequence[Any], seed: int) -> list[torch.Tensor]:
        torch.manual_seed(seed)
        with torch.no_grad():
            return _leaves(self._whole(model)(*arguments))


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
            message = str(error) if isinstance(error, UnusableTask) else f"{type(error).__name__}: {error}{hint}"
            answer = {"failed": message}
        line.send({**answer, "number": number})


def _leaves(outputs: Any) -> list[torch.Tensor]:
    leaves = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise UnusableTask("forward() must return a tensor or a flat tuple or list of tensors")
    return leaves


def _numbered(items: Sequence[Any]) -> list[dict[str, Any]]:
    leaves: list[dict[str, Any]] = []
    count = 0
    for item in items:
        if isinstance(item, torch.Tensor):
            leaves.append({"tensor": count})
            count += 1
        else:
            leaves.append({"value": item})
    return leaves


def _change(there: torch.Tensor, after: torch.Tensor) -> float:
    if there.shape != after.shape:
        return math.inf
    if not is_rounded(after):
        return 0.0 if torch.equal(there, after) else math.inf
    return comparison.errors(there, after, after, comparison.scale_of(after)).relative


def _put(targets: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> None:
    for target, output in zip(targets, outputs, strict=True):
        target.copy_(output)
