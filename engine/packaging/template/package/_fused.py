"""A backend of torch.compile that puts kernels in the place of operators of the network's graph, whatever modules they
are from, and hands all else to PyTorch's own compiler.

    torch.compile(network, backend=backend(("norm_and_add",)), dynamic=False)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.tools_common import legalize_graph
from torch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

from . import _dispatch, _operators
from ._entries import Entry, Input
from ._modules import NO_BACKWARD
from ._table import ENTRIES, REGIONS

INDUCTOR, EAGER = "inductor", "eager"
NOT_FOUND = "a compiled graph has no such operators of the sizes that the kernel was judged at"
_SAME = ("alias", "detach", "lift_fresh", "lift_fresh_copy")
_patterns: dict[int, fx.Graph] = {}


def backend(
    chosen: Collection[str], *, inner: str = INDUCTOR, mode: str | None = None
) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
    """The backend for regions of these names. `inner` compiles the rest: `inductor`, with one of its modes, or
    `eager`."""

    def compiled(module: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        module = _with_kernels(module, examples, chosen)
        if inner == EAGER:
            return module.forward
        import torch._inductor

        options = torch._inductor.list_mode_options(mode) if mode else None
        return torch._inductor.compile(module, list(examples), options=options)  # type: ignore[no-any-return]

    return compiled


def _with_kernels(module: fx.GraphModule, examples: Sequence[Any], chosen: Collection[str]) -> fx.GraphModule:
    regions = [region for region in REGIONS if region.name in chosen and not region.places]
    if reason := _why_not(examples):
        for region in regions:
            _dispatch.note("reference", f"{region.name}: {reason}")
        return module
    traced = _traced(module, examples)
    for region in regions:
        if count := sum(_replaced(traced, number) for number in region.entries):
            _dispatch.note("kernel", f"{region.name}: {count} in a compiled graph")
        else:  # no warning: a workload that does not call it compiles a graph without it
            _dispatch.counts["reference", f"{region.name}: {NOT_FOUND}"] += 1
    legalize_graph(traced)
    traced.graph.lint()
    traced.recompile()
    return traced


def _why_not(examples: Sequence[Any]) -> str:
    if any(not isinstance(value, torch.Tensor) for value in examples):
        return "the graph is compiled for sizes that change: compile with dynamic=False"
    if torch.is_grad_enabled() and any(value.requires_grad for value in examples):
        return NO_BACKWARD
    return ""


def _traced(function: Callable[..., Any], examples: Sequence[Any]) -> fx.GraphModule:
    """The operators as a module calls them, before any of them is taken apart."""
    traced = make_fx(function, pre_dispatch=True)(*examples)
    for node in list(traced.graph.nodes):
        if node.op == "call_function" and _is_same(node):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.graph.eliminate_dead_code()
    return traced


def _is_same(node: fx.Node) -> bool:
    """Whether it gives what it is given."""
    if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(node.args[0], fx.Node):
        return False
    name, before = node.target._schema.name.split("::")[-1], node.args[0].meta.get("val")
    if name == "dropout":
        return not node.args[2]
    if name in ("to", "_to_copy", "type_as", "contiguous") and isinstance(before, torch.Tensor):
        after: Any = node.meta["val"]
        return (before.dtype, before.device, before.stride()) == (after.dtype, after.device, after.stride())
    return name in _SAME


def _pattern(number: int) -> fx.Graph:
    """The operators of an entry's reference: its placeholders are inputs, then parameters in the table's order."""
    if number not in _patterns:
        entry = ENTRIES[number]
        reference = _operators.reference_of(entry).eval()
        names = [wanted.name for wanted in entry.state]
        held = dict(reference.named_parameters()) | dict(reference.named_buffers())

        def called(*values: torch.Tensor) -> Any:
            inputs, state = values[: len(entry.inputs)], values[len(entry.inputs) :]
            return torch.func.functional_call(reference, dict(zip(names, state, strict=True)), inputs)

        examples = [*_operators.module_of(entry).example_inputs(), *(held[name].detach() for name in names)]
        with torch.no_grad():
            _patterns[number] = _traced(called, examples).graph
    return _patterns[number]


def _replaced(traced: fx.GraphModule, number: int) -> int:
    """How often the operators of an entry's reference were found and replaced."""
    pattern, entry = _pattern(number), ENTRIES[number]
    matcher = SubgraphMatcher(pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True)
    found = [match for match in matcher.match(traced.graph) if _is_alike(match, pattern, entry)]
    for match in found:
        _put(traced.graph, match, pattern, entry)
    return len(found)


def _is_alike(match: InternalMatch, pattern: fx.Graph, entry: Entry) -> bool:
    """Whether the tensors are of the sizes that the kernel was judged at."""
    holders = [node for node in pattern.nodes if node.op == "placeholder"]
    wanted = zip(holders, (*entry.inputs, *entry.state), strict=True)
    return all(_is_like(match.nodes_map.get(holder), facts) for holder, facts in wanted)


def _is_like(node: fx.Node | None, wanted: Input) -> bool:
    value = node.meta.get("val") if node is not None else None
    if not isinstance(value, torch.Tensor):
        return False
    strides = value.stride() == wanted.stride if wanted.stride else value.is_contiguous()
    return tuple(value.shape) == wanted.shape and str(value.dtype)[6:] == wanted.dtype and strides


def _put(graph: fx.Graph, match: InternalMatch, pattern: fx.Graph, entry: Entry) -> None:
    holders = [node for node in pattern.nodes if node.op == "placeholder"]
    given: list[Any] = [match.nodes_map[holder] for holder in holders]
    inputs, state = given[: len(entry.inputs)], given[len(entry.inputs) :]
    result = next(node for node in pattern.nodes if node.op == "output").args[0]
    outputs = [match.nodes_map[node] for node in (result if isinstance(result, (list, tuple)) else [result])]
    with graph.inserting_after(outputs[-1]):
        call = graph.call_function(_operators.operator(entry), tuple(_operators.arguments(entry, inputs, state)))
    for number, output in enumerate(outputs):
        replacement = call
        if entry.outputs:
            with graph.inserting_after(call):
                replacement = graph.call_function(operator.getitem, (call, number))
        output.replace_all_uses_with(replacement)
    matched = {node for key, node in match.nodes_map.items() if key.op == "call_function"}
    for node in reversed(list(graph.nodes)):
        if node in matched and not node.users:
            graph.erase_node(node)
