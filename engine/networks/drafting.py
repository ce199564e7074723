"""Regions before they are written: what equal modules, or equal runs of operators, are as a task. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx, nn

from engine.networks import fusing, graphs, writing
from engine.networks.fusing import Run
from engine.networks.graphs import Graph
from engine.networks.grouping import Group
from engine.networks.task_text import Part
from engine.networks.watching import RecordedCall
from engine.packaging.template.package import _forms
from engine.packaging.template.package._forms import NoForm
from storage.networks.records import Form, Region

MOST_OPERATORS = 40
"""Of a task, and MOST_PRODUCTS of them products: more is no kernel's work, and the regions inside are offered."""
MOST_PRODUCTS = 6


@dataclass(slots=True)
class Draft:
    """A region before it is written."""

    form: Form
    kind: str
    places: list[str]
    uses: dict[str, tuple[int, float]]
    """By workload: calls and milliseconds."""
    part: Part | None = None
    operators: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    parts: frozenset[str] = frozenset()
    """Of fused operators the modules whose forwards call them."""
    members: frozenset[str] = frozenset()
    """Paths of the modules that lie in a fused run as a whole."""
    takes: _forms.Form | None = None
    gives: _forms.Form | None = None
    """Forms of a module's call, as a region has them."""


def of_module(
    place: nn.Module,
    group: Group,
    graph: Graph | None,
    reason: str,
    calls: Sequence[RecordedCall],
    same: Sequence[bool],
) -> Draft:
    """A region of equal modules. `calls` are those of its first place; `same` says which inputs were the same
    in all calls; without a graph there is a reason."""
    uses = {workload: (count, group.ms[workload]) for workload, count in group.calls.items()}
    draft = Draft(Form.MODULE, group.kind, group.paths, uses, reason=reason)
    if graph is None:
        return draft
    draft.operators = graphs.counted(graph.nodes)
    products = sum(map(graphs.is_product, graph.nodes))
    if (count := sum(draft.operators.values())) > MOST_OPERATORS or products > MOST_PRODUCTS:
        draft.reason = f"it has {count} operators, {products} of them products: take what is inside"
        return draft
    used = [number for number, node in enumerate(graph.inputs) if node.users]
    names = _input_names([graph.inputs[number] for number in used])
    kept = [
        ([call.inputs[number] for number in used], [call.outputs[number] for number in graph.output_places])
        for call in calls
    ]
    draft.part = Part(
        _title(group.kind, group.paths), graph.nodes, names,
        graph.state, graph.outputs, graph.values, _buffers(place, graph.values), kept,
        frozenset(name for name, number in zip(names.values(), used, strict=True) if same[number]),
    )  # fmt: skip
    draft.takes, draft.gives = _forms_of(calls[0], used, graph.output_places)
    return draft


def _forms_of(
    call: RecordedCall, used: Sequence[int], output_places: Sequence[int]
) -> tuple[_forms.Form | None, _forms.Form | None]:
    """A call's forms, numbered as the task's inputs and outputs are; none where the result holds what no kernel has."""
    if call.takes is None or call.gives is None:
        return None, None
    numbers = {place: number for number, place in enumerate(output_places)}
    count = len(output_places)
    numbers |= {len(call.outputs) + place: count + number for number, place in enumerate(used)}
    takes = _forms.renumbered(call.takes, {place: number for number, place in enumerate(used)})
    gives = _forms.renumbered(call.gives, numbers)
    try:
        _forms.put(gives, [*call.outputs, *call.inputs])
    except NoForm:
        return None, None
    return takes, gives


def of_runs(
    network: nn.Module, graph: Graph, equal: Sequence[Run], values: Mapping[fx.Node, torch.Tensor], keep: int
) -> Draft:
    """A region of equal runs of the network's operators, with what the first of them had."""
    first = equal[0]
    names = {node: graph.state[node].removeprefix(first.prefix) for node in first.state}
    operators = graphs.counted(first.nodes)
    kind = "+".join(operators)
    kept = [
        ([values[node] for node in run.inputs], [values[node] for node in run.outputs])
        for run in equal[:keep]
        if run is first or not run.state
    ]
    held = {names[node]: graph.values[graph.state[node]] for node in first.state}
    parameters = {name for name, _ in network.named_parameters()}
    buffers = frozenset(names[node] for node in first.state if graph.state[node] not in parameters)
    part = Part(
        _title(kind, list(dict.fromkeys(run.place for run in equal))), first.nodes, _input_names(first.inputs), names,
        first.outputs, held, buffers, kept,
    )  # fmt: skip
    before, after = fusing.neighbours(first.nodes)
    members = frozenset(path for run in equal for path in _whole_modules(run, graph))
    parts = frozenset(path for run in equal for path in run.parts)
    return Draft(Form.FUSED, kind, [], {}, part, operators, "", before, after, parts, members)


def _buffers(module: nn.Module, values: Mapping[str, torch.Tensor]) -> frozenset[str]:
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    return frozenset(name for name in values if name not in parameters)


def _input_names(nodes: Sequence[fx.Node]) -> dict[fx.Node, str]:
    """Names of a forward's arguments: as the module calls them, else as the graph does."""
    names: dict[fx.Node, str] = {}
    for node in nodes:
        name = re.sub(r"^(args|kwargs)_", "", node.name)
        while not name.isidentifier() or name in names.values():
            name = f"x_{name}" if not name.isidentifier() else f"{name}_"
        names[node] = name
    return names


def tensors_of(part: Part) -> dict[str, Any]:
    """Fields of a region that say what tensors it has."""
    inputs = tuple(
        writing.facts_of(name, part.calls[0][0][number], is_constant=name in part.constant)
        for number, name in enumerate(part.inputs.values())
    )
    outputs = tuple(writing.facts_of(node.name, part.calls[0][1][number]) for number, node in enumerate(part.outputs))
    held = dict.fromkeys(part.state.values())
    parameters = tuple(writing.facts_of(name, part.values[name]) for name in held)
    first_inputs, first_outputs = part.calls[0]
    least = sum(tensor.numel() * tensor.element_size() for tensor in (*first_inputs, *first_outputs))
    least += sum(part.values[name].numel() * part.values[name].element_size() for name in held)
    return {"inputs": inputs, "outputs": outputs, "parameters": parameters, "min_bytes": least}


def _title(kind: str, places: Sequence[str]) -> str:
    first = places[0] or "the whole network"
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{kind} at {first}{more}"


def name_of(draft: Draft, taken: dict[str, int]) -> str:
    """Of the region's folder; `taken` counts names."""
    if draft.form is Form.FUSED:
        base = "fused_" + "_".join(list(draft.operators)[:4])
    else:
        base = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", draft.kind).lower()
    base = re.sub(r"\W+", "_", base)[:60]
    taken[base] = taken.get(base, 0) + 1
    return base if taken[base] == 1 else f"{base}_{taken[base]}"


def _whole_modules(run: Run, graph: Graph) -> set[str]:
    """Modules all of whose operators lie in the run."""
    inside = {graphs.places_of(node) for node in run.nodes} - {""}
    outside = {graphs.places_of(node) for node in graph.nodes if node not in set(run.nodes)}
    return {path for path in inside if not any(other == path or other.startswith(f"{path}.") for other in outside)}


def with_holders(regions: list[Region], drafts: list[Draft]) -> list[Region]:
    """Each region, of the draft in its place, with the smallest one that holds it."""
    fused = {path: region.name for region, draft in zip(regions, drafts, strict=True) for path in draft.members}
    paths = {
        (use.workload, path): region.name
        for region in regions if region.form is Form.MODULE
        for path in region.places for use in region.uses
    }  # fmt: skip
    return [replace(region, inside=_holder(region, fused, paths)) for region in regions]


def _holder(region: Region, fused: Mapping[str, str], paths: Mapping[tuple[str, str], str]) -> str:
    if region.form is Form.MODULE and (held := fused.get(region.places[0])):
        return held
    path = region.places[0].split(".") if region.places[0] else []
    longest = len(path) - (region.form is Form.MODULE)
    for length in range(longest, -1, -1):
        name = paths.get((region.uses[0].workload, ".".join(path[:length])), "")
        if name and name != region.name:
            return name
    return ""
