"""What a candidate asks to be built, and where its C++ stands. It comes from untrusted code, so all is checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

CANDIDATE_FILE = "candidate.py"
MAX_SOURCE = 4_000_000


class RequestRefused(ValueError):
    """The request cannot be built here; the message is written for the model."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One call of load_inline. `functions` None means the source brings its own binding module."""

    name: str
    sources: tuple[str, ...]
    functions: tuple[str, ...] | None
    flags: tuple[str, ...]
    cuda_sources: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()


def read(plain: Mapping[str, object]) -> BuildRequest:
    """Check a request.

    Raises:
        RequestRefused: it is malformed or too large.
    """
    functions = plain.get("functions")
    wanted = BuildRequest(
        name=str(plain.get("name")),
        sources=_texts(plain.get("sources"), "cpp_sources"),
        functions=None if functions is None else _texts(functions, "functions"),
        flags=_texts(plain.get("flags"), "extra_cflags"),
        cuda_sources=_texts(plain.get("cuda_sources", []), "cuda_sources"),
        cuda_flags=_texts(plain.get("cuda_flags", []), "extra_cuda_cflags"),
        link_flags=_texts(plain.get("link_flags", []), "extra_ldflags"),
    )
    for name in (wanted.name, *(wanted.functions or ())):
        if not re.fullmatch(r"[A-Za-z_]\w{0,199}", name):
            raise RequestRefused(f"{name!r} is not a valid C++ name")
    if sum(map(len, (*wanted.sources, *wanted.cuda_sources))) > MAX_SOURCE:
        raise RequestRefused("the C++ source is too large")
    return wanted


def without_cuda(wanted: BuildRequest) -> BuildRequest:
    """The request itself, for a toolchain that has no device.

    Raises:
        RequestRefused: it has device code.
    """
    if any(source.strip() for source in wanted.cuda_sources):
        raise RequestRefused(
            "this toolchain builds for the host CPU: pass the code in cpp_sources, without cuda_sources"
        )
    return wanted


def placed(source: str, module_text: str, name: str) -> str:
    """A source under a #line that says where it stands: in the candidate's file, or in the argument `name`."""
    line = line_of(source, module_text)
    where = f'{line} "{CANDIDATE_FILE}"' if line else f'1 "{name}"'
    return f"#line {where}\n{source}"


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
        raise RequestRefused(f"{name} must be a string or a list of strings")
    return tuple(value)
