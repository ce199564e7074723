"""How much memory judging a task on the host takes, from tensors that have shapes and no contents. Allocates none.

It runs the task's module: `engine.evaluator.processes.estimating` does so in a sandbox.
"""

from __future__ import annotations

import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from engine.evaluator.checks import structure
from engine.evaluator.checks.arguments import Arguments, Kinds, Unusable, flattened, of_constructor
from engine.evaluator.checks.comparison import wide_dtype
from engine.evaluator.checks.executed import TASK_FILE, executed

Result = TypeVar("Result")
PROCESSES = 400 << 20
UNUSABLE = "Model(*get_init_inputs()) ends in "
FAILS = "this module fails when it is called: "
REFUSED = "this task cannot be judged: "
# Told for a task with a tensor of so many bytes, or more, that PyTorch cannot count them.
OVERFLOWS = 1 << 63
_OVERFLOWED = ("Storage size calculation overflowed", "multiplication overflow", "Overflow when unpacking long")


class _UnusableError(Exception):
    """The module cannot be made or called, whatever the values."""


class _Living(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the tensors that live, and the most there were at once."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._holders: Counter[int] = Counter()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self._hold(tensor)
        return result

    def _hold(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        self.now += size if not self._holders[key] else 0
        self._holders[key] += 1
        self.most = max(self.most, self.now)
        weakref.finalize(tensor, self._release, key, size)

    def _release(self, key: int, size: int) -> None:
        self._holders[key] -= 1
        self.now -= size if not self._holders[key] else 0


def cost(source: str, *, backward: bool = False) -> tuple[int, int] | str:
    """The most bytes that evaluator and workers hold together, while they time, and the operations of one call as far
    as products and convolutions count. A text says why a task cannot be followed; one that begins with
    `UNUSABLE`, `FAILS` or `REFUSED` is of a task that no run could use.

    Each set of inputs, outputs and weights is counted where it stands: twice shared, once more in each worker's own
    memory (weights three times in the reference's: as constructed and as another seed draws them too), and widened to
    float64 for the answer, with what the reference holds on its way there. The share of the
    evaluator, for comparing and for the contents of timed calls, is as it was measured on tasks of 64 to 285 MB a
    tensor. With the backward pass gradients of outputs go in, those of inputs and weights come out, and what forward
    makes on its way is kept.
    """
    try:
        with FlopCounterMode(display=False) as counter:
            inputs, weights, outputs, on_the_way = _measured(source)
    except Exception as error:  # noqa: BLE001 - a task is a person's code, and may look at values that are not there
        if any(words in str(error) for words in _OVERFLOWED):
            return OVERFLOWS, 0
        return str(error) if isinstance(error, _UnusableError) else f"{type(error).__name__}: {error}"
    if backward:
        inputs, outputs, on_the_way = [*inputs, *outputs], [*outputs, *inputs, *weights], 2 * on_the_way
    return _bytes(inputs, weights, outputs, on_the_way), int(counter.get_total_flops())


def _bytes(
    inputs: list[torch.Tensor], weights: list[torch.Tensor], outputs: list[torch.Tensor], on_the_way: int
) -> int:
    given, kept, made = (_size(group) for group in (inputs, weights, outputs))
    given_wide, kept_wide, made_wide = (_size(group, is_wide=True) for group in (inputs, weights, outputs))
    widening = max((_size([t], is_wide=True) / max(1, _size([t])) for t in (*outputs, *inputs)), default=1)
    shared = 2 * (given + kept + made) + made_wide
    reference = 3 * kept + 2 * given + made + given_wide + kept_wide + int(widening * on_the_way)
    candidate = kept + given + made
    evaluator = 5 * made_wide + 8 * given + 9 * made
    return PROCESSES + shared + reference + candidate + evaluator


def _measured(source: str) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor], int]:
    """Inputs, weights and outputs of the task, and the most bytes that a call has beside inputs and weights."""
    with FakeTensorMode(), torch.no_grad(), _Living() as living:
        names = executed(source)
        structure.read_registered()
        given = list(names["get_init_inputs"]())
        _see_that("get_init_inputs()", lambda: of_constructor(given, Kinds()))
        try:
            model = names["Model"](*given)
        except (TypeError, NameError, AttributeError) as error:  # no want of values, which are other errors
            raise _UnusableError(f"{UNUSABLE}{type(error).__name__}: {error}") from error
        returned = names["get_inputs"]()
        inputs = _see_that("get_inputs()", lambda: Arguments.of(returned))
        tensors, _ = _see_that("get_inputs()", lambda: flattened(inputs, Kinds()))
        before, living.most = living.now, living.now
        try:
            result = inputs.passed_to(model)
        except (TypeError, NameError, AttributeError) as error:
            if not _is_certain(error, source):
                raise
            message = str(error).replace("'FakeTensor'", "'Tensor'")
            raise _UnusableError(f"{FAILS}{type(error).__name__}: {message}") from error
        on_the_way = living.most - before
        try:
            outputs = structure.leaves_of(result)
        except structure.TooMuch as error:
            raise _UnusableError(f"{REFUSED}{error}") from error
        if refusal := structure.refusal(outputs):
            raise _UnusableError(f"{REFUSED}{refusal}")
    return tensors, list(model.state_dict().values()), outputs, on_the_way


def _see_that(what: str, can_be_used: Callable[[], Result]) -> Result:
    try:
        return can_be_used()
    except Unusable as error:
        raise _UnusableError(f"{REFUSED}{what} returns {error}") from error


def _is_certain(error: Exception, source: str) -> bool:
    """Whether a call would end in it with values too: it is in a line of the task, which does not raise it itself.

    Below that line stands only how PyTorch calls modules and looks up names. Below anything else of PyTorch, a tensor
    without contents may be what is wrong.
    """
    lines, where = source.splitlines(), 0
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == TASK_FILE:
            where = frame.lineno or 0
        elif where and frame.name != "__getattr__" and frame.filename != torch.nn.modules.module.__file__:
            return False
    if not 0 < where <= len(lines) or lines[where - 1].lstrip().startswith("raise"):
        return False  # as a module does that asks for the exact type of its inputs
    return isinstance(error, AttributeError) or "FakeTensor" not in str(error)


def _size(tensors: Iterable[torch.Tensor], *, is_wide: bool = False) -> int:
    total = 0
    for tensor in tensors:
        name = str(tensor.dtype).removeprefix("torch.")
        dtype = getattr(torch, wide_dtype(tensor.dtype) if is_wide else name)
        total += tensor.numel() * dtype.itemsize
    return total
