"""Turns an order into files for ninja: generated C++, include paths, a compile and a link rule. Runs nothing."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.toolchains.host import flags, order
from engine.toolchains.host.installation import Installation
from engine.toolchains.host.order import Order

SHIM = Path(__file__).resolve().parent / "shim"
CANDIDATE_FILE = "candidate.py"
LIBRARY = "library.so"
REMARKS = "remarks.txt"


class Binding(StrEnum):
    """How Python reaches the functions: torch.ops over the stable ABI, or a pybind11 module (the stock way)."""

    STABLE = "stable"
    STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One build, complete: its key names the library in the cache."""

    key: str
    binding: Binding
    namespace: str
    text: str
    ninja: str


def write(wanted: Order, module_text: str, here: Installation, binding: Binding, header: Path | None) -> Recipe:
    """The recipe of one order. `header` is the folder of a matching precompiled header, if there is one."""
    extra = flags.allowed(wanted.flags)
    code = _candidate_code(wanted, module_text)
    known = [binding, code, wanted.name, wanted.functions, flags.compile_flags(extra), here.fingerprint, shim_version()]
    key = hashlib.sha256(json.dumps(known).encode()).hexdigest()
    namespace = f"tw_{key[:16]}" if binding is Binding.STABLE else wanted.name
    text = code + _bindings(wanted, namespace, binding)
    compile_words = [*flags.compile_flags(extra), *flags.QUIET, *_includes(here, binding, header)]
    if binding is Binding.STOCK:
        compile_words += [f"-DTORCH_EXTENSION_NAME={namespace}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    compile_words.append(f"-fopt-info-vec-optimized-missed={REMARKS}")
    ninja = _ninja(here.compiler, compile_words, _libraries(here, binding))
    return Recipe(key, binding, namespace, text, ninja)


def shim_version() -> str:
    """Hash of the headers we put before the candidate."""
    digest = hashlib.sha256()
    for path in sorted(SHIM.rglob("*.h*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def header_flags(here: Installation, extra: Sequence[str]) -> list[str]:
    """Flags to precompile the prefix with: the same as a build's, or g++ would ignore the result silently."""
    return [*flags.compile_flags(extra), *flags.QUIET, *_paths(here, Binding.STABLE)]


def _candidate_code(wanted: Order, module_text: str) -> str:
    parts = ["#include <torch/extension.h>"]
    for number, source in enumerate(wanted.sources):
        line = order.line_of(source, module_text)
        where = f'{line} "{CANDIDATE_FILE}"' if line else f'1 "cpp_sources[{number}]"'
        parts.append(f"#line {where}\n{source}")
    return "\n".join(parts)


def _bindings(wanted: Order, namespace: str, binding: Binding) -> str:
    lines = ["", '#line 1 "bindings"']
    names = wanted.functions or ()
    if binding is Binding.STOCK:
        if wanted.functions is not None:
            lines.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
            lines += [f'  m.def("{name}", torch::wrap_pybind_function({name}), "{name}");' for name in names]
            lines.append("}")
        return "\n".join([*lines, ""])
    lines.append(f"STABLE_TORCH_LIBRARY_FRAGMENT({namespace}, m) {{")
    lines += [f'  m.def(tilewright::Adapter<&{name}>::schema("{name}").c_str());' for name in names]
    lines.append(f"}}\nSTABLE_TORCH_LIBRARY_IMPL({namespace}, CompositeExplicitAutograd, m) {{")
    lines += [f'  m.impl("{name}", TORCH_BOX(&tilewright::Adapter<&{name}>::call));' for name in names]
    return "\n".join([*lines, "}", ""])


def _includes(here: Installation, binding: Binding, header: Path | None) -> list[str]:
    if binding is Binding.STOCK:
        return ["-include", str(SHIM / "vector_length.hpp"), *_paths(here, binding)]
    prefix = (header or SHIM) / "prefix.hpp"
    return ["-include", str(prefix), *_paths(here, binding)]


def _paths(here: Installation, binding: Binding) -> list[str]:
    torch = f"{here.torch}/include"
    own = [f"-I{SHIM}"] if binding is Binding.STABLE else []
    system = [torch, here.cutlass_include, here.cuda_include, f"{here.cuda_include}/cccl"]
    if binding is Binding.STOCK:
        system[1:1] = [f"{torch}/torch/csrc/api/include", here.python_include]
    return [*own, *(word for folder in system for word in ("-isystem", folder))]


def _libraries(here: Installation, binding: Binding) -> list[str]:
    names = ["torch_cpu"] if binding is Binding.STABLE else ["c10", "torch_cpu", "torch", "torch_python"]
    return ["-shared", "-fopenmp", f"-L{here.torch}/lib", *(f"-l{name}" for name in names)]


def _ninja(compiler: str, compile_words: Sequence[str], link_words: Sequence[str]) -> str:
    """Two steps on purpose: -ffast-math on a link line would turn off subnormal numbers for the whole process."""
    cc = _escape([compiler, *compile_words])
    ld = _escape([compiler])
    libs = _escape(link_words)
    return (
        f"rule compile\n  command = {cc} -c $in -o $out\n"
        f"rule link\n  command = {ld} $in -o $out {libs}\n"
        f"build main.o: compile main.cpp\nbuild {LIBRARY}: link main.o\n"
    )


def _escape(words: Sequence[str]) -> str:
    return shlex.join(words).replace("$", "$$").replace("\n", " ")
