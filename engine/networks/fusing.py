"""Runs of elementwise operators, reductions and normalisations around a product, as the graph of a whole network has
them: a residual and the norm after it, an activation and the products that it reads, whatever the modules' borders are.

Operators with the same number of products before them on the longest way, that read each other's results, are one run:
no way leads out of such a run and back, since it would pass a product. Products whose results only the run reads join.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torch import fx

from engine.networks import graphs
from engine.networks.graphs import Graph, is_cheap, is_product, is_view, name_of, places_of

LEAST_OPERATORS = 2
MOST_OPERATORS = 40
MOST_PRODUCTS = 2


@dataclass(frozen=True, slots=True)
class Run:
    """Operators that one kernel could compute."""

    nodes: tuple[fx.Node, ...]
    inputs: tuple[fx.Node, ...]
    state: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    prefix: str
    """Of all its parameters' names, with the dot: the place that they lie in."""

    @property
    def parts(self) -> frozenset[str]:
        """The modules whose forwards call its operators."""
        return frozenset(places_of(node) for node in self.nodes if not is_view(node))

    @property
    def place(self) -> str:
        """The innermost module that holds them all."""
        return ".".join(_shared([part.split(".") for part in self.parts]))


def runs(graph: Graph) -> list[Run]:
    """Every run of two operators or more that reaches over a module's border, in order."""
    level, root = _levels(graph.nodes), _joined(graph.nodes)
    members: dict[tuple[int, fx.Node], list[fx.Node]] = {}
    for node in graph.nodes:
        if node in root:
            members.setdefault((level[node], root[node]), []).append(node)
    found = []
    for nodes in members.values():
        nodes = _with_products(nodes, graph.nodes)
        if run := _run(graph, nodes):
            found.append(run)
    return found


def _levels(nodes: Sequence[fx.Node]) -> dict[fx.Node, int]:
    """Products, and whatever else is neither cheap nor a view, on the longest way to each operator."""
    level: dict[fx.Node, int] = {}
    for node in nodes:
        step = lambda used: level.get(used, 0) + (used in level and not _may_join(used))  # noqa: E731
        level[node] = max(map(step, node.all_input_nodes), default=0)
    return level


def _may_join(node: fx.Node) -> bool:
    return not is_product(node) and (is_cheap(node) or is_view(node))


def _joined(nodes: Sequence[fx.Node]) -> dict[fx.Node, fx.Node]:
    """The first operator of each operator's run."""
    level, root = _levels(nodes), dict[fx.Node, fx.Node]()

    def top(node: fx.Node) -> fx.Node:
        while root[node] is not node:
            node = root[node]
        return node

    for node in nodes:
        if not _may_join(node):
            continue
        root[node] = node
        for used in node.all_input_nodes:
            if used in root and level[used] == level[node]:
                root[top(used)] = node
    return {node: top(node) for node in root}


def _with_products(nodes: list[fx.Node], order: Sequence[fx.Node]) -> list[fx.Node]:
    """The run with the products whose results it alone reads, where there are few."""
    members = set(nodes)
    products = {
        used
        for node in nodes
        for used in node.all_input_nodes
        if used.op == "call_function" and is_product(used) and set(used.users) <= members
    }
    if 0 < len(products) <= MOST_PRODUCTS and not _reads_one_another(products):
        members |= products
    return [node for node in order if node in members]


def _reads_one_another(products: Iterable[fx.Node]) -> bool:
    """Whether one's result goes into another: then they are a chain, and no epilogue's."""
    products = set(products)
    waiting, seen = [used for node in products for used in node.all_input_nodes], set[fx.Node]()
    while waiting:
        node = waiting.pop()
        if node in products:
            return True
        if node not in seen and len(seen) < 1000:
            seen.add(node)
            waiting += node.all_input_nodes
    return False


def _run(graph: Graph, nodes: list[fx.Node]) -> Run | None:
    nodes = _without_lone_views(nodes)
    counting = [node for node in nodes if not is_view(node)]
    if not LEAST_OPERATORS <= len(counting) <= MOST_OPERATORS or len({places_of(node) for node in counting}) < 2:
        return None
    members = set(nodes)
    used = dict.fromkeys(part for node in nodes for part in node.all_input_nodes if part not in members)
    state = tuple(part for part in used if part in graph.state)
    inputs = tuple(part for part in used if part not in graph.state)
    given = set(graph.outputs)
    outputs = tuple(node for node in nodes if node in given or not set(node.users) <= members)
    if not inputs or not outputs or any("val" not in node.meta for node in (*inputs, *outputs)):
        return None
    return Run(tuple(nodes), inputs, state, outputs, _prefix([graph.state[node] for node in state], counting))


def _without_lone_views(nodes: list[fx.Node]) -> list[fx.Node]:
    """Without views at its ends, which cost nothing where they are."""
    members = set(nodes)
    while ends := {node for node in members if is_view(node) and _is_end(node, members)}:
        members -= ends
    return [node for node in nodes if node in members]


def _is_end(node: fx.Node, members: set[fx.Node]) -> bool:
    return not members & set(node.users) or not members & set(node.all_input_nodes)


def _prefix(names: Sequence[str], nodes: Sequence[fx.Node]) -> str:
    paths = [name.split(".")[:-1] for name in names] or [places_of(node).split(".") for node in nodes]
    return "".join(f"{part}." for part in _shared(paths) if part)


def _shared(paths: Sequence[Sequence[str]]) -> list[str]:
    """The names that all paths begin with."""
    columns = itertools.takewhile(lambda names: len(set(names)) == 1, zip(*paths, strict=False))
    return [names[0] for names in columns]


def neighbours(nodes: Iterable[fx.Node]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operators before and after, by name; views are looked through."""
    members = set(nodes)
    before = {
        name
        for node in members
        for used in node.all_input_nodes
        if used not in members
        for name in _named(used, is_back=True)
    }
    after = {
        name for node in members for user in node.users if user not in members for name in _named(user, is_back=False)
    }
    return tuple(sorted(before)), tuple(sorted(after))


def _named(node: fx.Node, *, is_back: bool, depth: int = 8) -> set[str]:
    if node.op != "call_function":
        return set()
    if graphs.is_view(node) and depth:
        around = node.all_input_nodes if is_back else list(node.users)
        return {name for part in around for name in _named(part, is_back=is_back, depth=depth - 1)}
    return {name_of(node)}
