"""The file that an answer holds: the last text between fences, closed or not, that is a kernel. Knows Python, no runs.

A fence may stand within a string of the file, be left out at an end or carry any tag: what can be parsed tells where
the file begins and ends.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from engine.errors import TaskError
from engine.evaluator.tasks.parsing import parse
from engine.search.patching.edits import MAX_KERNEL, without_numbers

# The first fence of a line; one in a comment is the file's own.
_FENCE = re.compile(r"^[^#\n]*?(`{3,}|~{3,})", re.MULTILINE)
_DEFINITION = re.compile(
    r"^[^\S\n]*+(?:\d{1,6}+ ?[|:\t])?[^\S\n]*+(?:class[ \t]+ModelNew\b|ModelNew[ \t]*+[=:])", re.MULTILINE
)
_CODE = re.compile(r"^([ \t]*+)[^\s#]", re.MULTILINE)
FILE_STARTS = ("import ", "from ", "#", '"""', "'''")
# Characters that may be parsed for one answer. Parsing takes quadratic time at worst, so a long text counts for more.
_ALLOWED, _AT_LEAST, _LONG = 200_000, 200, 20_000


def find_file(answer: str) -> str | None:
    """The last whole file that defines ModelNew, else the last excerpt of one that does, ending in one newline."""
    excerpt = None
    for text in _texts(answer):
        if (module := _parsed(text)) is None or (definition := _definition(module)) is None:
            continue
        if not _is_empty(definition) and not _lacks_names(module, definition):
            return text
        excerpt = excerpt or text
    return excerpt


def _texts(answer: str) -> Iterator[str]:
    """What stands between any two fences and may define ModelNew, the last beginning first, with its nearest end."""
    fences = list(_FENCE.finditer(answer))
    starts, ends = [0, *(_next_line(answer, fence) for fence in fences)], [*map(_end, fences), len(answer)]
    definitions = [match.start() for match in _DEFINITION.finditer(answer)]
    left = _ALLOWED + 4 * min(len(answer), MAX_KERNEL)
    for start in reversed(starts):
        index = bisect_left(definitions, start)
        first = bisect_right(ends, definitions[index]) if index < len(definitions) else len(ends)
        for end in map(ends.__getitem__, range(first, len(ends))):
            length = end - start
            if left <= 0:
                return
            if length > 2 * MAX_KERNEL:  # listing numbers may double a short line
                break
            left -= max(_AT_LEAST, length + length**2 // _LONG)
            text = _as_written(answer[start:end])
            if len(text) <= MAX_KERNEL and (start or text.startswith(FILE_STARTS)):
                yield text


def _next_line(answer: str, fence: re.Match[str]) -> int:
    return (answer.find("\n", fence.end()) + 1) or len(answer)


def _end(fence: re.Match[str]) -> int:
    """Where the text before a fence ends: with the line before it, unless code stands beside it."""
    return fence.start(1) if fence[0][: fence.start(1) - fence.start()].strip() else fence.start()


def _as_written(text: str) -> str:
    """A block's text without listing numbers and without what all of it is indented by, ending in one newline."""
    lines = text.strip("\n\ufeff").split("\n")
    bare = without_numbers(lines, 1)
    if bare == lines and (code := _CODE.search(text)):
        bare = [line.removeprefix(code[1]) for line in lines]
    return "\n".join(bare).strip("\n\ufeff") + "\n"


def _parsed(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a C++ text with "\d" in it is a kernel
            return parse(text, "the file")
    except TaskError:
        return None


def _definition(module: ast.Module) -> ast.ClassDef | ast.Assign | ast.AnnAssign | None:
    """The last statement of the module that gives ModelNew its meaning."""
    for statement in reversed(list(_statements(module.body))):
        match statement:
            case ast.ClassDef(name="ModelNew") | ast.Assign(targets=[ast.Name("ModelNew")]):
                return statement
            case ast.AnnAssign(target=ast.Name("ModelNew"), value=ast.expr()):
                return statement
    return None


def _statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements that the module carries out itself, those under a condition too."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.ExceptHandler | ast.With):
            for name in ("body", "handlers", "orelse", "finalbody"):
                yield from _statements(getattr(statement, name, []))


def _is_empty(statement: ast.stmt) -> bool:
    """Whether a class or function only stands for one that is written elsewhere: `...`, a docstring, nothing else."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return all(map(_is_empty, statement.body))
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _lacks_names(module: ast.Module, definition: ast.ClassDef | ast.Assign | ast.AnnAssign) -> bool:
    """Whether the definition builds on what the text does not hold, such as a base class that it does not import."""
    target: ast.AST = definition if isinstance(definition, ast.ClassDef) else _target(definition)
    bases = definition.bases if isinstance(definition, ast.ClassDef) else [definition.value]
    used = [node for base in bases if base is not None for node in ast.walk(base)]
    wanted = {node.id for node in used if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    names = {name for node in ast.walk(module) if node is not target for name in _bound(node)}
    return "*" not in names and not wanted <= names | set(dir(builtins))


def _target(definition: ast.Assign | ast.AnnAssign) -> ast.expr:
    return definition.targets[0] if isinstance(definition, ast.Assign) else definition.target


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return [(alias.asname or alias.name).partition(".")[0] for alias in names]
        case ast.ClassDef(name) | ast.FunctionDef(name) | ast.Name(name, ast.Store()) | ast.arg(name):
            return [name]
        case _:
            return []
