"""`network capture`, step by step: call the network, time its places, group them, write each region as a task.

Runs in the process of the command, with the user's own code. What cannot be done is a sentence in the record, and the
capture goes on without it.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx, nn
from torch.profiler import record_function

from engine.evaluator import tasks
from engine.networks import compiled, entries, fusing, graphs, grouping, place_times, watching, writing
from engine.networks.compiled import Compiled
from engine.networks.entries import Loaded, Sizes, Workload
from engine.networks.fusing import Run
from engine.networks.graphs import Graph, NoGraph
from engine.networks.grouping import Group
from engine.networks.watching import Recorder
from engine.networks.writing import NoTask, Part
from storage.networks import files
from storage.networks.files import NetworkFolder
from storage.networks.records import (
    REST,
    CaptureProgressed,
    Form,
    ModuleFacts,
    Network,
    PlaceTime,
    Region,
    RegionUse,
    WorkloadFacts,
)  # fmt: skip

MOST_OPERATORS = 40
"""Of a task, and MOST_PRODUCTS of them products: more is no kernel's work, and the regions inside are offered."""
MOST_PRODUCTS = 6
NODE = "node:"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants captured, and how."""

    entry: str
    device: str = "cpu"
    mode: str = entries.EVAL
    seed: int = 0
    keep: int = 2
    """Calls of each region whose tensors are kept."""
    most_mb: int = 4000
    """Of kept tensors in all."""
    sizes: Sizes = field(default_factory=Sizes)
    is_compiled: bool = True
    least_share: float = 0.003
    """Of a workload's call: what takes less is in the tree and is no region."""


def captured(folder: NetworkFolder, asked: Asked, say: Callable[[str], None]) -> Network:
    """Capture a network into its folder, which the caller holds.

    Raises:
        NetworkCaptureError: it cannot be made or called.
        OSError: the disk is full or may not be written.
    """
    return _Capture(folder, asked, say).run()


@dataclass(slots=True)
class _Draft:
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


class _Capture:
    def __init__(self, folder: NetworkFolder, asked: Asked, say: Callable[[str], None]) -> None:
        self._folder, self._asked, self._say = folder, asked, say
        self._notes: list[str] = []
        self._is_training = asked.mode == entries.TRAIN
        self._kept_bytes = 0
        self._recorded: dict[watching.Key, list[watching.RecordedCall]] = {}
        self._same: dict[watching.Key, list[bool]] = {}

    def run(self) -> Network:
        began = time.monotonic()
        self._tell("making the network")
        loaded = entries.load(
            self._asked.entry, device=self._asked.device, mode=self._asked.mode, seed=self._asked.seed,
            sizes=self._asked.sizes,
        )  # fmt: skip
        self._loaded = loaded
        facts, times, timed = self._measured(loaded)
        self._tell("grouping equal places")
        drafts = self._module_drafts(loaded, timed, facts)
        drafts += self._fused_drafts(loaded, facts)
        seen = self._compiled(loaded) if self._asked.is_compiled else {}
        facts = [replace(fact, **_of_compiled(seen.get(fact.name))) for fact in facts]
        self._tell(f"writing {sum(draft.part is not None for draft in drafts)} tasks")
        regions = self._written(drafts, seen)
        return Network(
            self._folder.name, self._asked.entry, self._asked.mode, self._device_name(), self._asked.seed, time.time(),
            round(time.monotonic() - began, 1), _versions(), tuple(facts), _modules(loaded.module), tuple(times),
            tuple(regions), tuple(kernel for result in seen.values() for kernel in result.kernels), loaded.weights,
            tuple(dict.fromkeys(self._notes)),
        )  # fmt: skip

    def _tell(self, words: str) -> None:
        files.append(self._folder, CaptureProgressed(words))
        self._say(words)

    def _device_name(self) -> str:
        return "cpu" if self._asked.device == "cpu" else torch.cuda.get_device_name()

    def _measured(
        self, loaded: Loaded
    ) -> tuple[list[WorkloadFacts], list[PlaceTime], dict[str, list[tuple[watching.Call, float]]]]:
        """Of every workload its times, those of its places, and its calls with theirs."""
        facts, times, timed = [], list[PlaceTime](), {}
        for workload in loaded.workloads:
            self._tell(f"calling workload {workload.name}")
            work = self._work(loaded.module, workload)
            entries.see(work, f"the network, called with workload {workload.name},")
            is_gpu = place_times.is_on_gpu(loaded.module, workload)
            walls = place_times.walls_ms(work, is_gpu)
            seen = place_times.watched(loaded.module, workload, is_training=self._is_training)
            calls = watching.calls_of(loaded.module, workload, is_training=self._is_training)
            timed[workload.name] = list(zip(calls, seen.calls_ms, strict=True))
            peak = place_times.peak_bytes(work) if is_gpu else None
            facts.append(
                WorkloadFacts(workload.name, workload.weight, walls, round(seen.wall_ms, 6), seen.device_ms, peak)
            )
            times += [*seen.times, _rest(workload, seen)]
        return facts, times, timed

    def _work(self, module: nn.Module, workload: Workload) -> Callable[[], Any]:
        return lambda: watching.call(module, workload, is_training=self._is_training)

    def _module_drafts(
        self, loaded: Loaded, timed: Mapping[str, Sequence[tuple[watching.Call, float]]], facts: Sequence[WorkloadFacts]
    ) -> list[_Draft]:
        wholes = {fact.name: fact.device_ms or fact.profiled_ms for fact in facts}
        groups = [
            group for group in grouping.groups(loaded.module, timed)
            if any(ms >= self._asked.least_share * wholes[workload] for workload, ms in group.ms.items())
        ]  # fmt: skip
        families: dict[tuple[Any, ...], list[Group]] = {}
        for group in groups:
            families.setdefault((group.base, group.signature), []).append(group)
        self._record(list(families.values()))
        drafts = []
        for family in families.values():
            drafts += self._family_drafts(loaded.module, family)
        return drafts

    def _record(self, families: Sequence[Sequence[Group]]) -> None:
        """Keep calls of each family's first place, in every workload that has it."""
        like = {
            (path, group.signature): (family[0].paths[0], group.signature)
            for family in families
            for group in family
            for path in group.paths
        }
        recorder = Recorder(like, self._asked.keep)
        for workload in self._loaded.workloads:
            self._tell(f"keeping what places are given in workload {workload.name}")
            watching.record(self._loaded.module, workload, recorder, is_training=self._is_training)
        self._recorded |= recorder.calls
        self._same |= recorder.same

    def _family_drafts(self, module: nn.Module, family: list[Group]) -> list[_Draft]:
        """One draft for each graph among groups that differ in a setting alone."""
        calls = self._recorded[(family[0].paths[0], family[0].signature)]
        by_key: dict[Any, tuple[Group, Graph | None, str]] = {}
        for group in family:
            graph, reason = self._traced(module.get_submodule(group.paths[0]), calls[0])
            key = _key(graph) if graph else ("no graph", reason)
            if key in by_key:
                by_key[key][0].take(group)
            else:
                by_key[key] = (group, graph, reason)
        others = [group for group, graph, _ in by_key.values() if group is not family[0] and graph]
        if others:
            self._record([[group] for group in others])
        return [self._module_draft(module, *found) for found in by_key.values()]

    def _traced(self, module: nn.Module, call: watching.RecordedCall) -> tuple[Graph | None, str]:
        try:
            return graphs.trace(module, call.args, call.kwargs), ""
        except NoGraph as error:
            return None, str(error)

    def _module_draft(self, module: nn.Module, group: Group, graph: Graph | None, reason: str) -> _Draft:
        uses = {workload: (count, group.ms[workload]) for workload, count in group.calls.items()}
        draft = _Draft(Form.MODULE, group.kind, group.paths, uses, reason=reason)
        if graph is None:
            return draft
        draft.operators = graphs.counted(graph.nodes)
        products = sum(map(graphs.is_product, graph.nodes))
        if (count := sum(draft.operators.values())) > MOST_OPERATORS or products > MOST_PRODUCTS:
            draft.reason = f"it has {count} operators, {products} of them products: take what is inside"
            return draft
        place = module.get_submodule(group.paths[0])
        calls = self._recorded[(group.paths[0], group.signature)]
        used = [number for number, node in enumerate(graph.inputs) if node.users]
        names = _input_names([graph.inputs[number] for number in used])
        same = self._same.get((group.paths[0], group.signature)) or [False] * len(graph.inputs)
        kept = [
            ([call.inputs[number] for number in used], [call.outputs[number] for number in graph.output_places])
            for call in calls
        ]
        draft.part = Part(
            _title(group.kind, group.paths), graph.nodes, names,
            graph.state, graph.outputs, graph.values, _buffers(place, graph.values), kept,
            frozenset(name for name, number in zip(names.values(), used, strict=True) if same[number]),
        )  # fmt: skip
        return draft

    def _fused_drafts(self, loaded: Loaded, facts: Sequence[WorkloadFacts]) -> list[_Draft]:
        drafts: dict[tuple[object, ...], _Draft] = {}
        for workload, fact in zip(loaded.workloads, facts, strict=True):
            self._tell(f"tracing the whole network, workload {workload.name}")
            try:
                graph = graphs.trace(loaded.module, workload.args, workload.kwargs)
                self._take_runs(drafts, loaded.module, workload, graph, fact)
            except NoGraph as error:
                self._notes.append(
                    f"Fusions across modules were not looked for in workload {workload.name}: the whole network is no "
                    f"graph ({error}). Modules are regions all the same."
                )
        return list(drafts.values())

    def _take_runs(
        self, drafts: dict[tuple[object, ...], _Draft], module: nn.Module, workload: Workload, graph: Graph,
        fact: WorkloadFacts,
    ) -> None:  # fmt: skip
        found = fusing.runs(graph)
        if not found:
            return
        given = watching.tensors_of((workload.args, workload.kwargs))
        is_gpu = place_times.is_on_gpu(module, workload)
        node_ms = _node_times(graph, given, is_gpu)
        whole_ms = fact.device_ms or fact.profiled_ms
        by_key: dict[tuple[object, ...], list[Run]] = {}
        for run in found:
            names = {node: f"state {place}" for place, node in enumerate(run.state)}
            by_key.setdefault(graphs.key_of(run.nodes, run.inputs, names, run.outputs), []).append(run)
        took = {
            key: sum(node_ms.get(node.name, 0.0) for run in equal for node in run.nodes)
            for key, equal in by_key.items()
        }
        least = self._asked.least_share * whole_ms
        chosen = {key: equal for key, equal in by_key.items() if took[key] >= least}
        wanted = [
            node
            for equal in chosen.values()
            for run in equal[: self._asked.keep]
            for node in (*run.inputs, *run.outputs)
        ]
        with torch.no_grad():
            values = graphs.run(graph, given, wanted=[node for node in wanted if node.op == "call_function"])
        values |= dict(zip(graph.inputs, given, strict=True))
        for key, equal in chosen.items():
            draft = drafts.get(key) or self._fused_draft(module, graph, equal, values)
            drafts[key] = draft
            draft.places += [run.place for run in equal if run.place not in draft.places]
            draft.uses[workload.name] = (len(equal), took[key])

    def _fused_draft(
        self, module: nn.Module, graph: Graph, equal: list[Run], values: Mapping[fx.Node, torch.Tensor]
    ) -> _Draft:
        first = equal[0]
        names = {node: graph.state[node].removeprefix(first.prefix) for node in first.state}
        operators = graphs.counted(first.nodes)
        kind = "+".join(operators)
        kept = [
            ([values[node] for node in run.inputs], [values[node] for node in run.outputs])
            for run in equal[: self._asked.keep]
            if run is first or not run.state
        ]
        held = {names[node]: graph.values[graph.state[node]] for node in first.state}
        parameters = {name for name, _ in module.named_parameters()}
        buffers = frozenset(names[node] for node in first.state if graph.state[node] not in parameters)
        part = Part(
            _title(kind, [run.place for run in equal]), first.nodes, _input_names(first.inputs), names, first.outputs,
            held, buffers, kept,
        )  # fmt: skip
        before, after = fusing.neighbours(first.nodes)
        members = frozenset(path for run in equal for path in _whole_modules(run, graph))
        parts = frozenset(path for run in equal for path in run.parts)
        return _Draft(Form.FUSED, kind, [], {}, part, operators, "", before, after, parts, members)

    def _compiled(self, loaded: Loaded) -> dict[str, Compiled]:
        seen = {}
        for workload in loaded.workloads:
            self._tell(f"compiling workload {workload.name} with torch.compile")
            seen[workload.name] = compiled.watched(loaded.module, workload, is_training=self._is_training)
        return seen

    def _written(self, drafts: list[_Draft], seen: Mapping[str, Compiled]) -> list[Region]:
        names, regions = dict[str, int](), []
        for draft in sorted(drafts, key=lambda draft: -sum(ms for _, ms in draft.uses.values())):
            regions.append(self._region(draft, _name(draft, names), seen))
        return _with_holders(regions, drafts)

    def _region(self, draft: _Draft, name: str, seen: Mapping[str, Compiled]) -> Region:
        uses = tuple(
            RegionUse(
                workload,
                calls,
                round(ms, 6),
                *compiled.touching(seen.get(workload), draft.parts or draft.places, is_exact=bool(draft.parts)),
            )
            for workload, (calls, ms) in draft.uses.items()
        )
        region = Region(
            name, draft.form, draft.kind, tuple(draft.places), uses, tuple(sorted(draft.parts)), draft.operators,
            reason=draft.reason, before=draft.before, after=draft.after,
        )  # fmt: skip
        if draft.part is None:
            return region
        region = replace(region, **_tensors(draft.part), flop=graphs.flop_of(draft.part.nodes))
        part = self._within_room(draft.part)
        try:
            done = writing.write(self._folder.region(name), part, "", is_training=self._is_training)
        except NoTask as error:
            return replace(region, reason=str(error))
        self._kept_bytes += done.recorded_bytes
        path = self._folder.region(name) / writing.TASK
        return replace(
            region, task=str(path.relative_to(self._folder.path)), recorded_bytes=done.recorded_bytes,
            own_error=done.own_error, text_error=done.text_error,
            kernel_class=str(tasks.of_text(done.text, path).guessed_class),
        )  # fmt: skip

    def _within_room(self, part: Part) -> Part:
        """The part with one recorded call where more would pass what may be kept."""
        size = sum(
            tensor.numel() * tensor.element_size() for call in part.calls for tensors in call for tensor in tensors
        )
        if self._kept_bytes + size <= self._asked.most_mb << 20 or len(part.calls) == 1:
            return part
        self._notes.append(f"Of some regions one call is kept and no more: --most-mb {self._asked.most_mb} is reached.")
        return replace(part, calls=part.calls[:1])


def _key(graph: Graph) -> tuple[object, ...]:
    return graphs.key_of(graph.nodes, graph.inputs, graph.state, graph.outputs)


def _node_times(graph: Graph, given: Sequence[torch.Tensor], is_gpu: bool) -> dict[str, float]:
    """Milliseconds of every operator of the graph."""

    def watch(node: fx.Node) -> Any:
        return record_function(f"{NODE}{node.name}")

    with torch.no_grad():
        graphs.run(graph, given, watch=watch)
        place_times.settle(is_gpu)
        with place_times.profiler(is_gpu) as seen:
            graphs.run(graph, given, watch=watch)
            place_times.settle(is_gpu)
    return {span.name: (span.device_us if is_gpu else span.host_us) / 1e3 for span in place_times.spans(seen, NODE)}


def _rest(workload: Workload, seen: place_times.Watched) -> PlaceTime:
    """What no module takes: on a GPU gaps between kernels, on a processor what surrounds the network's call."""
    whole = next((time.inclusive_ms for time in seen.times if not time.path), 0.0)
    rest = round(max(0.0, seen.wall_ms - whole), 6)
    return PlaceTime(workload.name, REST, 1, rest, rest)


def _of_compiled(seen: Compiled | None) -> dict[str, Any]:
    if seen is None:
        return {"compiled_note": "torch.compile was left out"}
    return {"compiled_ms": seen.walls_ms, "compiled_note": seen.note, "graph_breaks": seen.graph_breaks}


def _modules(module: nn.Module) -> tuple[ModuleFacts, ...]:
    return tuple(
        ModuleFacts(path, type(part).__name__, sum(parameter.numel() for parameter in part.parameters()))
        for path, part in module.named_modules()
    )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if torch.version.cuda:
        versions["cuda"] = torch.version.cuda
    return versions | {"host": platform.machine(), "threads": str(torch.get_num_threads()), "pid": str(os.getpid())}


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


def _tensors(part: Part) -> dict[str, Any]:
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


def _name(draft: _Draft, taken: dict[str, int]) -> str:
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


def _with_holders(regions: list[Region], drafts: list[_Draft]) -> list[Region]:
    """Each region with the smallest one that holds it."""
    ordered = sorted(drafts, key=lambda draft: -sum(ms for _, ms in draft.uses.values()))
    fused = {path: region.name for region, draft in zip(regions, ordered, strict=True) for path in draft.members}
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
