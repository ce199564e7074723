"""`network capture`, step by step: call the network, time its places, group them, write each region as a task.

Runs in the process of the command, with the user's own code. What cannot be done is a sentence in the record, and the
capture goes on without it.
"""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import fx, nn
from torch.profiler import record_function

from engine.evaluator import tasks
from engine.evaluator.machine import quiet, turns
from engine.networks import compiled, drafting, entries, fusing, graphs, grouping, place_times, watching, writing
from engine.networks.compiled import Compiled
from engine.networks.drafting import Draft
from engine.networks.entries import Loaded, Sizes, Workload
from engine.networks.fusing import Run
from engine.networks.graphs import Graph, NoGraph
from engine.networks.grouping import Group
from engine.networks.task_text import Part
from engine.networks.watching import Recorder
from engine.networks.writing import NoTask
from storage.networks import files
from storage.networks.files import NetworkFolder
from storage.networks.records import (
    REST,
    CaptureProgressed,
    ModuleFacts,
    Network,
    PlaceTime,
    Region,
    RegionUse,
    WorkloadFacts,
)  # fmt: skip

NODE = "node:"
RESTLESS = 2.0
"""Calls of which the slowest took so many times the quickest say that others wanted the machine."""


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
    is_tuned: bool = False
    """Whether max-autotune is timed too, which takes minutes."""
    least_share: float = 0.003
    """Of a workload's call: what takes less is in the tree and is no region."""


def captured(folder: NetworkFolder, asked: Asked, say: Callable[[str], None]) -> Network:
    """Capture a network into its folder, which the caller holds.

    Raises:
        NetworkCaptureError: it cannot be made or called.
        OSError: the disk is full or may not be written.
    """
    return _Capture(folder, asked, say).run()


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
        if self._asked.is_tuned:
            facts = [self._with_tuned(loaded, *pair) for pair in zip(loaded.workloads, facts, strict=True)]
        self._tell(f"writing {sum(draft.part is not None for draft in drafts)} tasks")
        regions = self._written(drafts, seen)
        return Network(
            self._folder.name, self._asked.entry, self._asked.mode, self._device_name(), self._asked.seed, time.time(),
            round(time.monotonic() - began, 1), _versions(), tuple(facts), _modules(loaded.module), tuple(times),
            tuple(regions), tuple(kernel for result in seen.values() for kernel in result.kernels), loaded.weights,
            tuple(dict.fromkeys(self._notes)), str(Path.cwd()), self._asked.sizes.batch, self._asked.sizes.tokens,
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
            with self._turn():
                walls = place_times.walls_ms(work, is_gpu)
            if max(walls) > RESTLESS * min(walls):
                self._notes.append(
                    f"Calls of workload {workload.name} took {min(walls):.3g} to {max(walls):.3g} ms: the machine was "
                    "busy. Shares and ranks are to be trusted once it is captured on a quiet one."
                )
            seen = place_times.watched(loaded.module, workload, is_training=self._is_training)
            calls = watching.calls_of(loaded.module, workload, is_training=self._is_training)
            timed[workload.name] = list(zip(calls, seen.calls_ms, strict=True))
            peak = place_times.peak_bytes(work) if is_gpu else None
            facts.append(
                WorkloadFacts(workload.name, workload.weight, walls, round(seen.wall_ms, 6), seen.device_ms, peak)
            )
            times += [*seen.times, _rest(workload, seen)]
        return facts, times, timed

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """While the network is timed nothing is evaluated on this device."""
        with turns.hold(*place_times.device_locks(self._asked.device)):
            quiet.wait()
            yield

    def _work(self, module: nn.Module, workload: Workload) -> Callable[[], Any]:
        return lambda: watching.call(module, workload, is_training=self._is_training)

    def _module_drafts(
        self, loaded: Loaded, timed: Mapping[str, Sequence[tuple[watching.Call, float]]], facts: Sequence[WorkloadFacts]
    ) -> list[Draft]:
        wholes = {fact.name: fact.device_ms or fact.profiled_ms for fact in facts}
        groups = [
            group for group in grouping.groups(loaded.module, timed)
            if any(ms >= self._asked.least_share * wholes[workload] for workload, ms in group.ms.items())
        ]  # fmt: skip
        families: dict[tuple[Any, ...], list[Group]] = {}
        for group in groups:
            families.setdefault((group.base, group.signature), []).append(group)
        self._record(list(families.values()))
        traced = [found for family in families.values() for found in self._told_apart(loaded.module, family)]
        others = [group for group, graph, _ in traced if graph and _kind(group) not in self._recorded]
        if others:
            self._record([[group] for group in others])
        return [
            drafting.of_module(
                loaded.module.get_submodule(group.paths[0]), group, graph, reason,
                self._recorded.get(_kind(group), ()),
                self._same.get(_kind(group)) or [False] * (len(graph.inputs) if graph else 0),
            )
            for group, graph, reason in traced
        ]  # fmt: skip

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

    def _told_apart(self, module: nn.Module, family: list[Group]) -> list[tuple[Group, Graph | None, str]]:
        """One group for each graph among groups that differ in a setting alone; or why there is no graph."""
        calls = self._recorded[(family[0].paths[0], family[0].signature)]
        by_key: dict[Any, tuple[Group, Graph | None, str]] = {}
        for group in family:
            graph, reason = self._traced(module.get_submodule(group.paths[0]), calls[0])
            key = _key(graph) if graph else ("no graph", reason)
            if key in by_key:
                by_key[key][0].take(group)
            else:
                by_key[key] = (group, graph, reason)
        return list(by_key.values())

    def _traced(self, module: nn.Module, call: watching.RecordedCall) -> tuple[Graph | None, str]:
        try:
            return graphs.trace(module, call.args, call.kwargs), ""
        except NoGraph as error:
            return None, str(error)

    def _fused_drafts(self, loaded: Loaded, facts: Sequence[WorkloadFacts]) -> list[Draft]:
        drafts: dict[tuple[object, ...], Draft] = {}
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
        self, drafts: dict[tuple[object, ...], Draft], module: nn.Module, workload: Workload, graph: Graph,
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
        if (passed_ms := sum(node_ms.values())) > whole_ms:  # a pass of its own, which watching has slowed
            took = {key: ms * whole_ms / passed_ms for key, ms in took.items()}
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
            draft = drafts.get(key) or drafting.of_runs(module, graph, equal, values, self._asked.keep)
            drafts[key] = draft
            draft.places = list(dict.fromkeys([*draft.places, *(run.place for run in equal)]))
            draft.uses[workload.name] = (len(equal), took[key])

    def _compiled(self, loaded: Loaded) -> dict[str, Compiled]:
        seen = {}
        for workload in loaded.workloads:
            self._tell(f"compiling workload {workload.name} with torch.compile")
            seen[workload.name] = compiled.watched(loaded.module, workload, is_training=self._is_training)
        return seen

    def _with_tuned(self, loaded: Loaded, workload: Workload, fact: WorkloadFacts) -> WorkloadFacts:
        self._tell(f"tuning workload {workload.name} with max-autotune, which takes minutes")
        times, notes = compiled.tuned(loaded.module, workload, is_training=self._is_training)
        return replace(fact, other_ms=times, other_notes=notes)

    def _written(self, drafts: list[Draft], seen: Mapping[str, Compiled]) -> list[Region]:
        names = self._names(drafts)
        drafts = sorted(drafts, key=lambda draft: -sum(ms for _, ms in draft.uses.values()))
        regions = [self._region(draft, names[id(draft)], seen) for draft in drafts]
        return drafting.with_holders(regions, drafts)

    def _names(self, drafts: list[Draft]) -> dict[int, str]:
        """Of the regions' folders, by draft: the same in every capture of the network, whatever was measured."""
        order = {workload.name: number for number, workload in enumerate(self._loaded.workloads)}
        taken = dict[str, int]()

        def key(draft: Draft) -> tuple[object, ...]:
            return min(order[workload] for workload in draft.uses), draft.form, sorted(draft.places), draft.kind

        return {id(draft): drafting.name_of(draft, taken) for draft in sorted(drafts, key=key)}

    def _region(self, draft: Draft, name: str, seen: Mapping[str, Compiled]) -> Region:
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
            reason=draft.reason, before=draft.before, after=draft.after, takes=draft.takes, gives=draft.gives,
        )  # fmt: skip
        if draft.part is None:
            return region
        region = replace(region, **drafting.tensors_of(draft.part), flop=graphs.flop_of(draft.part.nodes))
        part = self._within_room(draft.part)
        try:
            done = writing.write(self._folder.region(name), part, is_training=self._is_training)
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


def _kind(group: Group) -> watching.Key:
    return group.paths[0], group.signature


def _key(graph: Graph) -> tuple[object, ...]:
    return graphs.key_of(graph.nodes, graph.inputs, graph.state, graph.outputs)


def _node_times(graph: Graph, given: Sequence[torch.Tensor], is_gpu: bool) -> dict[str, float]:
    """Milliseconds of every operator of the graph."""

    def watch(node: fx.Node) -> Any:
        return record_function(f"{NODE}{node.name}")

    with torch.no_grad():
        graphs.run(graph, given, watch=watch)
        place_times.settle(is_gpu)
        with place_times.no_collection(), place_times.profiler(is_gpu) as seen:
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
    return {
        "compiled_ms": seen.walls_ms, "compiled_note": seen.note, "graph_breaks": seen.graph_breaks,
        "replayed_ms": seen.replayed_ms, "replayed_note": seen.replayed_note,
    }  # fmt: skip


def _modules(module: nn.Module) -> tuple[ModuleFacts, ...]:
    return tuple(
        ModuleFacts(path, type(part).__name__, sum(parameter.numel() for parameter in part.parameters()))
        for path, part in module.named_modules()
    )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    if torch.version.cuda:
        versions["cuda"] = torch.version.cuda
    return versions | {"host": platform.machine(), "threads": str(torch.get_num_threads())}
