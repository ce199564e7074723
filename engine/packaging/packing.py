"""Runs to a package: every file of it, as texts by path. Writes nothing, builds nothing."""

from __future__ import annotations

import io
import json
import keyword
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import EngineError
from engine.packaging import card, folders, kernels
from engine.packaging.folders import MadePackage
from engine.packaging.kernels import PackagedKernel
from engine.packaging.template.package._entries import Entry, Region
from storage.run.folder import RunFolder

TEMPLATE = Path(__file__).resolve().parent / "template"
COPIED = {"_package.py": "__init__.py"} | {
    name: name for name in ("_entries.py", "_build.py", "_dispatch.py", "_operators.py", "_modules.py")
}
SIZES = ("exact", "batch", "any")
_ARCHITECTURE = re.compile(r"(?:sm_)?(\d{2,3}[af]?)")


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a package is chosen by whoever makes it."""

    name: str = ""
    """Of the Python package; made of the task's name where it is empty."""
    candidate_id: str | None = None
    sizes: str = SIZES[0]
    """Which sizes reach the kernel: those that it was judged at, any first dimension, or any."""
    architectures: tuple[str, ...] = ()
    """`sm_90a` and the like; empty for the GPU that the kernel was judged on."""
    layout: str = folders.WHEEL
    licence: str = ""


def packaged(runs: Sequence[RunFolder], asked: Asked) -> dict[str, str]:
    """Every file of the package by its path below the folder.

    Raises:
        EngineError: a run has nothing to package, or runs of several tasks or devices are to be one operator.
    """
    if asked.candidate_id and len(runs) > 1:
        raise EngineError("--candidate names a kernel of one run: package that run alone, or leave it out")
    taken = [kernels.of_run(run, asked.candidate_id, number, asked.sizes) for number, run in enumerate(runs, 1)]
    _see_that_they_belong_together(taken)
    name = asked.name or f"tilewright_{_module_name(taken[0].record.settings.task_name)}"
    see_name(name)
    made = folders.MadePackage(name, asked.licence, tuple(taken), architectures_of(asked, taken))
    files = package_files(made, COPIED)
    return folders.around(files, made, asked.layout) | {"CARD.md": card.written(made, asked.layout)}


def package_files(
    made: MadePackage, copied: Mapping[str, str], regions: Sequence[Region] | None = None
) -> dict[str, str]:
    """The Python package itself: what is copied into it (`copied`, new names by old), its table, kernels, references
    and C++."""
    name = made.name
    files = {f"{name}/{theirs}": _template("package", ours) for ours, theirs in copied.items()}
    files[f"{name}/_table.py"] = _table(name, made.kernels, made.architectures, regions)
    builds = dict[str, dict[str, Any]]()
    for kernel in made.kernels:
        files[f"{name}/{kernel.name}.py"] = kernel.text
        for module, text in kernel.references.items():
            files[f"{name}/{module}.py"] = _reference(text, kernel)
        builds |= kernels.compiled(kernel, name, made.architectures)
        files |= {f"{name}/csrc/{path}": text for path, text in _sources(kernel, name).items()}
    if builds:
        files[f"{name}/csrc/builds.json"] = json.dumps(builds, indent=2) + "\n"
        files[f"{name}/csrc/tilewright_operators.h"] = _template("package/csrc", "tilewright_operators.h")
    return files


def see_name(name: str) -> None:
    """
    Raises:
        EngineError: no package can be called so.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise EngineError(f"{name!r} is no name for a Python package: lower-case letters, digits and _ only")


def zipped(files: Mapping[str, str], name: str) -> bytes:
    """The files as one archive, in a folder of the package's name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in sorted(files.items()):
            archive.writestr(f"{name}/{path}", text)
    return buffer.getvalue()


def _see_that_they_belong_together(taken: Sequence[PackagedKernel]) -> None:
    tasks = list(dict.fromkeys(_task(kernel) for kernel in taken))
    if len(tasks) > 1:
        raise EngineError(f"runs of several tasks ({', '.join(tasks)}) are several operators: make a package of each")
    devices = {entry.device for kernel in taken for entry in kernel.entries}
    if len(devices) > 1:
        raise EngineError("runs for the processor and for a GPU are two packages: make one of each")
    first = taken[0].entries[0]
    for kernel in taken:
        for entry in kernel.entries:
            if [wanted.name for wanted in entry.inputs] != [wanted.name for wanted in first.inputs]:
                raise EngineError(f"run {kernel.run_id} takes other arguments than run {taken[0].run_id}")


def _task(kernel: PackagedKernel) -> str:
    settings = kernel.record.settings
    variant = settings.policy.variant
    return settings.task_name.removesuffix(variant) if variant else settings.task_name


def _module_name(task: str) -> str:
    return re.sub(r"\W+", "_", task).strip("_").lower()


def architectures_of(asked: Asked, taken: Sequence[PackagedKernel]) -> tuple[str, ...]:
    """What the C++ of these kernels is built for, as nvcc has it: `90a`.

    Raises:
        EngineError: the architectures that are asked for are none.
    """
    return tuple(_architectures(asked.architectures, taken))


def _architectures(asked: Sequence[str], taken: Sequence[PackagedKernel]) -> list[str]:
    """Numbers as nvcc has them: `90a`."""
    if not any(kernel.is_cuda for kernel in taken):
        if asked:
            raise EngineError("--arch is for kernels of a GPU: this one runs on the processor, leave it out")
        return []
    found = []
    for name in asked:
        match = _ARCHITECTURE.fullmatch(name)
        if not match:
            raise EngineError(f"--arch {name}: write GPUs as nvcc does, such as sm_80,sm_90a")
        found.append(match[1])
    judged = [kernels.architecture_of(kernel.record) for kernel in taken]
    return list(dict.fromkeys(found or [arch for arch in judged if arch]))


def _table(
    name: str, taken: Sequence[PackagedKernel], built_for: Sequence[str], regions: Sequence[Region] | None
) -> str:  # fmt: skip
    entries = [_for_all(entry, built_for) for kernel in taken for entry in kernel.entries]
    single = {module: child for kernel in taken for module, child in kernel.only_children.items()}
    listed = "".join(f"    {entry!r},\n" for entry in entries)
    names = "Entry, Input" if regions is None else "Entry, Input, Region"
    table = (
        f'"""Which kernels this package has. Written when the package was made."""\n\n'
        f"from ._entries import {names}\n\nPACKAGE = {name!r}\n"
        f"SINGLE_CHILD: dict[str, str] = {single!r}\nENTRIES = (\n{listed})\n"
    )
    if regions is not None:
        table += "REGIONS = (\n" + "".join(f"    {region!r},\n" for region in regions) + ")\n"
    return table


def _for_all(entry: Entry, built_for: Sequence[str]) -> Entry:
    digits = [re.sub(r"\D", "", arch) for arch in built_for]
    capabilities = {*entry.capabilities, *((int(number[:-1]), int(number[-1])) for number in digits)}
    return replace(entry, capabilities=tuple(sorted(capabilities))) if entry.device == "cuda" else entry


def _reference(text: str, kernel: PackagedKernel) -> str:
    """The reference's text, and how the package makes its module."""
    policy = kernel.record.settings.policy
    dtype = next((wanted.dtype for wanted in kernel.entries[0].inputs if wanted.is_tensor), "float32")
    lines = [text.rstrip(), "", "", "# What this package calls.", "", "", "def made(*init_inputs):"]
    lines.append("    model = Model(*(init_inputs or get_init_inputs()))")
    if policy.dtype:
        lines.insert(-2, f"import torch as _torch\n\nDTYPE = _torch.{dtype}")
        lines.append("    model = model.to(DTYPE)")
    if policy.mode:
        lines.append(f"    model = model.train({policy.mode == 'train'})")
    lines += ["    return model", "", "", "def example_inputs():"]
    first = kernel.entries[0]
    if first.by_name:
        names = ", ".join(f"named[{wanted.name!r}]" for wanted in first.inputs[-first.by_name :])
        lines += ["    given, named = get_inputs()", f"    given = [*given, {names}]"]
    else:
        lines.append("    given = list(get_inputs())")
    if policy.dtype:
        lines.append(
            "    return [x.to(DTYPE) if isinstance(x, _torch.Tensor) and x.is_floating_point() else x for x in given]"
        )
    else:
        lines.append("    return given")
    return "\n".join(lines) + "\n"


def _strides(kernel: PackagedKernel, function: str) -> str:
    """A further argument in C++: how the operator's results lie in memory where they are not contiguous."""
    entry = kernel.entries[0]
    strides = entry.output_strides if entry.operator == f"{function}_{kernel.number}" else ()
    listed = ", ".join("{" + ", ".join(map(str, stride)) + "}" for stride in strides)
    return f", {{{listed}}}" if strides else ""


def _sources(kernel: PackagedKernel, package: str) -> dict[str, str]:
    """C++ and CUDA of each library, as load_inline would write them, with operators in the place of a Python module."""
    written = {}
    for library, arguments in kernel.builds.items():
        cpp, cuda = kernels.texts(arguments, "cpp_sources"), kernels.texts(arguments, "cuda_sources")
        head = "#include <torch/extension.h>\n"
        text = "\n".join(cpp)
        if not kernels.OWN_BINDING.search(text):
            head += '#include "tilewright_operators.h"\n'
            key = "CUDA" if kernel.is_cuda else "CPU"
            defined = "".join(
                f'  tilewright::define<&{function}>(library, "{function}_{kernel.number}", c10::DispatchKey::{key}'
                f"{_strides(kernel, function)});\n"
                for function in kernels.texts(arguments, "functions")
            )
            text += f"\n\nTORCH_LIBRARY_FRAGMENT({package}, library) {{\n{defined}}}\n"
        written[f"{library}/main.cpp"] = head + text
        if any(part.strip() for part in cuda):
            top = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
            written[f"{library}/kernels.cu"] = top + "\n".join(cuda) + "\n"
    return written


def _template(folder: str, name: str) -> str:
    return (TEMPLATE / folder / name).read_text(encoding="utf-8")
