"""What languages share whose kernels are Python functions under a decorator: how such a file is read. Runs nothing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator


def parsed(source: str) -> ast.Module | None:
    """The file's tree, None where it is no Python that can be read."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def functions(module: ast.Module, *decorators: str) -> Iterator[ast.FunctionDef]:
    """Functions and methods with one of the decorators, which are full names, under whatever name it was imported."""
    names = imported(module)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and any(full(mark, names) in decorators for mark in node.decorator_list):
            yield node


def imported(module: ast.Module) -> dict[str, str]:
    """What a name stands for that was imported."""
    names: dict[str, str] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def full(node: ast.expr, names: dict[str, str]) -> str:
    """The full name of a decorator, with or without arguments; empty for anything else."""
    if isinstance(node, ast.Call):
        return full(node.func, names)
    if isinstance(node, ast.Attribute):
        head = full(node.value, names)
        return f"{head}.{node.attr}" if head else ""
    return names.get(node.id, "") if isinstance(node, ast.Name) else ""


def words(module: ast.AST) -> Counter[str]:
    """Names and attributes, with how often each stands there."""
    names = [node.id for node in ast.walk(module) if isinstance(node, ast.Name)]
    return Counter([*names, *(node.attr for node in ast.walk(module) if isinstance(node, ast.Attribute))])


def uses(module: ast.Module, pattern: re.Pattern[str], *decorators: str) -> Counter[str]:
    """The words of the decorated functions that fit a pattern."""
    counts = Counter[str]()
    for node in functions(module, *decorators):
        counts.update({name: count for name, count in words(node).items() if pattern.fullmatch(name)})
    return counts


def cut(example: str) -> str:
    """The functions of a file, without imports and classes."""
    module = parsed(example)
    kept = [node for node in module.body if isinstance(node, ast.FunctionDef)] if module is not None else []
    if not kept:
        return example.strip()
    lines = example.split("\n")
    pieces = []
    for node in kept:
        first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
        pieces.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n\n\n".join(pieces).strip()
