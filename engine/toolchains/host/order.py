"""What a candidate asks to be built, and where its C++ stands. It comes from untrusted code, so all is checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

MAX_SOURCE = 4_000_000
STOCK_ONLY = re.compile(
    r"#\s*include\s*[<\"](ATen/|c10/|pybind11/|torch/(?!extension\.h|headeronly/|csrc/stable/))"
    r"|PYBIND11_MODULE|\bpy::|\bTORCH_LIBRARY"
)


class OrderRefused(ValueError):
    """The request cannot be built here; the message is written for the model."""


@dataclass(frozen=True, slots=True)
class Order:
    """One call of load_inline. `functions` None means the source brings its own binding module."""

    name: str
    sources: tuple[str, ...]
    functions: tuple[str, ...] | None
    flags: tuple[str, ...]

    @property
    def needs_stock(self) -> bool:
        """True when the light header cannot do, seen without compiling."""
        return self.functions is None or any(STOCK_ONLY.search(source) for source in self.sources)


def read(plain: Mapping[str, object]) -> Order:
    """Check a request.

    Raises:
        OrderRefused: it is malformed, too large, or asks for something a host build does not have.
    """
    if plain.get("cuda_sources"):
        raise OrderRefused("this toolchain builds for the host CPU: pass the code in cpp_sources, without cuda_sources")
    sources = _texts(plain.get("sources"), "cpp_sources")
    functions = plain.get("functions")
    names = None if functions is None else _texts(functions, "functions")
    for name in (str(plain.get("name")), *(names or ())):
        if not re.fullmatch(r"[A-Za-z_]\w{0,199}", name):
            raise OrderRefused(f"{name!r} is not a valid C++ name")
    if sum(map(len, sources)) > MAX_SOURCE:
        raise OrderRefused("the C++ source is too large")
    return Order(str(plain["name"]), sources, names, _texts(plain.get("flags"), "extra_cflags"))


def line_of(source: str, module_text: str) -> int | None:
    """Line of the candidate's file on which a C++ string begins, or None when its lines do not map one to one."""
    try:
        module = ast.parse(module_text)
    except SyntaxError:
        return None
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and node.value == source and node.end_lineno is not None:
            same_lines = source.count("\n") == node.end_lineno - node.lineno
            return node.lineno if same_lines else None
    return None


def _texts(value: object, name: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise OrderRefused(f"{name} must be a string or a list of strings")
    return tuple(value)
