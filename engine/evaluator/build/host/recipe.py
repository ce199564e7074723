"""Turns a request into files for ninja: generated C++, include paths, a compile and a link rule. Runs nothing."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.evaluator.build import light_headers, request
from engine.evaluator.build.host import flags
from engine.evaluator.build.host.installation import Installation
from engine.evaluator.build.request import BuildRequest

LIBRARY = "library.so"
COMPILE, LINK = "compile.sh", "link.sh"
REMARKS = "remarks.txt"
# PyTorch's own switch: its header without modules, optimisers and data loaders takes g++ 13 s to read instead of 23.
WITHOUT_FRONTEND = "-DTORCH_INDUCTOR_CPP_WRAPPER"


class Binding(StrEnum):
    """How Python reaches the functions: torch.ops over the stable ABI, or a pybind11 module (the stock way)."""

    STABLE = "stable"
    STOCK = "stock"


@dataclass(frozen=True, slots=True)
class Recipe:
    """One build, complete: its key names the library in the cache, `files` are what ninja works on.

    `nvcc` is the compiler with its flags, where there is device code.
    """

    key: str
    binding: Binding
    namespace: str
    files: Mapping[str, str]
    nvcc: tuple[str, ...] = ()


def write(
    build_request: BuildRequest,
    module_text: str,
    installation: Installation,
    binding: Binding,
    header: Path | None = None,
    runtime: Path | None = None,
    *,
    is_whole: bool = True,
) -> Recipe:
    """The recipe of one request. `header` is the folder of a matching precompiled header, `runtime` our object file;
    unless `is_whole`, the stock header is PyTorch's without the C++ frontend, which hardly a kernel uses."""
    extra = flags.allowed(build_request.flags)
    code = candidate_code(build_request.sources, module_text, "cpp_sources")
    key_parts = [
        binding,
        code,
        build_request.name,
        build_request.functions,
        flags.compile_flags(extra),
        flags.QUIET,
        installation.fingerprint,
        light_headers.shim_version(),
        *([] if is_whole else [WITHOUT_FRONTEND]),
        *unusual(build_request),
    ]
    key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()
    namespace = space(binding, key, build_request)
    head = "#include <torch/extension.h>\n" if build_request.has_headers or binding is Binding.STABLE else ""
    text = head + code + bindings(build_request, namespace, binding)
    words = [
        *flags.compile_flags(extra),
        *flags.QUIET,
        *_includes(installation, binding, header),
        *binding_flags(binding, namespace),
    ]
    words += [] if is_whole else [WITHOUT_FRONTEND]
    words.append(f"-fopt-info-vec-optimized-missed={REMARKS}")
    # Two steps on purpose: -ffast-math on a link line would turn off subnormal numbers for the whole process.
    linked = [*([str(runtime)] if runtime else []), *_libraries(installation, binding, runtime)]
    steps = steps_of([installation.compiler, *words], [installation.compiler], ["main.o"], linked)
    return Recipe(key, binding, namespace, {"main.cpp": text, **steps})


def header_flags(installation: Installation, extra: Sequence[str]) -> list[str]:
    """Flags to precompile the prefix with: the same as a build's, or g++ would ignore the result silently."""
    return [
        *flags.compile_flags(extra),
        *flags.QUIET,
        *_paths(installation, Binding.STABLE),
        *binding_flags(Binding.STABLE, ""),
    ]


def space(binding: Binding, key: str, build_request: BuildRequest) -> str:
    """Namespace of the operators, or name of the Python module."""
    return f"tw_{key[:16]}" if binding is Binding.STABLE else build_request.name


def candidate_code(sources: Sequence[str], module_text: str, argument: str) -> str:
    """Sources one after the other, each under its place."""
    return "\n".join(
        request.placed(source, module_text, f"{argument}[{number}]") for number, source in enumerate(sources)
    )


def unusual(build_request: BuildRequest) -> list[str]:
    """Words for what few requests ask for."""
    return [*([] if build_request.is_wrapped else ["plain"]), *([] if build_request.has_headers else ["bare"])]


def bindings(build_request: BuildRequest, namespace: str, binding: Binding) -> str:
    """C++ that makes the functions known to Python."""
    names = build_request.functions or ()
    lines = ["", '#line 1 "bindings"']
    if binding is Binding.STOCK:
        if build_request.functions is not None:
            given = "torch::wrap_pybind_function({0})" if build_request.is_wrapped else "{0}"
            lines.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
            lines += [f'  m.def("{name}", {given.format(name)}, "{name}");' for name in names]
            lines.append("}")
        return "\n".join([*lines, ""])
    lines += ["#include <tilewright/binding.h>", "[[maybe_unused]] static const int tilewright_registered = ("]
    for name in names:
        adapter = f"tilewright::Adapter<&{name}>"
        lines.append(
            f'  tilewright::add_operator("{namespace}", {adapter}::schema("{name}"), "{name}", &{adapter}::call),'
        )
    return "\n".join([*lines, "  0);", ""])


def binding_flags(binding: Binding, namespace: str) -> list[str]:
    """What a way of binding asks of the compiler.

    Our small at::Tensor shares its name with PyTorch's own: nothing of it may be seen outside the library.
    """
    if binding is Binding.STABLE:
        return ["-fvisibility=hidden", "-fvisibility-inlines-hidden"]
    return [f"-DTORCH_EXTENSION_NAME={namespace}", "-DTORCH_API_INCLUDE_EXTENSION_H"]


def _includes(installation: Installation, binding: Binding, header: Path | None) -> list[str]:
    if binding is Binding.STOCK:
        return ["-include", str(light_headers.SHIM / "vector_length.hpp"), *_paths(installation, binding)]
    prefix = (header or light_headers.SHIM) / "prefix.hpp"
    return ["-include", str(prefix), *_paths(installation, binding)]


def _paths(installation: Installation, binding: Binding) -> list[str]:
    torch = f"{installation.torch}/include"
    shim = [f"-I{light_headers.SHIM}"] if binding is Binding.STABLE else []
    system = [torch, installation.cutlass_include, installation.cuda_include, f"{installation.cuda_include}/cccl"]
    if binding is Binding.STOCK:
        system[1:1] = [f"{torch}/torch/csrc/api/include", installation.python_include]
    return [*shim, *(word for folder in system for word in ("-isystem", folder))]


def _libraries(installation: Installation, binding: Binding, runtime: Path | None) -> list[str]:
    """`runtime` lies beside a library that stands for PyTorch's by name: see light_headers."""
    names = ["torch_cpu"] if binding is Binding.STABLE else ["c10", "torch_cpu", "torch", "torch_python"]
    folder = runtime.parent if runtime else f"{installation.torch}/lib"
    linked = ["-Wl,--push-state,--no-as-needed", *(f"-l{name}" for name in names), "-Wl,--pop-state"]
    return ["-shared", "-fopenmp", "-Wl,--gc-sections", f"-L{folder}", *linked]


def steps_of(
    compiler: Sequence[str], linker: Sequence[str], objects: Sequence[str], linked: Sequence[str], head: str = ""
) -> dict[str, str]:
    """Files of a build that compiles main.cpp and links the objects: what ninja does, and a script for each step.

    The scripts name files of elsewhere: a shell takes any path in quotes, and ninja none with a space or a line break.
    """
    return {
        COMPILE: script([*compiler, "-c", "main.cpp", "-o", "main.o"]),
        LINK: script([*linker, *objects, "-o", LIBRARY, *linked]),
        "build.ninja": f"{head}rule compile\n  command = sh ./{COMPILE}\nrule link\n  command = sh ./{LINK}\n"
        f"build main.o: compile main.cpp\nbuild {LIBRARY}: link {' '.join(objects)}\n",
    }


def script(words: Sequence[str]) -> str:
    """A command as a shell's script, which says in the log what it does."""
    return f"set -x\nexec {shlex.join(words)}\n"


def escape(words: Sequence[str]) -> str:
    """Words of a command as ninja wants them."""
    return shlex.join(words).replace("$", "$$").replace("\n", " ")
