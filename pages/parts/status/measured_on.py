"""What a run's figures were measured on, in a few words: shapes of the inputs, number format and device. Shapes are
read from the reference's own text; where that does not say them plainly, the sizes that were set are told by name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping

from pages.parts import run_settings
from storage.codec import DecodeError
from storage.index.queries import RunRow
from storage.run.settings import RunSettings

DRAWN = ("rand", "randn", "randint", "ones", "zeros", "empty")  # of torch, with the shape as their arguments
SHOWN = 3  # shapes at most


def words(run: RunRow) -> list[str]:
    """Shapes, format, device: what is known of them."""
    settings = _settings(run.run_id)
    device = run.device.partition(",")[0].removeprefix("NVIDIA ")
    return [part for part in (*(of(settings) if settings else ()), device) if part]


def of(settings: RunSettings) -> tuple[str, str]:
    """Shapes or sizes, and what is computed in."""
    named = [f"{name} = {value:,}" for name, value in settings.sizes.items()]
    policy, measured = settings.policy, settings.policy.measured
    if narrow := formats(settings.task_source):
        measured = f"{', '.join(narrow)}{measured.removeprefix(policy.dtype or policy.precision)}"
    return ", ".join(shapes(settings.task_source) or named), measured


@functools.lru_cache(maxsize=64)
def formats(source: str) -> tuple[str, ...]:
    """The 8-bit floats that a module names, each once: no class of arithmetic, which is what a policy tells, is one."""
    try:
        names = [node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    except (SyntaxError, ValueError):
        return ()
    return tuple(dict.fromkeys(name for name in names if name.startswith("float8_")))


@functools.lru_cache(maxsize=64)
def shapes(source: str) -> tuple[str, ...]:
    """The shapes of the inputs that `get_inputs` draws, like "4096 × 4096", each once; empty where any is not plain."""
    try:
        tree = ast.parse(source)
        numbers = dict(_numbers(tree))
        inputs = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_inputs")
        found = [_shape(call, numbers) for call in ast.walk(inputs) if isinstance(call, ast.Call) and _draws(call)]
    except (SyntaxError, StopIteration, ValueError):
        return ()
    each = tuple(dict.fromkeys(" × ".join(map(str, shape)) for shape in found if shape))
    return each if len(each) <= SHOWN else (*each[:SHOWN], "…")


def _numbers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(value))):
                yield name, value


def _draws(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            return name in DRAWN
    return False


def _shape(call: ast.Call, numbers: Mapping[str, int]) -> list[int]:
    """ValueError where a dimension is no number."""
    arguments = call.args[-1:] if isinstance(call.func, ast.Attribute) and call.func.attr == "randint" else call.args
    dimensions = [d for a in arguments for d in (a.elts if isinstance(a, ast.Tuple | ast.List) else [a])]
    return [_number(dimension, numbers) for dimension in dimensions]


def _number(node: ast.expr, numbers: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name) if name in numbers:
            return numbers[name]
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _number(left, numbers) * _number(right, numbers)
    raise ValueError(ast.unparse(node))


def _settings(run_id: str) -> RunSettings | None:
    try:
        return run_settings.of(run_id)
    except (FileNotFoundError, DecodeError):
        return None
