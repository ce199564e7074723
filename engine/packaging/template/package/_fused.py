"""A backend of torch.compile that puts kernels in the place of operators of the network's graph, whatever modules they
are from, and hands all else to PyTorch's own compiler.

    torch.compile(network, backend=backend(("norm_and_add",)), dynamic=False)
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

from . import _dispatch, _operators
from ._entries import Entry
from ._modules import NO_BACKWARD
from ._table import ENTRIES, REGIONS

INDUCTOR, EAGER = "inductor", "eager"
NOT_FOUND = "a compiled graph has no such operators"
OTHER_SIZES = "a compiled graph has such operators, none of the sizes that the kernel was judged at"
CHANGED_BETWEEN = "a tensor that the operators read is changed in place between them"
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
        found: list[str] = []
        for number in region.entries:
            refusals = _replaced(traced, number)
            if "" in refusals:  # traced once more: what reads a kernel's result is matched by how that lies in memory
                traced = _traced(traced, examples)
            found += refusals
        if count := found.count(""):
            _dispatch.note("kernel", f"{region.name}: {count} in a compiled graph")
        for reason in _told(found):  # no warning: a workload that does not call it compiles a graph without it
            _dispatch.counts["reference", f"{region.name}: {reason}"] += 1
    return traced


def _told(refusals: Sequence[str]) -> set[str]:
    """Why a region's operators are left to PyTorch. Like operators of other sizes are none of the region's, so they
    are told only where there are no others."""
    if of_its_sizes := set(refusals) - {OTHER_SIZES}:
        return of_its_sizes - {""}
    return set(refusals) or {NOT_FOUND}


def _why_not(examples: Sequence[Any]) -> str:
    if any(not isinstance(value, torch.Tensor) for value in examples):
        return "the graph is compiled for sizes that change: compile with dynamic=False"
    if torch.is_grad_enabled() and any(value.requires_grad for value in examples):
        return NO_BACKWARD
    return ""


def _traced(function: Callable[..., Any], examples: Sequence[Any]) -> fx.GraphModule:
    """The operators as a module calls them, before any of them is taken apart but those that only stand for a view or
    a copy. Computes nothing."""
    without_values = FakeTensorMode(allow_non_fake_inputs=True)
    values = [without_values.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in examples]
    traced = make_fx(function, decomposition_table=_stand_ins(), pre_dispatch=True)(*values)
    for node in list(traced.graph.nodes):
        if node.op == "call_function" and _is_same(node):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.graph.eliminate_dead_code()
    return traced


@functools.cache
def _stand_ins() -> dict[Any, Callable[..., Any]]:
    """Operators that may give a view, and call others for it: `chunk`, `reshape`, `to`. torch.export takes exactly
    these apart in a network that changes a tensor in place, as a cache of keys does, so a reference's text may have
    either form; taken apart in both, they are the same."""
    found: dict[Any, Callable[..., Any]] = {}
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd"):
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        called = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        if space != "aten" or called is None or called._schema.is_mutable:
            continue
        if any(result.alias_info for result in called._schema.returns):
            found[called] = called.decompose
    return found


def _is_same(node: fx.Node) -> bool:
    """Whether it gives what it is given."""
    if not isinstance(node.target, torch._ops.OpOverload) or not isinstance(node.args[0], fx.Node):
        return False
    name, before = node.target._schema.name.split("::")[-1], node.args[0].meta.get("val")
    if name == "dropout":
        return not node.args[2]
    if name in ("_to_copy", "type_as") and isinstance(before, torch.Tensor):
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


def _replaced(traced: fx.GraphModule, number: int) -> list[str]:
    """Replace the operators of an entry's reference; of each place where they were found why not, or nothing."""
    pattern, entry = _pattern(number), ENTRIES[number]
    matcher = SubgraphMatcher(pattern, match_output=False, match_placeholder=False, remove_overlapping_matches=True)
    matches = matcher.match(traced.graph)
    refusals = [
        _refusal(match, pattern, entry) or _changed_between(list(traced.graph.nodes), match, pattern)
        for match in matches
    ]
    replaced: dict[fx.Node, fx.Node] = {}
    for match in itertools.compress(matches, (not refusal for refusal in refusals)):
        _put(traced.graph, match, pattern, entry, replaced)
    traced.graph.lint()
    traced.recompile()
    return refusals


def _refusal(match: InternalMatch, pattern: fx.Graph, entry: Entry) -> str:
    """Why the kernel cannot take what the operators are given there; empty where it can."""
    holders = [node for node in pattern.nodes if node.op == "placeholder"]
    wanted = (*entry.inputs, *entry.state)
    given = [match.nodes_map[holder].meta.get("val") if holder in match.nodes_map else None for holder in holders]
    if any(isinstance(value, torch.Tensor) and tuple(value.shape) != facts.shape
           for value, facts in zip(given, wanted, strict=True)):  # fmt: skip
        return OTHER_SIZES
    return next(filter(None, map(_dispatch.unlike, given, wanted)), "")


def _changed_between(nodes: Sequence[fx.Node], match: InternalMatch, pattern: fx.Graph) -> str:
    """Why the operators of a match cannot be computed at once where the last of them stands; empty where they can."""
    places = {node: place for place, node in enumerate(nodes)}
    of_match = sorted(places[node] for node in _matched(match))
    first_result = min(places[node] for node in _outputs(match, pattern))  # what reads it moves behind the kernel
    read = {_memory(node) for node in match.nodes_map.values()} - {None}
    for place in range(of_match[0], of_match[-1]):
        node = nodes[place]
        changes = isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
        if changes and (place > first_result or read.intersection(map(_memory, node.all_input_nodes))):
            return CHANGED_BETWEEN
    return ""


def _memory(node: fx.Node) -> int | None:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def _matched(match: InternalMatch) -> set[fx.Node]:
    return {node for key, node in match.nodes_map.items() if key.op == "call_function"}


def _outputs(match: InternalMatch, pattern: fx.Graph) -> list[fx.Node]:
    result = next(node for node in pattern.nodes if node.op == "output").args[0]
    return [match.nodes_map[node] for node in (result if isinstance(result, (list, tuple)) else [result])]


def _put(
    graph: fx.Graph, match: InternalMatch, pattern: fx.Graph, entry: Entry, replaced: dict[fx.Node, fx.Node]
) -> None:
    """Put the entry's operator in the place of a match. `replaced` has what earlier ones gave, which a match may still
    name as what it is given, and gets what this one gave."""
    holders = [node for node in pattern.nodes if node.op == "placeholder"]
    given: list[Any] = [replaced.get(node, node) for node in map(match.nodes_map.__getitem__, holders)]
    inputs, state = given[: len(entry.inputs)], given[len(entry.inputs) :]
    matched = _matched(match)
    *_, last = (node for node in graph.nodes if node in matched)
    with graph.inserting_after(last):
        call = graph.call_function(_operators.operator(entry), tuple(_operators.arguments(entry, inputs, state)))
    behind = call
    for number, output in enumerate(_outputs(match, pattern)):
        replacement = call
        if entry.outputs:
            with graph.inserting_after(behind):
                behind = replacement = graph.call_function(operator.getitem, (call, number))
        output.replace_all_uses_with(replacement)
        replaced[output] = replacement
    for node in reversed(list(graph.nodes)):
        if node in matched and not node.users:
            graph.erase_node(node)
    _move_readers(graph, call, behind)


def _move_readers(graph: fx.Graph, call: fx.Node, behind: fx.Node) -> None:
    """Move what reads a kernel's results and stands before it behind it. All else keeps its order, since what changes
    a tensor in place is read by none of the nodes that must come after it."""
    late = {call, *call.users} if behind is not call else {call}
    for node in list(graph.nodes):
        if node is call:
            break
        if late.intersection(node.all_input_nodes):
            behind.append(node)
            behind = node
            late.add(node)
