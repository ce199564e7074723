"""One model and its private input buffers, on the host or on a GPU: load, go, store. Runs in both workers.

So both pay the same. On a GPU a turn is several calls, each on inputs of its own and after the L2 cache has been
overwritten: one alone would be too short for the evaluator's clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import torch

from engine.evaluator.checks import arguments, poison
from engine.evaluator.checks.arguments import Kinds
from engine.evaluator.checks.gradients import ForwardBackward
from engine.evaluator.checks.poison import Poison, fill
from engine.evaluator.checks.structure import form_of, leaves_of
from engine.evaluator.machine import device_memory, shared_tensors
from engine.evaluator.machine.shared_tensors import SharedTensors, TensorSpec, put

# An aligned allocation needs a hole somewhat larger than itself.
SPARE = 1024
_clock = time.perf_counter_ns
QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"  # the driver reads it when it is started
# Twice, so that nothing of the inputs survives whatever the replacement rule.
FLUSHES = 2
_synchronize = torch.cuda.synchronize
_Event: Any = torch.cuda.Event
# Taken before a candidate's code runs, which may put something else in its place.
_wait_for_device: Callable[[], None] = torch._C._cuda_synchronize if torch.version.cuda else lambda: None
_is_initialized: Callable[[], bool] = torch.cuda.is_initialized


class ModelCaller:
    """Calls one model on inputs from the shared group `inputs`; its outputs go to `outputs_group`."""

    def __init__(
        self,
        model: Any,
        shared: SharedTensors,
        specs: Sequence[TensorSpec],
        outputs_group: str,
        kinds: Kinds | None = None,
    ) -> None:
        """`kinds`: the task's own objects among arguments, where this process has their classes."""
        self._model = model
        self._kinds = kinds
        self._shared = shared
        self._dense = self._buffers = [shared_tensors.private_copy(spec, shared.device) for spec in specs]
        self._outputs_group = outputs_group
        self._outputs: Any = None
        self._kept: Any = None
        self._described: list[dict[str, Any]] = []
        self.flushed = 0
        """Elements that it overwrites itself before a call."""

    def load(
        self, leaves: arguments.Node, poisoned: Poison | None, slots: int, is_strided: bool = False
    ) -> dict[str, Any]:
        """Copy contents into the same private buffers. `leaves` are what get_inputs returned, tensors by number.

        On the host every call is asked for by itself, so there is one slot. Once `is_strided` buffers have gaps.
        The answer says where the buffers lie: the evaluator may put other contents there before the call.
        """
        self._buffers = list(map(shared_tensors.strided_like, self._dense)) if is_strided else self._dense
        self.refill()
        self._arguments = arguments.rebuilt(leaves, self._buffers, self._kinds)
        if poisoned:
            self._poison_free_memory(poisoned)
        return {"loaded": True, "buffers": [buffer.data_ptr() for buffer in self._buffers]}

    def go(self) -> dict[str, Any]:
        """The timed call, and where its outputs lie. They stay until the next call's have been told from them."""
        given, named = self._arguments.by_position, self._arguments.named
        with torch.no_grad():
            start = _clock()
            outputs = self._model(*given, **named)
            nanoseconds = _clock() - start
        lent, held = storages_of(self._buffers), storages_of([*leaves_of(self._outputs), *leaves_of(self._kept)])
        self._described = [self._layout_of(leaf, lent, held) for leaf in leaves_of(outputs)]
        self._outputs = outputs
        return {"ns": nanoseconds, "outputs": self._described, "container": form_of(outputs)}

    def refill(self) -> None:
        """What stands in the shared memory, once more into the buffers that a call reads."""
        for buffer, source in zip(self._buffers, self._shared["inputs"], strict=True):
            put(buffer, source)

    def call(self) -> Any:
        """The model on what was loaded, and nothing around it."""
        return self._arguments.passed_to(self._model)

    def take(self, outputs: Any) -> None:
        """Have these for the outputs of the last call."""
        self._outputs, self._described = outputs, []

    @property
    def lent(self) -> set[int]:
        """Addresses of the memory that a call is given."""
        return storages_of(self._buffers)

    def store(self, hold: bool, copies: bool) -> dict[str, Any]:
        """Describe the outputs and, if asked and they fit, copy them and the input buffers out for the evaluator."""
        outputs = self._outputs
        if copies:
            self._copy_out(outputs)
            for buffer, source in zip(self._given(), self._shared["inputs"], strict=True):
                source.copy_(buffer)
        if not hold:
            self._outputs = None
        return {"outputs": self._described, "container": form_of(outputs)}

    def keep(self) -> dict[str, Any]:
        """Go on holding the outputs stored last, however many calls follow."""
        self._kept = self._outputs
        return {"kept": True}

    def recall(self) -> dict[str, Any]:
        """Copy the outputs kept out once more."""
        self._copy_out(self._kept)
        return {"recalled": True}

    def _given(self) -> list[torch.Tensor]:
        """What the call was given, as it has left it: of gradients the copies that backward got."""
        handed = self._model.handed if isinstance(self._model, ForwardBackward) else []
        return [*self._buffers[: len(self._buffers) - len(handed)], *handed]

    def _allocated(self) -> list[torch.Tensor]:
        """One like each tensor that a call makes: its outputs, and the gradients that backward is handed."""
        handed = len(self._model.plan.outputs) if isinstance(self._model, ForwardBackward) else 0
        return [*self._shared[self._outputs_group], *self._buffers[len(self._buffers) - handed :]]

    def _copy_out(self, outputs: Any) -> None:
        leaves, targets = leaves_of(outputs), self._shared[self._outputs_group]
        if len(leaves) == len(targets):
            for leaf, target in zip(leaves, targets, strict=True):
                if type(leaf) is torch.Tensor and leaf.shape == target.shape and leaf.dtype == target.dtype:
                    target.copy_(leaf)

    def _layout_of(self, leaf: Any, lent: Container[int], held: Container[int]) -> dict[str, Any]:
        if type(leaf) is not torch.Tensor:
            return {"type": f"{type(leaf).__module__}.{type(leaf).__qualname__}"[:200]}
        if leaf.layout is not torch.strided:
            return {"type": f"tensor of layout {leaf.layout}"}
        address = storage_of(leaf)
        return {
            "type": "torch.Tensor",
            "shape": list(leaf.shape),
            "dtype": str(leaf.dtype).removeprefix("torch."),
            "device": leaf.device.type,
            "stride": list(leaf.stride()),
            "is_contiguous": leaf.is_contiguous(),
            "address": leaf.data_ptr(),
            "is_input": address in lent,
            "is_reused": address in held,
        }

    def _poison_free_memory(self, poisoned: Poison) -> None:
        """What `empty` hands out next has held poison, so that a forgotten write cannot pass by an old right answer."""
        blocks = [torch.empty(target.numel() + SPARE, dtype=target.dtype) for target in self._allocated()]
        poison.fill(blocks, poisoned)


def storage_of(tensor: torch.Tensor) -> int:
    """Address of the memory that a tensor and its views share; 0 if they have none."""
    return int(tensor.untyped_storage().data_ptr())


def storages_of(leaves: Iterable[Any]) -> set[int]:
    """Addresses of the memory of those leaves that have some."""
    plain = (leaf for leaf in leaves if type(leaf) is torch.Tensor and leaf.layout is torch.strided)
    return {storage_of(leaf) for leaf in plain} - {0}


class DeviceModelCaller(ModelCaller):
    """Calls one model on the inputs of each slot; slot 0 is what `store`, `keep` and `recall` are about."""

    def __init__(
        self,
        model: Any,
        shared: SharedTensors,
        specs: Sequence[TensorSpec],
        outputs_group: str,
        kinds: Kinds | None = None,
    ) -> None:
        super().__init__(model, shared, specs, outputs_group, kinds)
        self._specs = specs
        self._slots = [self._buffers]
        self._marks = [_marks()]
        self._results: list[Any] = []
        cache = torch.cuda.get_device_properties().L2_cache_size
        self._flush = torch.empty(FLUSHES * cache, dtype=torch.uint8, device=shared.device)
        self.flushed = self._flush.numel()

    def load(
        self, leaves: arguments.Node, poisoned: Poison | None, slots: int, is_strided: bool = False
    ) -> dict[str, Any]:
        """Copy contents into every slot's buffers, and tell where those lie."""
        self._buffers = list(map(shared_tensors.strided_like, self._dense)) if is_strided else self._dense
        self._slots[0] = self._buffers
        while len(self._slots) < slots:
            self._slots.append([shared_tensors.private_copy(spec, self._shared.device) for spec in self._specs])
            self._marks.append(_marks())
        del self._slots[slots:], self._marks[slots:]
        for buffers in self._slots:
            for buffer, source in zip(buffers, self._shared["inputs"], strict=True):
                put(buffer, source)
        self._calls = [arguments.rebuilt(leaves, buffers, self._kinds) for buffers in self._slots]
        self._arguments = self._calls[0]
        if poisoned:
            self._poison_free_memory(poisoned)
        return {"loaded": True, "buffers": [[_claim(buffer) for buffer in buffers] for buffers in self._slots]}

    def go(self) -> dict[str, Any]:
        """A turn: nanoseconds of its calls on the device and on the host in all, and where each call's outputs lie."""
        results = []
        host_ns = 0
        calls = [(call.by_position, call.named) for call in self._calls]
        with torch.no_grad():
            for (given, named), (begin, end) in zip(calls, self._marks, strict=True):
                self._flush.zero_()
                begin.record()
                started = _clock()
                results.append(self._model(*given, **named))
                host_ns += _clock() - started
                end.record()
            _synchronize()
        nanoseconds = sum(begin.elapsed_time(end) for begin, end in self._marks) * 1e6
        layouts = self._layouts_of(results)
        self._results, self._outputs, self._described = results, results[0], layouts[0]["outputs"]
        return {"ns": max(1, round(nanoseconds)), "host_ns": host_ns, **layouts[0], "calls": layouts}

    def _layouts_of(self, results: list[Any]) -> list[dict[str, Any]]:
        lent = storages_of(buffer for buffers in self._slots for buffer in buffers)
        held = storages_of(leaf for result in (*self._results, self._outputs, self._kept) for leaf in leaves_of(result))
        layouts = []
        for result in results:
            leaves = leaves_of(result)
            outputs = [self._layout_of(leaf, lent, held) for leaf in leaves]
            layouts.append({"outputs": outputs, "container": form_of(result)})
            held |= storages_of(leaves)
        return layouts

    def _layout_of(self, leaf: Any, lent: Container[int], held: Container[int]) -> dict[str, Any]:
        layout = super()._layout_of(leaf, lent, held)
        if layout.get("device") == "cuda" and leaf.numel():
            layout["address"] = _claim(leaf)
        return layout

    def _poison_free_memory(self, poisoned: Poison) -> None:
        """What `empty` hands out next has held poison; the results of the turn before make room for it."""
        self._results = []
        self._outputs = None
        blocks = [
            torch.empty(target.numel() + SPARE, dtype=target.dtype, device=target.device)
            for _ in self._slots
            for target in self._allocated()
        ]
        fill(blocks, poisoned)


def _marks() -> tuple[Any, Any]:
    """Begin and end of a call. Recorded once, because an event comes into being then: not while the clock runs."""
    begin, end = (_Event(enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    return begin, end


def _claim(tensor: torch.Tensor) -> dict[str, Any]:
    handle, offset = device_memory.export(tensor.data_ptr())
    return {"handle": handle.hex(), "offset": offset}


def of(
    model: Any, shared: SharedTensors, specs: Sequence[TensorSpec], outputs_group: str, kinds: Kinds | None = None
) -> ModelCaller:
    """The caller for the device that the shared memory is on."""
    kind = ModelCaller if shared.device == "cpu" else DeviceModelCaller
    return kind(model, shared, specs, outputs_group, kinds)


def open_device(device: str, *, is_timed: bool) -> float:
    """Make this process's context on a GPU, and tell how many seconds that took; none on the CPU.

    Where none of its calls `is_timed` it gets one queue in place of eight: the driver makes such a context in half the
    time (0.06 s in place of 0.12 on an H100), one at a time for all GPUs of a host, and its one stream needs no more.
    Not for a candidate: one queue would put its streams in order, and hide a race between them.
    """
    if device == "cpu":
        return 0.0
    began = time.monotonic()
    if not is_timed:
        os.environ[QUEUES] = "1"
    torch.empty(1, device=device)
    os.environ.pop(QUEUES, None)
    settle()
    return time.monotonic() - began


def settle() -> None:
    """Wait for what this process asked of its GPU; an error of a kernel launched earlier shows here.

    Raises:
        RuntimeError: as torch names the device's error.
    """
    if _is_initialized():
        _wait_for_device()
