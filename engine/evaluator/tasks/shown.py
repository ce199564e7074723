"""What of the modules that a task imports can be shown: what its text reaches by name in those from outside the
installed packages. Runs nothing of them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import TaskError
from engine.evaluator.tasks import imported
from engine.evaluator.tasks.parsing import parse

# In all: some thirty classes of a network.
MOST_CHARACTERS = 48_000
FLOAT8 = "float8_"  # how PyTorch's names of 8-bit floats begin


@dataclass(frozen=True, slots=True)
class Shown:
    """The statements of a module that are reached, as they are written; `left_out` names more, for which there is no
    room."""

    name: str
    path: Path
    text: str
    defines: frozenset[str]
    left_out: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """Its file as an import would look for it."""
        package = "/__init__" if self.path.stem == "__init__" else ""
        return f"{self.name.replace('.', '/')}{package}.py"


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """One statement, of an import one name: what it binds, and the names that it reaches."""

    module: str
    text: str
    binds: frozenset[str]
    reaches: frozenset[str]
    is_import: bool


def modules(source: str) -> list[Shown]:
    """The modules of which a text reaches something. Every name that is met on the way counts, and so does a string
    that may be one: a registry finds its entries so."""
    return list(_modules(source, tuple((name, *told) for name, told in imported.modules(source).items())))


@functools.lru_cache(maxsize=4)  # every prompt of a run asks, and a project may be large
def _modules(source: str, found: tuple[tuple[str, Path, str], ...]) -> tuple[Shown, ...]:
    parts = [part for name, _, text in found for part in _parts(name, text)]
    reached = list(_reached(parts, _words(_tree(source)))) if parts else []
    kept, room = set[_Part](), MOST_CHARACTERS
    for part in reached:
        if part.is_import or len(part.text) <= room:
            kept.add(part)
            room -= len(part.text)
    missing = [part for part in reached if part not in kept]
    told = (_told(name, path, [part for part in parts if part in kept], missing) for name, path, _ in found)
    return tuple(module for module in told if module.defines or module.left_out)


def text_with_modules(source: str) -> str:
    """A task's text and what is shown of its modules, for who looks for words in it."""
    return "\n".join([source, *(module.text for module in modules(source))])


def holds_float8(source: str) -> bool:
    """Whether a task's text, or that of its modules, names an 8-bit float."""
    return FLOAT8 in text_with_modules(source)


def _told(name: str, path: Path, kept: Sequence[_Part], missing: Sequence[_Part]) -> Shown:
    text, defines = "", set[str]()
    for part in kept:
        if part.module == name:
            text += f"{part.text}\n" if part.is_import else f"\n\n{part.text}\n"
            defines |= set() if part.is_import else part.binds
    left_out = [word for part in missing if part.module == name for word in sorted(part.binds)]
    return Shown(name, path, text.strip("\n"), frozenset(defines), tuple(left_out))


def _reached(parts: Sequence[_Part], wanted: frozenset[str]) -> Iterator[_Part]:
    """Those that bind a name that is wanted, the nearest first; each wants more."""
    left = list(parts)
    while new := [part for part in left if part.binds & wanted]:
        yield from new
        left = [part for part in left if not part.binds & wanted]
        wanted = wanted.union(*(part.reaches for part in new))


def _parts(module: str, text: str) -> Iterator[_Part]:
    lines = text.splitlines()
    for node in _tree(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (_of_import(module, node, alias) for alias in node.names)
        elif binds := _bound(node):
            first = min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])
            written = "\n".join(lines[first - 1 : node.end_lineno])
            yield _Part(module, written, binds, _words(node), is_import=False)


def _of_import(module: str, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> _Part:
    single = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], node.level)
    bound = alias.asname or alias.name.partition(".")[0]
    reaches = frozenset({alias.name.rpartition(".")[2]} - {bound})
    return _Part(module, ast.unparse(single), frozenset({bound}), reaches, is_import=True)


def _bound(statement: ast.stmt) -> frozenset[str]:
    """Names that a statement of a module may give to something."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset({statement.name})
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
    return frozenset(names)


def _words(tree: ast.AST) -> frozenset[str]:
    """The names that are met in a tree, as such, as an attribute, in an import or as a string."""
    names = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                names.add(name)
            case ast.alias(name=name):
                names.add(name.rpartition(".")[2])
    return frozenset(names)


def _tree(text: str) -> ast.Module:
    try:
        return parse(text, "a module")
    except TaskError:
        return ast.Module([], [])
