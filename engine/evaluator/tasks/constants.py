"""The module-level numbers of a task's text: its sizes. Reads and replaces them; runs no code of the task."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from engine.errors import TaskError
from engine.evaluator.tasks.parsing import parse

Size = int | float
LARGEST = 1_000_000_000
MOST_BITS = 256  # of a whole number on the way to a size
_UNARY: Mapping[type[ast.unaryop], Callable[..., Any]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Invert: operator.invert,
}  # fmt: skip
_BINARY: Mapping[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_,
}  # fmt: skip


def constants(module: ast.Module) -> dict[str, Size]:
    """The numbers assigned at module level, by name: `N = 2048 * 2` and each of `height, width = 32, 64`."""
    pairs = ((name, number(value)) for name, value in _assigned(module))
    return {name: value for name, value in pairs if value is not None}


def sizes_of(text: str) -> dict[str, Size]:
    """The constants of a module's text."""
    return constants(parse(text, "task"))


def set_constants(text: str, values: Mapping[str, Size], path: Path | str = "task") -> str:
    """The module with the values of its module-level number assignments replaced; all else is untouched.

    Names that one assignment gives the same value (`height = width = 256`) change together.

    Raises:
        TaskError: a name is not assigned at module level, a value is none that it can have, or two that change together
            are to differ.
    """
    module = parse(text, path)
    spots = dict(_assigned(module))
    if unknown := sorted(set(values) - set(spots)):
        available = ", ".join(f"{k}={v}" for k, v in constants(module).items()) or "none"
        raise TaskError(f"{path} has no module-level number {', '.join(unknown)} to set. Available: {available}.")
    lines = text.split("\n")
    for node, names in sorted(_together(spots).items(), key=lambda item: (-item[0].lineno, -item[0].col_offset)):
        current = number(node)
        new_values = {_allowed(name, values[name], current) for name in names if name in values} - {current}
        if len(new_values) > 1:
            raise TaskError(f"{path} assigns {' and '.join(names)} together: set them to one value")
        if new_values:
            _replace(lines, node, repr(new_values.pop()), names[0], path)
    return "\n".join(lines)


def least_size(current: Size) -> int | None:
    """The least value that may take the place of a module's own: 1 for a whole number, lower where that is 0 or
    negative; None for a number that need not be whole."""
    if not isinstance(current, int):
        return None
    return 1 if current >= 1 else 0 if current == 0 else -LARGEST


def _allowed(name: str, value: Size, current: Size | None) -> Size:
    """A value as it stands in the module: a whole number where the module's own is one."""
    least = None if current is None else least_size(current)
    if math.isfinite(value) and (least is None or (value >= least and value == int(value))):
        return value if least is None else int(value)
    kind = "a finite number" if least is None else "a whole number"
    bound = f" from {least}" if least in (0, 1) else ""
    raise TaskError(f"{name}={value:g} is not valid: {name} is {kind}{bound} ({current} in the task)")


def _together(spots: Mapping[str, ast.expr]) -> dict[ast.expr, list[str]]:
    """Names by the expression that they get their value from."""
    by_node: dict[ast.expr, list[str]] = {}
    for name, node in spots.items():
        by_node.setdefault(node, []).append(name)
    return by_node


def _replace(lines: list[str], node: ast.expr, new: str, name: str, path: Path | str) -> None:
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        raise TaskError(f"{path}: {name} is assigned over several lines and cannot be set: write it on one line")
    raw = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (raw[: node.col_offset] + new.encode() + raw[node.end_col_offset :]).decode()


def _assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Each name assigned at module level with its expression; of several assignments the last counts."""
    for node in module.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for element, its in zip(target.elts, value.elts, strict=True):
            yield from _pairs(element, its)


def number(node: ast.expr) -> Size | None:
    """The value of an arithmetic expression over literals (KernelBench writes `N = 2048 * 2`), else None.

    A size fits into 64 bits and is finite; what is larger, as `9**9**9` is, is none, and never computed.
    """
    try:
        value = _value(node)
    except (ArithmeticError, ValueError, TypeError, RecursionError):
        return None
    is_size = math.isfinite(value) if isinstance(value, float) else value.bit_length() < 64
    return value if is_size else None


def _value(node: ast.expr) -> Size:
    """Of each step only a plain number goes on, and no operation that would make a long one is begun."""
    match node:
        case ast.Constant(value) if type(value) in (int, float):
            return _short(value)
        case ast.UnaryOp(sign, operand) if type(sign) in _UNARY:
            return _short(_UNARY[type(sign)](_value(operand)))
        case ast.BinOp(left, sign, right) if type(sign) in _BINARY:
            first, second = _value(left), _value(right)
            if isinstance(sign, ast.Pow | ast.LShift) and isinstance(first, int) and isinstance(second, int):
                bits = second + first.bit_length() if isinstance(sign, ast.LShift) else second * first.bit_length()
                if bits > MOST_BITS:
                    raise OverflowError
            return _short(_BINARY[type(sign)](first, second))
    raise ValueError


def _short(value: Any) -> Size:
    if type(value) not in (int, float) or (isinstance(value, int) and value.bit_length() > MOST_BITS):
        raise ValueError  # as a negative number's root is complex
    return cast(Size, value)
