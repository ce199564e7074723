"""The rules on a candidate's text alone: its Python, and the C++ in its strings. Runs nothing, never raises."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from engine.evaluator import languages
from engine.evaluator.checks.live_code import live
from engine.evaluator.checks.screening import cpp_text, python_text
from engine.evaluator.checks.screening.finding import Finding, Rule, ordered
from storage.results.policy import PRECISIONS, Policy

MAX_SOURCE = 1_000_000
MAX_NODES = 60_000
MAX_TEXTS = 60
EIGHT_BITS = "float8_"
CPP_SIGNS = ("#include", "__global__", "::", "#define", "->", "asm", "extern", "TORCH_LIBRARY")


def screen(source: str, policy: Policy, language: str = "") -> list[Finding]:
    """What a candidate may not do where it runs, refusals first. A syntax error is for the compiler to report: no
    findings.

    Args:
        source: the candidate's file.
        policy: what its task allows.
        language: the one that it must be written in; empty for any.
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
        module = live(module)
        allowed = _allowing(policy, language or languages.written_in(source))
        return ordered([*_findings(module, allowed), *_of_language(module, language)])
    except RecursionError:
        return [_unreadable("the file is nested too deeply to be read")]


def _allowing(policy: Policy, language: str) -> Policy:
    imports = languages.find(language).imports
    return replace(policy, imports=(*policy.imports, *imports)) if imports else policy


def _of_language(module: ast.Module, language: str) -> Iterator[Finding]:
    if language and (lacking := languages.find(language).lacks(ast.unparse(module))):
        yield Finding(Rule.LANGUAGE, None, lacking, True)


def read_for(policy: Policy, task_source: str) -> Policy:
    """The policy that a text is read by: a task with 8-bit floats needs narrow types, and what is rounded to
    them is told by the numbers alone."""
    return replace(policy, precision=PRECISIONS[-1]) if EIGHT_BITS in task_source and not policy.dtype else policy


def screen_cpp(texts: Iterable[str], policy: Policy) -> list[Finding]:
    """What C++ may not do that a file puts together and builds; nobody knows its lines."""
    return ordered(finding for text in texts for finding in cpp_text.findings(text, policy, None))


def _unreadable(why: str) -> Finding:
    return Finding(Rule.DYNAMIC, None, f"{why}; write the candidate plainly", True)


def _findings(module: ast.Module, policy: Policy) -> Iterator[Finding]:
    yield from python_text.findings(module, policy)
    texts = [node for node in _strings(module) if _looks_like_cpp(str(node.value))]
    if len(texts) > MAX_TEXTS:
        yield _unreadable("the file holds too many C++ strings")
    for node in texts[:MAX_TEXTS]:
        text = str(node.value)
        maps = node.end_lineno is not None and text.count("\n") == node.end_lineno - node.lineno
        yield from cpp_text.findings(text, policy, node.lineno if maps else None)


def _strings(module: ast.Module) -> Iterator[ast.Constant]:
    """String constants that are no docstrings or bare statements."""
    bare = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node


def _looks_like_cpp(text: str) -> bool:
    return (any(sign in text for sign in CPP_SIGNS) and ("(" in text or "#" in text)) or (";" in text and "{" in text)
