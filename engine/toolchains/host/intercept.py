"""Stands in for torch.utils.cpp_extension inside a worker: hands the build to the judge and loads what comes back."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Ask = Callable[[Mapping[str, object]], Mapping[str, Any]]


class BuildError(RuntimeError):
    """What a candidate sees when its extension does not build."""


def install(ask: Ask) -> None:
    """Replace load_inline and load before a candidate is imported."""
    from torch.utils import cpp_extension

    def load_inline(
        name: str,
        cpp_sources: str | Iterable[str],
        cuda_sources: str | Iterable[str] | None = None,
        sycl_sources: str | Iterable[str] | None = None,
        functions: str | Iterable[str] | Mapping[str, str] | None = None,
        extra_cflags: Iterable[str] | None = None,
        **_ignored: object,
    ) -> object:
        return _load(ask, name, _list(cpp_sources), _list(cuda_sources), functions, extra_cflags)

    def load(
        name: str, sources: str | Iterable[str], extra_cflags: Iterable[str] | None = None, **_ignored: object
    ) -> object:
        texts = [Path(path).read_text() for path in _list(sources)]
        return _load(ask, name, texts, [], None, extra_cflags)

    setattr(cpp_extension, "load_inline", load_inline)  # noqa: B010 - narrower signatures on purpose
    setattr(cpp_extension, "load", load)  # noqa: B010


def _load(
    ask: Ask,
    name: str,
    sources: list[str],
    cuda_sources: list[str],
    functions: str | Iterable[str] | Mapping[str, str] | None,
    flags: Iterable[str] | None,
) -> object:
    order = {
        "name": name,
        "sources": sources,
        "cuda_sources": "\n".join(cuda_sources).strip(),
        "functions": None if functions is None else _list(functions),
        "flags": _list(flags or ()),
    }
    answer = ask({"build": order})
    if "library" not in answer:
        raise BuildError(f"Error building extension '{name}':\n{answer.get('excerpt', '')}")
    if answer["binding"] == "stock":
        return _import_module(answer["namespace"], answer["library"])
    return _operators(answer["namespace"], answer["library"], order["functions"])


def _operators(namespace: str, library: str, functions: Any) -> types.SimpleNamespace:
    import torch

    torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    packets = getattr(torch.ops, namespace)
    return types.SimpleNamespace(__file__=library, **{name: getattr(packets, name).default for name in functions})


def _import_module(name: str, library: str) -> object:
    loader = importlib.machinery.ExtensionFileLoader(name, library)
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _list(value: str | Iterable[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]
