"""From a reference's text to its mutants: each is a whole candidate with one change. Runs nothing."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.meaning import expressions, modules
from benchmarks.meaning.expressions import About, Rule, replaced

# Of a network with many layers alike a few places are enough.
PLACES = 3
PRELUDE = """import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def without_last(x, dim):
    found = x.clone()
    found.select(dim, -1).zero_()
    return found


def without_last_element(x):
    found = x.clone(memory_format=torch.contiguous_format)
    found.view(-1)[-1:] = 0
    return found


def rounded(x, dtype):
    return x.to(dtype).to(x.dtype)


"""
DROPPED = ("get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A candidate: which mutation made it, the text that was changed with what stands there now, and the whole."""

    mutation: str
    change: str
    source: str


def names() -> list[str]:
    """Every mutation that there is."""
    rules = (*expressions.RULES, *modules.ALTERATIONS, *modules.RULES)
    return sorted(rule.__name__ for rule in rules)


def mutants(source: str, wanted: Collection[str] = ()) -> list[Mutant]:
    """All of them, or those that the named mutations make; no two have the same text."""
    tree = _candidate(source)
    found: dict[str, Mutant] = {}
    for mutation in names():
        if not wanted or mutation in wanted:
            made = list(_of_mutation(tree, mutation))
            for one in made if len(made) <= PLACES else [made[0], made[len(made) // 2], made[-1]]:
                found.setdefault(one.source, one)
    return list(found.values())


def unchanged(source: str) -> str:
    """The reference as a candidate."""
    return PRELUDE + ast.unparse(_candidate(source))


def _candidate(source: str) -> ast.Module:
    """The same module with its class named ModelNew, without what draws inputs and without what it says of itself."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if getattr(node, "name", "") not in DROPPED]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            node.name = "ModelNew"
        elif isinstance(node, ast.Name) and node.id == "Model":
            node.id = "ModelNew"
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _of_mutation(tree: ast.Module, mutation: str) -> Iterator[Mutant]:
    for place, node, about, is_constructor in _places(tree):
        for text, needed in _texts(node, about, mutation, is_constructor):
            if text != ast.unparse(node):
                made = copy.deepcopy(tree)
                whole = replaced(made, list(ast.walk(made))[place], text)
                yield Mutant(mutation, f"{ast.unparse(node)} -> {text}", f"{PRELUDE}{needed}\n\n{ast.unparse(whole)}")


def _texts(node: ast.expr, about: About, mutation: str, is_constructor: bool) -> Iterator[tuple[str, str]]:
    """What may stand in an expression's place, and the class that it needs."""
    if is_constructor:
        for alteration in modules.ALTERATIONS:
            if alteration.__name__ == mutation:
                yield from modules.altered(node, alteration)
    rules: Sequence[Rule] = modules.RULES if is_constructor else expressions.RULES
    for rule in rules:
        if rule.__name__ == mutation:
            yield from ((text, "") for text in rule(node, about))


def _places(tree: ast.Module) -> Iterator[tuple[int, ast.expr, About, bool]]:
    """Every expression in a method of a class, with its place in the walk of the whole tree."""
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        about = About(_parameters(kind))
        for method in (node for node in kind.body if isinstance(node, ast.FunctionDef)):
            is_forward = method.name == "forward" and kind.name == "ModelNew"
            results = {id(node.value) for node in ast.walk(method) if isinstance(node, ast.Return) and is_forward}
            functions = {id(node.func) for node in ast.walk(method) if isinstance(node, ast.Call)}
            for node in (one for statement in method.body for one in ast.walk(statement)):
                if isinstance(node, ast.expr) and not _is_target(node) and id(node) not in functions:
                    own = About(about.parameters, id(node) in results)
                    yield numbers[id(node)], node, own, method.name == "__init__"


def _is_target(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))


def _parameters(kind: ast.ClassDef) -> set[str]:
    """Names of `self.name = nn.Parameter(...)`."""
    return {
        target.attr
        for node in ast.walk(kind)
        if isinstance(node, ast.Assign) and "Parameter(" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
