"""What a candidate asks to be built: load_inline inside a worker becomes a request, which the evaluator checks.

It comes from untrusted code, so all of it is checked. Also says where the candidate's C++ stands.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CANDIDATE_FILE = "candidate.py"
MAX_SOURCE = 4_000_000
Ask = Callable[[Mapping[str, object]], Mapping[str, Any]]
Words = str | Iterable[str] | None
CUDA_SUFFIXES = (".cu", ".cuh")


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
    build_request = BuildRequest(
        name=str(plain.get("name")),
        sources=_texts(plain.get("sources"), "cpp_sources"),
        functions=None if functions is None else _texts(functions, "functions"),
        flags=_texts(plain.get("flags"), "extra_cflags"),
        cuda_sources=_texts(plain.get("cuda_sources", []), "cuda_sources"),
        cuda_flags=_texts(plain.get("cuda_flags", []), "extra_cuda_cflags"),
        link_flags=_texts(plain.get("link_flags", []), "extra_ldflags"),
    )
    for name in (build_request.name, *(build_request.functions or ())):
        if not re.fullmatch(r"[A-Za-z_]\w{0,199}", name):
            raise RequestRefused(f"{name!r} is not a valid C++ name")
    if sum(map(len, (*build_request.sources, *build_request.cuda_sources))) > MAX_SOURCE:
        raise RequestRefused("the C++ source is too large")
    return build_request


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

    def load_inline(
        name: str,
        cpp_sources: Words,
        cuda_sources: Words = None,
        sycl_sources: Words = None,
        functions: Words | Mapping[str, str] = None,
        extra_cflags: Words = None,
        extra_cuda_cflags: Words = None,
        extra_sycl_cflags: Words = None,
        extra_ldflags: Words = None,
        **_ignored: object,
    ) -> object:
        order = _asked(name, _list(cpp_sources), _list(cuda_sources), extra_cflags, extra_cuda_cflags, extra_ldflags)
        return _load(ask, order | {"functions": None if functions is None else _list(functions)})

    def load(
        name: str,
        sources: Words,
        extra_cflags: Words = None,
        extra_cuda_cflags: Words = None,
        extra_ldflags: Words = None,
        **_ignored: object,
    ) -> object:
        paths = _list(sources)
        texts = [Path(path).read_text(encoding="utf-8-sig") for path in paths if not path.endswith(CUDA_SUFFIXES)]
        cuda = [Path(path).read_text(encoding="utf-8-sig") for path in paths if path.endswith(CUDA_SUFFIXES)]
        return _load(ask, _asked(name, texts, cuda, extra_cflags, extra_cuda_cflags, extra_ldflags))

    setattr(cpp_extension, "load_inline", load_inline)  # noqa: B010 - narrower signatures on purpose
    setattr(cpp_extension, "load", load)  # noqa: B010


def _asked(
    name: str, sources: list[str], cuda: list[str], flags: Words, cuda_flags: Words, link_flags: Words
) -> dict[str, object]:
    return {
        "name": name,
        "sources": sources,
        "cuda_sources": cuda,
        "functions": None,
        "flags": _list(flags),
        "cuda_flags": _list(cuda_flags),
        "link_flags": _list(link_flags),
    }


def _load(ask: Ask, order: dict[str, object]) -> object:
    answer = ask({"build": order})
    if "library" not in answer:
        raise BuildError(f"Error building extension '{order['name']}':\n{answer.get('excerpt', '')}")
    if answer["binding"] == "stock":
        return _import_module(answer["namespace"], answer["library"])
    return _operators(answer["namespace"], answer["library"], order["functions"])


def _operators(namespace: str, library: str, functions: Any) -> types.SimpleNamespace:
    import torch

    try:
        torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    except OSError as error:  # PyTorch's own words hide the reason
        raise ImportError(str(error.__cause__ or error)) from None
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
    return [value] if isinstance(value, str) else [str(item) for item in value]
