"""What a kernel's file builds, read from its text: the arguments of its `load_inline` calls, as far as they are made of
texts and numbers. Runs nothing of the file."""

from __future__ import annotations

import ast
import operator
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MOST_CHARACTERS = 4_000_000
MOST_NUMBERS = 1 << 20
_TEXT_METHODS = frozenset({"replace", "format", "strip", "lstrip", "rstrip", "join", "upper", "lower"})
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "str": str, "int": int, "list": list, "tuple": tuple, "textwrap.dedent": textwrap.dedent, "dedent": textwrap.dedent,
}  # fmt: skip
_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}


class Unreadable(ValueError):
    """An expression is made of more than texts and numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Build:
    """One call of `load_inline`: where it stands, its arguments, and the names that only it uses."""

    node: ast.Call
    arguments: Mapping[str, Any]


_POSITIONAL = ("name", "cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags")


def builds(module: ast.Module) -> list[Build]:
    """The libraries that a file builds, in its order.

    Raises:
        Unreadable: an argument is worked out while the file runs.
    """
    names = assigned(module)
    return [
        Build(node, _arguments(node, names))
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and _called(node) == "load_inline"
    ]


def assigned(module: ast.Module) -> dict[str, Any]:
    """The names that a file gives a text, a number or a list of them, once and at module level."""
    names: dict[str, Any] = {}
    seen = set[str]()
    for statement in module.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) or statement.value is None:
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        if not isinstance(target, ast.Name):
            continue
        try:
            value = evaluated(statement.value, names)
        except Unreadable:
            names.pop(target.id, None)
        else:
            names[target.id] = value
        if target.id in seen or isinstance(statement, ast.AugAssign):
            names.pop(target.id, None)
        seen.add(target.id)
    return names


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _arguments(node: ast.Call, names: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(zip(_POSITIONAL, node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    if len(given) < len(node.args) + len(node.keywords):
        raise Unreadable("load_inline is called with arguments that are unpacked")
    return {name: evaluated(value, names) for name, value in given.items()}


def evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression of texts, numbers, lists and names that have such a value.

    Raises:
        Unreadable: there is more in it.
    """
    value = _evaluated(node, names)
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise Unreadable("a text is too long")
    return value


def _evaluated(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [evaluated(item, names) for item in items]
        case ast.Dict(keys=keys, values=values) if all(keys):
            return {evaluated(k, names): evaluated(v, names) for k, v in zip(keys, values, strict=True) if k}
        case ast.JoinedStr(values=parts):
            return "".join(str(evaluated(part, names)) for part in parts)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            return evaluated(value, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _tried(lambda: _OPERATORS[type(op)](evaluated(left, names), evaluated(right, names)))
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments, keywords=keywords) if (
            method in _TEXT_METHODS and isinstance(text := evaluated(value, names), str)
        ):
            plain = [evaluated(argument, names) for argument in arguments]
            named = {keyword.arg: evaluated(keyword.value, names) for keyword in keywords if keyword.arg}
            if method == "format" and any("." in part or "[" in part for part in _fields(text)):
                raise Unreadable("a text is filled with parts of objects")
            return _tried(lambda: getattr(text, method)(*plain, **named))
        case ast.Call(func=function, args=arguments, keywords=[]) if ast.unparse(function) in _FUNCTIONS:
            return _tried(lambda: _FUNCTIONS[ast.unparse(function)](*(evaluated(item, names) for item in arguments)))
    raise Unreadable(f"line {node.lineno}: {ast.unparse(node)[:80]} is worked out while the file runs")


def _fields(text: str) -> list[str]:
    import string

    return [name for _, name, _, _ in string.Formatter().parse(text) if name]


def _tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Unreadable:
        raise
    except (TypeError, ValueError, KeyError, IndexError, ZeroDivisionError, OverflowError, MemoryError) as error:
        raise Unreadable(f"a text cannot be put together: {error}") from error
