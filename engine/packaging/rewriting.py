"""A kernel's file as it stands in a package: its C++ in files of their own, its launches seen by PyTorch's compiler."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from engine.packaging import calls
from engine.packaging.literals import Build

_LINE = re.compile(rb"\r\n|\r|\n")
MOST_SHOWN = 40  # characters of a text that stay where it stands
LIBRARY = "_tilewright_library"
WRAPPED = "_tilewright_triton"


def with_libraries(source: str, module: ast.Module, builds: Mapping[Build, str]) -> str:
    """The file with its libraries taken from the package, and without the texts that only they are made of."""
    changes: list[tuple[ast.AST, str]] = [
        (build.node, f'{LIBRARY}("{name}")') for build, name in builds.items()
    ]  # fmt: skip
    changes += [(node, f"# {_target(node)}: in csrc") for node in _only_for(module, [b.node for b in builds])]
    return _headed(_edited(source, changes), f"from ._build import library as {LIBRARY}")


def with_wrapped_launches(source: str, module: ast.Module) -> str:
    """The file with each Triton kernel wrapped where it is launched."""
    changes: list[tuple[ast.AST, str]] = [(node, f"{WRAPPED}({ast.unparse(node)})") for node in calls.launches(module)]
    return _headed(_edited(source, changes), f"from torch.library import wrap_triton as {WRAPPED}")


def _headed(text: str, line: str) -> str:
    """The text with one more import, behind those from __future__ and its docstring."""
    module = ast.parse(text)
    ahead = [
        node
        for node in module.body
        if (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        or (node is module.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    lines = text.splitlines(keepends=True)
    at = ahead[-1].end_lineno or 0 if ahead else 0
    return "".join([*lines[:at], f"{line}\n", *lines[at:]])


def _only_for(module: ast.Module, nodes: Iterable[ast.Call]) -> list[ast.stmt]:
    """Assignments of long texts to names that nothing uses beside these calls and such assignments."""
    inside = {id(part) for node in nodes for part in ast.walk(node)}
    found = [
        statement
        for statement in module.body
        if isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and any(isinstance(p, ast.Constant) and len(str(p.value)) > MOST_SHOWN for p in ast.walk(statement.value))
    ]
    while True:
        own = inside | {id(part) for statement in found for part in ast.walk(statement)}
        used = {
            node.id
            for node in ast.walk(module)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in own
        }
        kept = [statement for statement in found if _target(statement) not in used]
        if len(kept) == len(found):
            return list(kept)
        found = kept


def _target(statement: ast.stmt) -> str:
    assert isinstance(statement, ast.Assign)
    return ast.unparse(statement.targets[0])


def _edited(source: str, changes: Iterable[tuple[ast.AST, str]]) -> str:
    text = source.encode()
    starts = [0, *(match.end() for match in _LINE.finditer(text))]
    for node, new in sorted(changes, key=lambda change: _begin(change[0]), reverse=True):
        first = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        last = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        text = text[:first] + new.encode() + text[last:]
    return text.decode()


def _begin(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]
