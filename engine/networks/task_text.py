"""Operators as a task's text: a flat Model that a person can read, with the parameter names of the network, and inputs
drawn like those that were recorded. Pure text; the caller proves that it computes what the network's module does.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.nn import functional

from engine.networks.graphs import Graph, name_of

END = 1 << 62
MASKED = -1e30
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@", "floor_divide": "//", "remainder": "%",
    "__and__": "&", "__or__": "|", "bitwise_and": "&", "bitwise_or": "|", "logical_and": "&", "logical_or": "|",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip
_METHODS = frozenset({
    "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "contiguous", "flatten", "unflatten",
    "type_as", "chunk", "split", "unbind", "mean", "sum", "masked_fill", "repeat", "t", "numel", "expand_as",
    "view_as", "new_ones", "new_zeros", "new_full", "cumsum", "triu", "tril", "index_select", "gather", "scatter_add",
    "index_add", "amax", "amin", "var", "std",
})  # fmt: skip
# Of an operator's arguments, how many the function of the same name takes.
_CUT = {"layer_norm": 5, "group_norm": 5}
# The function of that name takes its arguments in another order, and torch has one that does not.
_OTHER_ORDER = ("embedding_bag",)
_LEFT_OUT = ("pin_memory", "layout", "non_blocking")


@dataclass(frozen=True, slots=True)
class Part:
    """Operators that are to be a task, with what they had in a few calls: (inputs, outputs) of each. `state` gives each
    node its name in the task, `values` its tensor by that name; `buffers` are the names that are no parameters."""

    title: str
    nodes: Sequence[fx.Node]
    inputs: Mapping[fx.Node, str]
    state: Mapping[fx.Node, str]
    outputs: Sequence[fx.Node]
    values: Mapping[str, torch.Tensor]
    buffers: frozenset[str]
    calls: Sequence[tuple[list[torch.Tensor], list[torch.Tensor]]]
    constant: frozenset[str] = frozenset()
    """Inputs that were the same in all calls of the network that were seen."""

    @property
    def graph(self) -> Graph:
        """The same, to be run."""
        return Graph(tuple(self.nodes), tuple(self.inputs), self.state, tuple(self.outputs), values=self.values)


def written(part: Part, *, is_plain: bool = False) -> str:
    """The task's text; with `is_plain` operators are called as the dispatcher names them, for what reads wrong."""
    writer = _Writer(part, is_plain=is_plain)
    arguments = ", ".join(part.inputs.values())
    body = writer.body()
    setup = _setup(part)
    draws = [
        f"        {drawn(example)},  # {name}"
        for name, example in zip(part.inputs.values(), part.calls[0][0], strict=True)
    ]
    helper = _PUT if "_put(" in setup else ""
    return f'''"""{part.title}"""

import torch
import torch.nn.functional as F
from torch import nn

{helper}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
{setup}
    def forward(self, {arguments}):
{body}

def get_inputs():
    return [
{chr(10).join(draws)}
    ]


def get_init_inputs():
    return []
'''


_PUT = '''
def _put(module, name, value):
    """Register a tensor under a dotted name, as the network has it."""
    *path, last = name.split(".")
    for part in path:
        if part not in module._modules:
            module.add_module(part, nn.Module())
        module = module._modules[part]
    module.register_parameter(last, value) if isinstance(value, nn.Parameter) else module.register_buffer(last, value)

'''


def _setup(part: Part) -> str:
    """Lines of the constructor. Holders of parameters are empty modules: their names are what counts."""
    lines, made = [], set[str]()
    for name in dict.fromkeys(part.state.values()):
        value = drawn(part.values[name])
        is_buffer = name in part.buffers
        parts = name.split(".")
        if not all(part.isidentifier() for part in parts):
            lines.append(f'_put(self, "{name}", {value if is_buffer else f"nn.Parameter({value})"})')
            continue
        for length in range(1, len(parts)):
            holder = ".".join(parts[:length])
            if holder not in made:
                made.add(holder)
                lines.append(f"self.{holder} = nn.Module()")
        owner = ".".join(["self", *parts[:-1]])
        register = f'{owner}.register_buffer("{parts[-1]}", {value})'
        lines.append(register if is_buffer else f"self.{name} = nn.Parameter({value})")
    return "".join(f"        {line}\n" for line in lines)


class _Writer:
    """Writes one expression a node."""

    def __init__(self, part: Part, *, is_plain: bool) -> None:
        self._part = part
        self._is_plain = is_plain
        self._names: dict[fx.Node, str] = dict(part.inputs)
        self._names |= {node: _of_state(name, name in part.buffers) for node, name in part.state.items()}
        taken = {*part.inputs.values(), "self", "torch", "F", "nn"}
        for node in part.nodes:
            name = node.name
            while name in taken:
                name += "_"
            taken.add(name)
            self._names[node] = name
        first = next(iter(part.inputs.values()), "")
        self._device = f"{first}.device" if first else "None"

    def body(self) -> str:
        lines = [f"        {self._names[node]} = {self._expression(node)}" for node in self._part.nodes]
        results = [self._names[node] for node in self._part.outputs]
        return "\n".join([*lines, f"        return {', '.join(results)}\n"])

    def _expression(self, node: fx.Node) -> str:
        if node.target is operator.getitem:
            return f"{self._text(node.args[0])}[{self._text(node.args[1])}]"
        name, args = name_of(node), [self._text(part) for part in node.args]
        kwargs = {key: self._text(value) for key, value in node.kwargs.items() if key not in _LEFT_OUT}
        if self._is_plain:
            return _call(f"torch.{node.target!s}".replace("torch.aten", "torch.ops.aten"), args, kwargs)
        if (special := _SPECIAL.get(name)) and (text := special(node, args, kwargs)):
            return text
        if name in _INFIX and len(args) == 2 and not kwargs:
            return f"{args[0]} {_INFIX[name]} {args[1]}"
        if name in _METHODS and isinstance(node.args[0], fx.Node):
            return _call(f"{args[0]}.{name}", args[1:], kwargs)
        args = args[: _CUT.get(name, len(args))]
        if hasattr(functional, name) and name not in _OTHER_ORDER:
            return _call(f"F.{name}", args, kwargs)
        if hasattr(torch, name):
            return _call(f"torch.{name}", args, kwargs)
        return _call(f"torch.ops.{node.target!s}", args, kwargs)

    def _text(self, part: Any) -> str:
        if isinstance(part, fx.Node):
            return self._names[part]
        if isinstance(part, (list, tuple)):
            return "[" + ", ".join(map(self._text, part)) + "]"
        if isinstance(part, torch.device):
            return self._device
        if isinstance(part, float) and not math.isfinite(part):
            return f'float("{part}")'
        return repr(part)


def _call(function: str, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    return f"{function}({', '.join([*args, *(f'{name}={value}' for name, value in kwargs.items())])})"


def _of_state(name: str, is_buffer: bool) -> str:
    if all(part.isidentifier() for part in name.split(".")):
        return f"self.{name}"
    return f'self.get_{"buffer" if is_buffer else "parameter"}("{name}")'


Special = Callable[[fx.Node, Sequence[str], Mapping[str, str]], str]


def _slice(node: fx.Node, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    dim = int(node.args[1]) if len(node.args) > 1 else 0  # type: ignore[arg-type]
    start, end, step = (*node.args[2:], *[None] * 3)[:3]
    if dim < 0 or kwargs:
        return ""
    ends = "" if end is None or (isinstance(end, int) and end >= END) else f"{end}"
    text = f"{start or ''}:{ends}" + (f":{step}" if step not in (None, 1) else "")
    return f"{args[0]}[{':, ' * dim}{text}]"


def _select(node: fx.Node, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    return f"{args[0]}[{':, ' * int(args[1])}{args[2]}]" if int(args[1]) >= 0 else ""


def _index(node: fx.Node, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    places = re.sub(r"\bNone\b", ":", args[1])
    return f"{args[0]}{places}"


def _to(node: fx.Node, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    dtype = node.meta["val"].dtype
    return f"{args[0]}.to({dtype})"


def _embedding(node: fx.Node, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    return f"F.embedding({args[1]}, {args[0]})"  # a padding index changes gradients alone


def _batch_norm(node: fx.Node, args: Sequence[str], kwargs: Mapping[str, str]) -> str:
    x, weight, bias, mean, variance, training, momentum, eps = args[:8]
    return f"F.batch_norm({x}, {mean}, {variance}, {weight}, {bias}, {training}, {momentum}, {eps})"


_SPECIAL: Mapping[str, Special] = {
    "slice": _slice, "select": _select, "index": _index, "to": _to, "_to_copy": _to, "embedding": _embedding,
    "batch_norm": _batch_norm,
}  # fmt: skip


def drawn(tensor: torch.Tensor) -> str:
    """An expression that draws a tensor like this one: its shape, dtype, order in memory, and what its values are like.

    What is constant, counted up, a triangle or a mask stays that; other numbers keep mean, deviation, sign and range.
    """
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda dim: (-strides[dim], dim))
    if tensor.dim() > 1 and order != list(range(tensor.dim())) and tensor.permute(order).is_contiguous():
        back = [order.index(dim) for dim in range(tensor.dim())]
        text = _drawn(tensor.permute(order))
        whole = f"({text})" if " " in re.sub(r"\([^()]*\)", "", text) else text
        return f"{whole}.permute({', '.join(map(str, back))})"
    return _drawn(tensor)


def _drawn(tensor: torch.Tensor) -> str:
    shape, dtype = f"({', '.join(map(str, tensor.shape))}{',' if tensor.dim() == 1 else ''})", tensor.dtype
    suffix = "" if dtype in (torch.float32, torch.bool) else f", dtype={dtype}"
    if tensor.numel() == 0:
        return f"torch.empty({shape}{suffix})"
    values = tensor.detach().cpu()
    if dtype == torch.bool:
        return _bools(values, shape)
    first = values.flatten()[0].item()
    if dtype.is_complex:
        return f"torch.randn({shape}{suffix})"
    if bool((values == first).all()):
        plain = "zeros" if first == 0 else "ones" if first == 1 else ""
        return f"torch.{plain}({shape}{suffix})" if plain else f"torch.full({shape}, {_number(first)}{suffix})"
    return _floats(values, shape, dtype) if dtype.is_floating_point else _integers(values, shape, suffix)


def _bools(values: torch.Tensor, shape: str) -> str:
    if bool(values.all()) or not bool(values.any()):
        return f"torch.{'ones' if bool(values.all()) else 'zeros'}({shape}, dtype=torch.bool)"
    if values.dim() > 1:
        for name in ("tril", "triu"):
            if torch.equal(values, getattr(torch.ones_like(values), name)()):
                return f"torch.ones({shape}, dtype=torch.bool).{name}()"
    return f"torch.rand({shape}) < {float(values.float().mean()):.3g}"


def _integers(values: torch.Tensor, shape: str, suffix: str) -> str:
    low, high = int(values.min()), int(values.max())
    length = values.shape[-1]
    count = torch.arange(length, dtype=values.dtype)
    if length > 1 and torch.equal(values - values.select(-1, 0).unsqueeze(-1), count.expand_as(values)):
        start = values.flatten()[0].item()
        if torch.equal(values, (count + start).expand_as(values)):
            return (
                f"torch.arange({start}, {start + length}{suffix.replace(', dtype=torch.int64', '')}).expand({shape})"
                + (".clone()" if values.dim() > 1 else "")
            )
    plain = suffix.replace(", dtype=torch.int64", "")
    step = int(values.flatten()[1]) - int(values.flatten()[0]) if length > 1 else 0
    if values.dim() == 1 and step > 1 and torch.equal(values, count * step + values[0]):
        return f"torch.arange({low}, {high + 1}, {step}{plain})"
    text = f"torch.randint({low}, {high + 1}, {shape}{plain})"
    if length > 2 and bool((values.diff(dim=-1) >= 0).all()):  # as offsets are, whose first one counts
        return f"{text}.sort(-1).values.index_fill(-1, torch.tensor([0]), {low})"
    return text


def _floats(values: torch.Tensor, shape: str, dtype: torch.dtype) -> str:
    wide = values.double()
    finite = wide[torch.isfinite(wide) & (wide > MASKED)]
    cast = "" if dtype == torch.float32 else f".to({dtype})"
    if finite.numel() < wide.numel():
        return _mask(wide, finite, shape) + cast
    mean, deviation = float(finite.mean()), float(finite.std())
    low = float(finite.min())
    if low >= 0:
        spread = f"torch.rand({shape}) * {_number(2 * (mean - low))}"
        text = spread if low < 0.1 * mean else f"{spread} + {_number(low)}"
        return f"({text}){cast}" if cast else text
    text = f"torch.randn({shape})"
    if not 0.8 < deviation < 1.25:
        text += f" * {_number(deviation)}"
    if abs(mean) > 0.1 * deviation:
        text += f" + {_number(mean)}"
    return f"({text}){cast}" if cast else text


def _mask(wide: torch.Tensor, finite: torch.Tensor, shape: str) -> str:
    """An additive mask: nothing, or a number that hides."""
    hidden = wide[~(torch.isfinite(wide) & (wide > MASKED))].flatten()[0].item()
    number = 'float("-inf")' if math.isinf(hidden) else repr(hidden)
    full = torch.full_like(wide, hidden).triu(1) if wide.dim() > 1 else wide
    if torch.equal(wide, torch.where(torch.isnan(full), 0.0, full)):
        return f"torch.full({shape}, {number}).triu(1)"
    share = finite.numel() / wide.numel()
    return f"torch.where(torch.rand({shape}) < {share:.3g}, 0.0, {number})"


def _number(value: float) -> str:
    return f"{value:.4g}"
