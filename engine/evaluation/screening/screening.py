"""Screens a candidate's text: Python and the C++ in its strings. Pure; never raises on any text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from engine.evaluation.screening import cpp_rules, model, python_rules
from engine.evaluation.screening.cpp_rules import Unit
from engine.evaluation.screening.finding import Finding, Rule, ordered
from engine.evaluation.screening.reader import read
from engine.evaluation.screening.uses import Reading
from engine.evaluation.screening.values import Piece, Text
from storage.policy import Policy

MAX_SOURCE = 1_000_000
MAX_NODES = 60_000
MAX_TEXTS = 60
CPP_SIGNS = ("#include", "__global__", "::", "#define", "->", "asm", "extern", "TORCH_LIBRARY")


def screen(source: str, policy: Policy, reference: str) -> list[Finding]:
    """What a candidate may not do, refusals first. A syntax error is for the compiler to report: no findings.

    Args:
        source: the candidate's file.
        policy: what its task allows.
        reference: the task's source.
    """
    if len(source) > MAX_SOURCE:
        return [_unreadable("the file is longer than a million characters")]
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    except (RecursionError, MemoryError):
        return [_unreadable("the file is nested too deeply to be read")]
    if sum(1 for _ in ast.walk(module)) > MAX_NODES:
        return [_unreadable("the file has too many expressions to be read")]
    try:
        return ordered(_findings(module, policy, _parsed(reference)))
    except RecursionError:
        return [_unreadable("the file is nested too deeply to be read")]


def _unreadable(why: str) -> Finding:
    return Finding(Rule.DYNAMIC, None, f"{why}; write the candidate plainly", True)


def _parsed(reference: str) -> ast.Module | None:
    try:
        return ast.parse(reference)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _findings(module: ast.Module, policy: Policy, reference: ast.Module | None) -> Iterator[Finding]:
    reading = read(module)
    yield from python_rules.judge(reading, policy)
    yield from python_rules.copies(reading, model.task_operators(reference))
    yield from model.judge(module, reading, reference)
    texts = _texts(module, reading)
    if len(texts) > MAX_TEXTS:
        yield _unreadable("the file holds too many C++ strings")
    units = [(text, Unit.of(text.text)) for text in texts[:MAX_TEXTS]]
    own = frozenset(name for _, unit in units for name in unit.own)
    for text, unit in units:
        for breach in cpp_rules.breaches(unit, own, policy):
            yield Finding(breach.rule, line_in_file(text, breach.line), breach.message, breach.is_refusal)


def _texts(module: ast.Module, reading: Reading) -> list[Text]:
    """C++ to read: what is built, then every other string that looks like it."""
    known = list(reading.sources)
    all_of_it = "\n".join(text.text for text in known)
    for node in _strings(module):
        value = str(node.value)
        if value not in all_of_it and _looks_like_cpp(value):
            steps = node.end_lineno is not None and value.count("\n") == node.end_lineno - node.lineno
            known.append(Text((Piece(value, node.lineno, steps),)))
    return known


def _strings(module: ast.Module) -> Iterable[ast.Constant]:
    """String constants that are no docstrings or bare statements."""
    bare = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node


def _looks_like_cpp(text: str) -> bool:
    return (any(sign in text for sign in CPP_SIGNS) and ("(" in text or "#" in text)) or (";" in text and "{" in text)


def line_in_file(text: Text, line: int) -> int | None:
    """The line of the candidate's file on which a line of its C++ stands."""
    left = line - 1
    for piece in text.pieces:
        breaks = piece.text.count("\n")
        if left <= breaks and piece.text:
            if piece.line is None:
                return None
            return piece.line + left if piece.is_stepping else piece.line
        left -= breaks
    return None
