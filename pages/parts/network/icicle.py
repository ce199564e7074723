"""Time by place: the module tree with the network at the top, each module as wide as it takes long, in the colour of
what may be done about its region. Knows no file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pages.parts import wording
from pages.parts.network import place_words
from pages.parts.network.region_states import IN_NETWORK, TONES, RegionState
from pages.parts.widgets import plot
from storage.networks import ranking
from storage.networks.records import REST, Form, Network, Region

LEVEL_PX = 44
MOST_LEVELS = 8
LEAST_WIDTH_PX = 680
LEAST_SHARE = 0.004
REST_IS = "Python, gaps between kernels, work outside modules"
"""Of what is shown: narrower sectors are drawn as one."""
PLACE, NO_REGION, SMALLER = "place:", "no region", "smaller parts"
STRENGTH = {RegionState.KEPT: 75, RegionState.NO_TASK: 20}
FILL = {state: f"@{tone}-color/{STRENGTH.get(state, 38)}" for state, tone in TONES.items()}
LEAST_NAMED, LEAST_BOTH = 0.025, 0.1
"""Of what is shown: in narrower sectors there is no room for what came of a kernel, or for that beside the share."""


@dataclass(frozen=True, slots=True)
class Sector:
    """One module in the picture, or what is told beside modules, which has no path."""

    sector_id: str
    parent_id: str
    label: str
    ms: float
    """With all that is drawn inside it."""
    hover: str
    path: str | None = None
    state: RegionState | None = None


@dataclass(frozen=True, slots=True)
class Tree:
    """Time by module of one call of every workload, weighted. A module that is only called by parts takes what they
    take."""

    network: Network
    total_ms: Mapping[str, float]
    own_ms: Mapping[str, float]
    calls: Mapping[str, float]
    children: Mapping[str, Sequence[str]]
    parents: Mapping[str, str]
    kinds: Mapping[str, str]

    @property
    def whole_ms(self) -> float:
        """Places and everything else."""
        return max(ranking.whole_of(self.network).eager_ms, self.total_ms.get("", 0.0))

    @property
    def rest_ms(self) -> float:
        """Everything else."""
        return self.whole_ms - self.total_ms.get("", 0.0)


def tree_of(network: Network) -> Tree:
    """The tree, added up over workloads."""
    weights = {workload.name: workload.weight * ranking.scale(workload) for workload in network.workloads}
    often = {workload.name: workload.weight for workload in network.workloads}
    inclusive, own, calls = dict[str, float](), dict[str, float](), dict[str, float]()
    for time in network.times:
        weight = weights.get(time.workload, 0.0)
        for sums, value in (
            (inclusive, weight * time.inclusive_ms), (own, weight * time.own_ms),
            (calls, often.get(time.workload, 0.0) * time.calls),
        ):  # fmt: skip
            sums[time.path] = sums.get(time.path, 0.0) + value
    kinds = {module.path: module.kind for module in network.modules} | {"": _kind(network)}
    parents = {path: _parent(path, kinds) for path in kinds if path}
    children: dict[str, list[str]] = {}
    for path, parent in parents.items():
        children.setdefault(parent, []).append(path)
    totals = dict[str, float]()
    for path in sorted(kinds, key=lambda path: -len(path.split(".")) if path else 0):  # from the leaves up
        totals[path] = max(inclusive.get(path, 0.0), sum(totals[child] for child in children.get(path, ())))
    return Tree(network, totals, own, calls, children, parents, kinds)


def _kind(network: Network) -> str:
    return next((module.kind for module in network.modules if not module.path), network.name)


def _parent(path: str, known: Mapping[str, str]) -> str:
    """The smallest module that holds it; containers that the tree leaves out are passed over."""
    while path := path.rpartition(".")[0]:
        if path in known:
            return path
    return ""


def sectors(tree: Tree, states: Mapping[str, RegionState], root: str) -> list[Sector]:
    """What is drawn inside a module: of the network itself also everything else. `states` is by place."""
    shown_ms = tree.total_ms.get(root, 0.0) if root else tree.whole_ms
    return list(_inside(tree, states, root, "", shown_ms, MOST_LEVELS)) if shown_ms else []


def _inside(
    tree: Tree, states: Mapping[str, RegionState], path: str, parent_id: str, shown_ms: float, levels: int
) -> Iterator[Sector]:
    sector_id = PLACE + path
    label = path.rpartition(".")[2] if path else tree.kinds[""]
    ms = tree.total_ms[path] if path else tree.whole_ms
    yield Sector(sector_id, parent_id, label, ms, _hover(tree, path, states.get(path)), path, states.get(path))
    children = [child for child in tree.children.get(path, ()) if tree.total_ms[child]] if levels > 1 else []
    small = [child for child in children if tree.total_ms[child] < LEAST_SHARE * shown_ms]
    for child in sorted(set(children) - set(small), key=children.index):
        yield from _inside(tree, states, child, sector_id, shown_ms, levels - 1)
    if small:
        ms = sum(tree.total_ms[child] for child in small)
        hover = _told(tree, SMALLER, ms, f"{wording.counted(len(small), 'module')} too narrow to be drawn apart")
        yield Sector(f"{sector_id}:small", sector_id, SMALLER, ms, hover)
    if not path and tree.rest_ms:
        hover = _told(tree, REST, tree.rest_ms, REST_IS)
        yield Sector(f"{sector_id}:rest", sector_id, REST, tree.rest_ms, hover)


def _hover(tree: Tree, path: str, state: RegionState | None) -> str:
    ms, calls = tree.total_ms[path] if path else tree.whole_ms, round(tree.calls.get(path, 0))
    own = f"of its own {wording.latency(tree.own_ms.get(path, 0.0))}, {wording.counted(calls, 'call')}"
    return _told(tree, f"{place_words.name(path)} · {tree.kinds[path]}", ms, own, str(state or NO_REGION))


def _told(tree: Tree, name: str, ms: float, *lines: str) -> str:
    share = wording.quantity(ms / tree.whole_ms, "", is_share=True)
    share = f"{wording.latency(ms)} in eager PyTorch, {share} of the network"
    return "<br>".join([f"<b>{wording.escaped(name)}</b>", share, *map(wording.escaped, lines)])


def states_by_place(regions: Sequence[Region], states: Mapping[str, RegionState]) -> dict[str, RegionState]:
    """What may be done about a module: of regions that share one, the one that is worth most, as they are ranked. Fused
    operators are a part of what their modules do, and colour none."""
    by_place = dict[str, RegionState]()
    for region in (region for region in regions if region.form is Form.MODULE):
        for place in region.places:
            by_place.setdefault(place, states[region.name])
    return by_place


def draw(tree: Tree, states: Mapping[str, RegionState], root: str) -> str | None:
    """Draw what is inside `root`; the path of the module that was clicked just now. That of the topmost is its
    parent's: the way out again."""
    shown = sectors(tree, states, root)
    levels = _levels(shown)
    name = f"Time by place inside {place_words.name(root)}, {wording.counted(len(shown), 'part')}"
    clicked = plot.draw(figure(shown), name, LEVEL_PX * levels + 8, "icicle", key="icicle", least_width=LEAST_WIDTH_PX)
    if clicked is None or not clicked.startswith(PLACE):
        return None
    path = clicked.removeprefix(PLACE)
    return tree.parents.get(path, "") if path == root else path


def _levels(shown: Sequence[Sector]) -> int:
    depth = {"": 0}
    for sector in shown:  # a parent comes before its parts
        depth[sector.sector_id] = depth[sector.parent_id] + 1
    return max(depth.values())


def _text(sector: Sector, whole_ms: float) -> str:
    """Its share, and what came of its kernel or that one is being searched: no colour alone says so."""
    share, has_word = sector.ms / whole_ms, sector.state in (*IN_NETWORK, RegionState.SEARCHING)
    told = wording.quantity(share, "", is_share=True)
    if not has_word or share < LEAST_NAMED:
        return told
    return f"{told}, {sector.state}" if share >= LEAST_BOTH else f"{sector.state}"


def figure(shown: Sequence[Sector]) -> dict[str, Any]:
    """Sectors as Plotly draws them. Trap: with totals Plotly draws nothing where parts are more than their whole by a
    rounding; so each is given what it has beyond its parts."""
    inside = dict[str, float]()
    for sector in shown:
        inside[sector.parent_id] = inside.get(sector.parent_id, 0.0) + sector.ms
    whole = shown[0].ms if shown else 1.0
    trace = {
        "type": "icicle", "branchvalues": "remainder", "sort": False, "tiling": {"orientation": "v", "pad": 1},
        "pathbar": {"visible": False}, "root": {"color": "rgba(0,0,0,0)"},
        "ids": [sector.sector_id for sector in shown], "parents": [sector.parent_id for sector in shown],
        "labels": [wording.escaped(sector.label, 40) for sector in shown],
        "values": [max(0.0, sector.ms - inside.get(sector.sector_id, 0.0)) for sector in shown],
        "text": [_text(sector, whole) for sector in shown],
        "hovertext": [sector.hover for sector in shown], "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": [None if sector.path is None else PLACE + sector.path for sector in shown],
        "textinfo": "label+text", "textposition": "middle center", "textfont": {"color": "@text-color", "size": 12},
        "marker": {
            "colors": [FILL[sector.state] if sector.state else "@gray-background-color" for sector in shown],
            "line": {"width": 0},
        },
    }  # fmt: skip
    layout = {
        "margin": {"l": 0, "r": 0, "t": 0, "b": 8}, "uniformtext": {"minsize": 10, "mode": "hide"},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"bgcolor": "@secondary-background-color", "font": {"color": "@text-color"}},
    }  # fmt: skip
    return {"data": [trace], "layout": layout}
