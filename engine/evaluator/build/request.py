"""What a candidate asks to be built: load_inline inside a worker becomes a request, which the evaluator checks.

It comes from untrusted code, so all of it is checked. Also says where the candidate's C++ stands.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import json
import os
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CANDIDATE_FILE = "candidate.py"
MAX_SOURCE = 4_000_000
Ask = Callable[[Mapping[str, object]], Mapping[str, Any]]
Words = str | os.PathLike[str] | Iterable[str] | None
# Their headers are found without a path.
HEADERS = re.compile(r"cutlass|cute|cuda|nvidia|torch|python", re.IGNORECASE)
MAX_TOLD = 200
CUDA_SUFFIXES = (".cu", ".cuh")


class RequestRefused(ValueError):
    """The request cannot be built here; the message is written for the model."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One call of load_inline.

    Attributes:
        functions: None where the source registers what it has itself, in a binding module or with PyTorch's dispatcher.
        is_wrapped: what functions throw is translated by PyTorch.
        has_headers: PyTorch's headers stand before the sources.
        remarks: what is not done as it was asked for, a sentence each.
    """

    name: str
    sources: tuple[str, ...]
    functions: tuple[str, ...] | None
    flags: tuple[str, ...]
    cuda_sources: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    is_wrapped: bool = True
    has_headers: bool = True
    remarks: tuple[str, ...] = ()


def read(plain: Mapping[str, object]) -> BuildRequest:
    """Check a request.

    Raises:
        RequestRefused: it is malformed or too large, or asks for what cannot be built here.
    """
    if plain.get("is_program"):
        raise RequestRefused("is_standalone=True asks for a program; a kernel is a library that forward calls")
    if plain.get("has_sycl"):
        raise RequestRefused("SYCL is not built here: write the kernel in C++ (cpp_sources) or CUDA (cuda_sources)")
    functions = plain.get("functions")
    build_request = BuildRequest(
        name=str(plain.get("name")),
        sources=_texts(plain.get("sources"), "cpp_sources"),
        functions=None if functions is None else _texts(functions, "functions"),
        flags=_texts(plain.get("flags"), "extra_cflags"),
        cuda_sources=_texts(plain.get("cuda_sources", []), "cuda_sources"),
        cuda_flags=_texts(plain.get("cuda_flags", []), "extra_cuda_cflags"),
        link_flags=_texts(plain.get("link_flags", []), "extra_ldflags"),
        is_wrapped=plain.get("is_wrapped") is not False,
        has_headers=plain.get("has_headers") is not False,
        remarks=tuple(_left_out(plain)),
    )
    for name in (build_request.name, *(build_request.functions or ())):
        if not re.fullmatch(r"[A-Za-z_]\w{0,199}", name):
            raise RequestRefused(f"{name!r} is not a valid C++ name")
    if sum(map(len, (*build_request.sources, *build_request.cuda_sources))) > MAX_SOURCE:
        raise RequestRefused("the C++ source is too large")
    return build_request


def _left_out(plain: Mapping[str, object]) -> Iterator[str]:
    paths = _texts(plain.get("include_paths", []), "extra_include_paths")
    if others := " ".join(path for path in paths if not HEADERS.search(path)):
        yield (
            f"extra_include_paths: {others[:MAX_TOLD]} is left out. PyTorch's, CuTe's, CUDA's and Python's headers are "
            "found without a path; write into the source what it needs of others"
        )
    if plain.get("has_folder"):
        yield "build_directory is left out: built libraries are kept in Tilewright's cache"


def not_linked(words: Iterable[str], of: str) -> tuple[str, ...]:
    """The sentence on linker flags that a build leaves out."""
    listed = " ".join(words)[:MAX_TOLD]
    return (f"extra_ldflags: {listed} is left out. A kernel is linked with {of} only",) if listed else ()


def without_cuda(build_request: BuildRequest) -> BuildRequest:
    """The request itself, for a toolchain that has no device.

    Raises:
        RequestRefused: it has device code.
    """
    if any(source.strip() for source in build_request.cuda_sources):
        raise RequestRefused(
            "this toolchain builds for the host CPU: pass the code in cpp_sources, without cuda_sources"
        )
    return build_request


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


class BuildError(RuntimeError):
    """What a candidate sees when its extension does not build."""


def intercept(ask: Ask) -> None:
    """Replace load_inline and load before a candidate is imported."""
    from torch.utils import cpp_extension

    loaded: dict[str, object] = {}

    def replaced(name: str) -> Callable[..., object]:
        signature = inspect.signature(getattr(cpp_extension, name))

        def build(*given: object, **named: object) -> object:
            bound = signature.bind(*given, **named)
            bound.apply_defaults()
            order = _order(bound.arguments)
            # As in PyTorch the same call builds and registers nothing anew.
            key = json.dumps(order)
            if key not in loaded:
                loaded[key] = _load(ask, order, is_module=bool(bound.arguments["is_python_module"]))
            return loaded[key]

        build.__name__, build.__signature__ = name, signature  # type: ignore[attr-defined]
        return build

    for name in ("load_inline", "load"):
        setattr(cpp_extension, name, replaced(name))


def _order(given: Mapping[str, Any]) -> dict[str, object]:
    """A call as a request. What is not in it changes nothing here: `verbose` (the compiler's words are kept anyway),
    `with_cuda` (its headers and libraries are there), `use_pch` (headers are precompiled), `keep_intermediates`."""
    sources, cuda, sycl = (_list(given.get(f"{kind}_sources")) for kind in ("cpp", "cuda", "sycl"))
    if "sources" in given:
        for path in _list(given["sources"]):
            kind = cuda if path.endswith(CUDA_SUFFIXES) else sycl if path.endswith(".sycl") else sources
            kind.append(Path(path).read_text(encoding="utf-8-sig"))
    functions = given.get("functions") if given["is_python_module"] else None
    return {
        "name": given["name"],
        "sources": sources,
        "cuda_sources": cuda,
        "functions": None if functions is None else _list(functions),
        "flags": _list(given["extra_cflags"]),
        "cuda_flags": _list(given["extra_cuda_cflags"]),
        "link_flags": _list(given["extra_ldflags"]),
        "include_paths": _list(given["extra_include_paths"]),
        "has_sycl": bool(sycl or given.get("with_sycl")),
        "has_folder": bool(given["build_directory"]),
        "is_program": bool(given.get("is_standalone")),
        "is_wrapped": bool(given.get("with_pytorch_error_handling", True)),
        "has_headers": "sources" not in given and not given.get("no_implicit_headers"),
    }


def _load(ask: Ask, order: dict[str, object], *, is_module: bool) -> object:
    answer = ask({"build": order})
    if "library" not in answer:
        raise BuildError(f"Error building extension '{order['name']}':\n{answer.get('excerpt', '')}")
    library = answer["library"]
    if answer["binding"] != "stock":
        return _operators(answer["namespace"], library, order["functions"])
    if is_module:
        return _import_module(answer["namespace"], library)
    _register(library)
    return library


def _register(library: str) -> None:
    import torch

    try:
        torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    except OSError as error:  # PyTorch's own words hide the reason
        raise ImportError(str(error.__cause__ or error)) from None


def _operators(namespace: str, library: str, functions: Any) -> types.SimpleNamespace:
    import torch

    _register(library)
    packets = getattr(torch.ops, namespace)
    return types.SimpleNamespace(__file__=library, **{name: getattr(packets, name).default for name in functions})


def _import_module(name: str, library: str) -> object:
    loader = importlib.machinery.ExtensionFileLoader(name, library)
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _list(value: Words | Mapping[str, str]) -> list[str]:
    if value is None:
        return []
    return [str(value)] if isinstance(value, str | os.PathLike) else [str(item) for item in value]
