"""A module as operators: traced by torch.export, tidied, and run operator by operator.

Knows no network and no file. What a trace specialises, shapes and every value that is no tensor, is that of one call.
"""

from __future__ import annotations

import contextlib
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from engine.evaluator.checks import flop_formulas

MOST_REASON = 200
_DROPPED = ("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range_for_size")
_SAME = ("alias", "detach", "lift_fresh", "lift_fresh_copy")
_STATE = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
_SYMBOLS = (torch.SymInt, torch.SymBool, torch.SymFloat)
PRODUCTS = frozenset({
    "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "bilinear", "scaled_dot_product_attention",
    "lstm", "gru", "rnn_tanh", "rnn_relu", "convolution",
    *(f"conv{kind}{size}d" for kind in ("", "_transpose") for size in (1, 2, 3)),
})  # fmt: skip
_REDUCING = frozenset({
    "softmax", "_softmax", "log_softmax", "_log_softmax", "layer_norm", "native_layer_norm", "rms_norm", "group_norm",
    "batch_norm", "instance_norm", "mean", "sum", "var", "var_mean", "std", "amax", "amin", "logsumexp", "norm",
    "linalg_vector_norm", "glu", "gelu", "silu", "dropout", "masked_fill", "where", "to", "_to_copy", "type_as", "cat",
    "prelu", "leaky_relu", "elu", "softplus", "mish", "hardswish", "hardsigmoid", "relu6", "celu", "selu",
})  # fmt: skip


class NoGraph(Exception):
    """A module that cannot be traced; the message is the end of a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Graph:
    """What one call of a module computes. Nodes are of torch.fx, in the order in which they run."""

    nodes: tuple[fx.Node, ...]
    """Operators alone."""
    inputs: tuple[fx.Node, ...]
    """Tensors that a call is given, in the order in which they stand in (args, kwargs)."""
    state: Mapping[fx.Node, str]
    """Parameters, buffers and constants, by their names in the module."""
    outputs: tuple[fx.Node, ...]
    """Tensors that it computes and returns; one that it returns twice stands here once."""
    output_places: tuple[int, ...] = ()
    """Where each stands among the tensors that it returns."""
    values: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """Of the state, by name."""


def trace(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Graph:
    """Trace one call.

    Raises:
        NoGraph: torch.export does not take it, or what it gives is no plain list of operators.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own, of its tracer
            program = torch.export.export(module, tuple(args), dict(kwargs), strict=False)
            if any(_is_unplain(node) for node in program.graph.nodes):
                program = program.run_decompositions({})  # no in-place operators, no blocks within blocks
    except Exception as error:  # torch.export runs the user's code and may raise anything
        raise NoGraph(f"torch.export does not take it: {reason_of(error)}") from error
    if any(
        isinstance(node.meta.get("val"), torch.SymInt | torch.SymBool | torch.SymFloat) for node in program.graph.nodes
    ):
        raise NoGraph("a shape in it depends on the values of its inputs")
    if unplain := [node for node in program.graph.nodes if _is_unplain(node)]:
        raise NoGraph(f"its graph holds {unplain[0].target}, which changes a tensor or branches")
    return _graph(module, program)


def reason_of(error: BaseException) -> str:
    """An error's first line, with its kind."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:MOST_REASON]


def _is_unplain(node: fx.Node) -> bool:
    if node.op in ("get_attr", "call_module"):
        return True
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    return not isinstance(node.target, torch._ops.OpOverload) or node.target._schema.is_mutable


def _graph(module: nn.Module, program: torch.export.ExportedProgram) -> Graph:
    signature = program.graph_signature
    if any(spec.kind in (OutputKind.USER_INPUT_MUTATION,) for spec in signature.output_specs):
        raise NoGraph("a call changes a tensor that it is given, as a cache does")
    _tidy(program.graph)
    holders = [node for node in program.graph.nodes if node.op == "placeholder"]
    specs = dict(zip(holders, signature.input_specs, strict=True))
    state = {node: str(spec.target) for node, spec in specs.items() if spec.kind in _STATE and node.users}
    inputs = tuple(
        node for node, spec in specs.items() if spec.kind is InputKind.USER_INPUT and _is_tensor(node)
    )  # fmt: skip
    result = next(node for node in program.graph.nodes if node.op == "output").args[0]
    kept = [kind.kind is OutputKind.USER_OUTPUT for kind in signature.output_specs]
    returned = [node for node, is_kept in zip(result, kept, strict=True) if is_kept and _is_tensor(node)]
    outputs = {node: returned.index(node) for node in returned if node.op == "call_function"}
    if not outputs:
        raise NoGraph("it computes no tensor that it returns")
    held = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    held |= program.constants
    nodes = tuple(node for node in program.graph.nodes if node.op == "call_function")
    values = {name: held[name].detach() for name in state.values()}
    return Graph(nodes, inputs, state, tuple(outputs), tuple(outputs.values()), values)


def key_of(
    nodes: Sequence[fx.Node], inputs: Sequence[fx.Node], state: Mapping[fx.Node, str], outputs: Sequence[fx.Node]
) -> tuple[object, ...]:
    """What equal work shares: operators, constants, shapes, dtypes, strides, and how they hang together."""
    order = {node: f"%{number}" for number, node in enumerate((*inputs, *nodes))} | dict(state)
    described = [
        (name_of(node), str(fx.node.map_arg((node.args, dict(node.kwargs)), lambda part: _Name(order[part]))))
        for node in nodes
    ]
    return (*described, *(_facts(node) for node in (*inputs, *state, *outputs)))


class _Name(str):
    """A text that shows itself without quotes, unlike a constant of the graph."""

    __slots__ = ()
    __repr__ = str.__str__


def _facts(node: fx.Node) -> tuple[object, ...]:
    value = node.meta["val"]
    return tuple(value.shape), str(value.dtype), tuple(value.stride())


def _is_tensor(node: Any) -> bool:
    return isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor)


def _tidy(graph: fx.Graph) -> None:
    """Leave out what computes nothing: assertions, conversions to what a tensor is already, dropout in evaluation."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target is operator.getitem:
            continue
        if name_of(node) in _DROPPED:
            graph.erase_node(node)
        elif _is_same(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users:
            graph.erase_node(node)


def _is_same(node: fx.Node) -> bool:
    name, first = name_of(node), node.args[0] if node.args else None
    if name in _SAME:
        return True
    if name == "dropout":
        return not node.args[2]
    if name not in ("to", "_to_copy", "type_as", "contiguous") or not (_is_tensor(first) and _is_tensor(node)):
        return False
    before, after = first.meta["val"], node.meta["val"]  # type: ignore[union-attr]
    return bool(before.dtype == after.dtype and before.device == after.device and before.stride() == after.stride())


def name_of(node: fx.Node) -> str:
    """An operator's name without its namespace and overload: `layer_norm`."""
    target = node.target
    return target._schema.name.split("::")[-1] if isinstance(target, torch._ops.OpOverload) else "getitem"


def is_view(node: fx.Node) -> bool:
    """Whether it only changes how a tensor is looked at."""
    if node.target is operator.getitem:
        return True
    returns = node.target._schema.returns  # type: ignore[union-attr]
    is_alias = bool(returns) and returns[0].alias_info is not None and not returns[0].alias_info.is_write
    return is_alias or name_of(node) in ("reshape", "flatten", "unflatten")


def is_product(node: fx.Node) -> bool:
    """Whether it multiplies matrices, or convolves."""
    return name_of(node) in PRODUCTS


def is_cheap(node: fx.Node) -> bool:
    """Whether it is elementwise, a reduction or a normalisation: what a kernel fuses with what stands around."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not _is_tensor(node):
        return False
    return torch.Tag.pointwise in target.tags or name_of(node) in _REDUCING


def places_of(node: fx.Node) -> str:
    """The path of the module whose forward called the operator."""
    stack = node.meta.get("nn_module_stack") or {}
    return str(list(stack.values())[-1][0]) if stack else ""


def counted(nodes: Iterable[fx.Node]) -> dict[str, int]:
    """Operators by name, without those that only change a view."""
    counts: dict[str, int] = {}
    for node in nodes:
        if not is_view(node):
            counts[name_of(node)] = counts.get(name_of(node), 0) + 1
    return counts


def flop_of(nodes: Iterable[fx.Node]) -> int:
    """Operations of products by PyTorch's formulas, as its FlopCounterMode counts them."""
    return sum(map(_flop, nodes))


def _flop(node: fx.Node) -> int:
    if not isinstance(node.target, torch._ops.OpOverload) or not is_product(node):
        return 0
    args, kwargs = pytree.tree_map_only(fx.Node, lambda part: part.meta.get("val"), (node.args, dict(node.kwargs)))
    return flop_formulas.flop_of(node.target, args, kwargs, node.meta["val"]) or _of_linear(node, args)


def _of_linear(node: fx.Node, args: Sequence[Any]) -> int:
    """`linear` and `matmul` are counted below the dispatcher, where they are mm and bmm."""
    if name_of(node) not in ("linear", "matmul"):
        return 0
    return 2 * int(node.meta["val"].numel()) * int(args[0].shape[-1])


Watch = Callable[[fx.Node], contextlib.AbstractContextManager[Any]]


def run(
    graph: Graph,
    given: Sequence[torch.Tensor],
    *,
    wanted: Iterable[fx.Node] = (),
    state: Mapping[str, torch.Tensor] | None = None,
    watch: Watch | None = None,
) -> dict[fx.Node, torch.Tensor]:
    """Run the operators on these inputs, and return the outputs and what else is wanted of them."""
    keep = {*graph.outputs, *wanted}
    values: dict[fx.Node, Any] = dict(zip(graph.inputs, given, strict=True))
    held = graph.values if state is None else state
    values |= {node: held[name] for node, name in graph.state.items()}
    last = {used: node for node in graph.nodes for used in node.all_input_nodes}
    for node in graph.nodes:
        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
        with watch(node) if watch else contextlib.nullcontext():
            values[node] = node.target(*args, **kwargs)  # type: ignore[operator]
        for used in node.all_input_nodes:
            if last[used] is node and used not in keep and used not in graph.state:
                values.pop(used, None)
    return {node: values[node] for node in keep if node in values}
