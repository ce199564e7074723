"""Stands in for torch.utils.cpp_extension inside a worker: asks the evaluator to build and loads what comes back."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Ask = Callable[[Mapping[str, object]], Mapping[str, Any]]
Words = str | Iterable[str] | None
CUDA_SUFFIXES = (".cu", ".cuh")


class BuildError(RuntimeError):
    """What a candidate sees when its extension does not build."""


def install(ask: Ask) -> None:
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
        order = _order(name, _list(cpp_sources), _list(cuda_sources), extra_cflags, extra_cuda_cflags, extra_ldflags)
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
        texts = [Path(path).read_text() for path in paths if not path.endswith(CUDA_SUFFIXES)]
        cuda = [Path(path).read_text() for path in paths if path.endswith(CUDA_SUFFIXES)]
        return _load(ask, _order(name, texts, cuda, extra_cflags, extra_cuda_cflags, extra_ldflags))

    setattr(cpp_extension, "load_inline", load_inline)  # noqa: B010 - narrower signatures on purpose
    setattr(cpp_extension, "load", load)  # noqa: B010


def _order(
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
