"""Turns a request with device code into files for ninja. Runs nothing.

As in the stock way the C++ source with the bindings and the CUDA source are two translation units, built at the same
time: g++ takes the first, nvcc the second. nvcc itself runs one program after the other: preprocessor and cudafe++ for
the host, preprocessor, cicc, ptxas and fatbinary for the device, and last g++ on what both wrote. Here its device half
and its host half are steps that ninja runs at the same time, with nvcc's own commands as its dry run tells them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.evaluator.build import light_headers
from engine.evaluator.build.device import flags
from engine.evaluator.build.device.installation import DeviceInstallation
from engine.evaluator.build.host import recipe as host
from engine.evaluator.build.host.recipe import Binding, Recipe
from engine.evaluator.build.request import BuildRequest

GIB = 1 << 30
COMPILER_MEMORY = 3 * GIB
CUDA_HEADERS = "#include <cuda.h>\n#include <cuda_runtime.h>\n"
_OURS = hashlib.sha256(b"".join(Path(str(part)).read_bytes() for part in (__file__, flags.__file__))).hexdigest()
PHASES_FILE = "kernel.ninja"
MODULE_ID = "kernel.module_id"
DRY_RUN = ("--keep", "--keep-dir", ".", "--dryrun", "-c", "kernel.cu", "-o", "kernel.o")
_SETTING = re.compile(r"^#\$ ([A-Za-z_]\w*)=(.*)$")
_COMMAND = re.compile(r"^#\$ (\S.*)$")
_SHAPE = ("-E ", "cudafe++", "-E ", "cicc", "ptxas", "fatbinary", "-c -x c++")
_NEEDED = ("PATH", "CICC_PATH", "NVVMIR_LIBRARY_DIR", "LD_LIBRARY_PATH")


def write(
    build_request: BuildRequest,
    module_text: str,
    installation: DeviceInstallation,
    binding: Binding,
    runtime: Path | None = None,
) -> Recipe:
    """The recipe of one request for `installation.arch`.

    Raises:
        FlagRefused: a flag may not be used.
    """
    words = (
        flags.host_words(build_request.flags),
        flags.allowed(build_request.cuda_flags),
        flags.libraries(build_request.link_flags),
    )
    main = host.candidate_code(build_request.sources, module_text, "cpp_sources")
    cuda = host.candidate_code(build_request.cuda_sources, module_text, "cuda_sources")
    key_parts = [
        binding,
        main,
        cuda,
        build_request.name,
        build_request.functions,
        words,
        installation.fingerprint,
        light_headers.shim_version(),
        _OURS,
        *host.unusual(build_request),
    ]
    key = hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()
    namespace = host.space(binding, key, build_request)
    tail = host.bindings(build_request, namespace, binding)
    is_bare = binding is Binding.STOCK and not build_request.has_headers
    head = "" if is_bare else _preamble(build_request.sources, binding, "torch/extension.h")
    files = {"main.cpp": head + main + tail}
    nvcc: list[str] = []
    if cuda.strip():
        nvcc = _nvcc(installation, binding, namespace, words[1])
        head = "" if is_bare else _preamble(build_request.cuda_sources, binding, "torch/types.h") + CUDA_HEADERS
        files["kernel.cu"] = f"{head}{cuda}\n"
        files[PHASES_FILE] = in_one_step(host.escape(nvcc))
    files |= _steps(installation, binding, namespace, words, runtime, has_cuda=bool(nvcc))
    return Recipe(key, binding, namespace, files, tuple(nvcc))


def jobs() -> int:
    """How many compilers at once: one per core, as far as memory goes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // COMPILER_MEMORY))


def _preamble(sources: Sequence[str], binding: Binding, header: str) -> str:
    """PyTorch's header as the stock way puts it in front; ours brings little, so what the text needs is added."""
    more = light_headers.includes(sources) if binding is Binding.STABLE else []
    return "".join(f"#include <{name}>\n" for name in (header, *more))


def _nvcc(installation: DeviceInstallation, binding: Binding, namespace: str, words: Sequence[str]) -> list[str]:
    inner = ("-fPIC", *flags.HOST_QUIET, *host.binding_flags(binding, namespace))
    return [
        installation.nvcc,
        *("-ccbin", installation.compiler, *flags.BASE, *flags.QUIET, *words, *_paths(installation, binding)),
        *(f"-Xcompiler={word}" for word in inner),
        *([] if _has_standard(words) else [_standard(installation, binding)]),
        *([] if flags.has_arch(words) else [flags.gencode(installation.arch)]),
    ]


def _steps(
    installation: DeviceInstallation,
    binding: Binding,
    namespace: str,
    words: tuple[Sequence[str], Sequence[str], Sequence[str]],
    runtime: Path | None,
    has_cuda: bool,
) -> dict[str, str]:
    ours = (*flags.HOST_QUIET, *host.binding_flags(binding, namespace))
    cxx = [
        installation.compiler,
        _standard(installation, binding),
        "-O2",
        "-fPIC",
        *words[0],
        *ours,
        *_paths(installation, binding),
    ]
    objects = ["main.o", *(["kernel.o"] if has_cuda else [])]
    linked = [*([str(runtime)] if runtime else []), *_libraries(installation, binding), *words[2]]
    head = f"include {PHASES_FILE}\n" if has_cuda else ""
    return host.steps_of(cxx, [installation.compiler], objects, linked, head)


def _standard(installation: DeviceInstallation, binding: Binding) -> str:
    """C++17, for its library is half as heavy as C++20's; PyTorch's own headers need C++20 from 2.12 on."""
    release = tuple(int(part) for part in installation.torch_version.split("+")[0].split(".")[:2])
    return "-std=c++20" if binding is Binding.STOCK and release >= (2, 12) else "-std=c++17"


def _has_standard(words: Sequence[str]) -> bool:
    return any(word.lstrip("-").startswith("std=") for word in words)


def _paths(installation: DeviceInstallation, binding: Binding) -> list[str]:
    torch = f"{installation.torch}/include"
    shim = [f"-I{light_headers.SHIM}"] if binding is Binding.STABLE else []
    system = [torch, installation.cutlass_include, installation.cuda_include, f"{installation.cuda_include}/cccl"]
    if binding is Binding.STOCK:
        system[1:1] = [f"{torch}/torch/csrc/api/include", installation.python_include]
    return [*shim, *(word for folder in system for word in ("-isystem", folder))]


def _libraries(installation: DeviceInstallation, binding: Binding) -> list[str]:
    """PyTorch's CUDA half is linked where there is one; a machine that only compiles may have a PyTorch without it.

    The CUDA runtime is the shared one that PyTorch has loaded: one runtime in the process, and what a kernel's launcher
    takes from it stays visible to the screening of the built library.
    """
    names = ["torch_cpu", "torch_cuda"] if binding is Binding.STABLE else [
        "c10", "torch_cpu", "torch", "torch_python", "c10_cuda", "torch_cuda",
    ]  # fmt: skip
    there = [name for name in names if (Path(installation.torch_libraries) / f"lib{name}.so").exists()]
    runtime = Path(installation.cudart)
    folders = [installation.torch_libraries, str(runtime.parent)]
    folders += [installation.cuda_stubs, str(Path(installation.cuda_stubs).parent)] if installation.cuda_stubs else []
    return [
        "-shared", "-Wl,--gc-sections", *(f"-L{folder}" for folder in folders), "-Wl,--no-as-needed",
        *(f"-l{name}" for name in there), str(runtime), f"-Wl,-rpath,{runtime.parent}",
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Phases:
    """Shell commands of the three steps that nvcc's work falls into, run in one folder."""

    front: str
    device: str
    host: str

    def ninja(self) -> str:
        """Rules and build lines that make kernel.o of kernel.cu."""
        steps = {"front": self.front, "device": self.device, "host": self.host}
        rules = "".join(f"rule {name}\n  command = {_escape(text)}\n" for name, text in steps.items())
        return (
            f"{rules}build kernel.fatbin.c: device kernel.cu\n"
            "build kernel.cudafe1.cpp: front kernel.cu\n"
            "build kernel.o: host kernel.cudafe1.cpp | kernel.fatbin.c\n"
        )


def in_one_step(command: str) -> str:
    """The build as one step, for an nvcc that works in another way."""
    return f"rule nvcc\n  command = {command} -c $in -o $out\nbuild kernel.o: nvcc kernel.cu\n"


def lay_out(folder: Path, phases: Phases, key: str) -> None:
    """Put the steps into the build folder, with the id after which both halves name what is local to the file."""
    (folder / PHASES_FILE).write_text(phases.ninja())
    (folder / MODULE_ID).write_text(f"_{key[:8]}_9_kernel_cu_{key[8:16]}_0")


def phases_of(dry_run: str) -> Phases | None:
    """The steps of nvcc's dry run for `-c kernel.cu -o kernel.o`; None when it is not the known shape."""
    settings, commands = _read_dry_run(dry_run)
    if len(commands) != len(_SHAPE) or any(mark not in command for mark, command in zip(_SHAPE, commands, strict=True)):
        return None
    if any(name not in settings for name in _NEEDED) or "--gen_module_id_file" not in commands[1]:
        return None
    exports = " ".join(f"{name}={_quoted(settings[name])}" for name in _NEEDED)
    pre_host, front, pre_device, cicc, ptxas, fatbinary, host = commands
    front = front.replace("--gen_module_id_file", "")  # it is written before either half starts
    return Phases(
        f"export {exports}; {pre_host} && {front}",
        f"export {exports}; {pre_device} && {cicc} && {ptxas} && {fatbinary}",
        f"export {exports}; {host}",
    )


def _read_dry_run(dry_run: str) -> tuple[Mapping[str, str], list[str]]:
    settings: dict[str, str] = {}
    commands: list[str] = []
    for line in dry_run.split("\n"):
        if match := _SETTING.match(line):
            settings[match[1]] = match[2].strip()
        elif (match := _COMMAND.match(line)) and not match[1].startswith("rm "):
            commands.append(match[1].strip())
    return settings, commands


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def _escape(text: str) -> str:
    return text.replace("$", "$$")
