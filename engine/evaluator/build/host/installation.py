"""Finds compiler, ninja and headers without importing torch, and says what to install when one is missing."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.errors import ToolchainError

HEADER_PACKAGES = ("nvidia-cutlass", "nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-cuda-crt")
INSTALL_HEADERS = (
    "pip install nvidia-cutlass==4.2.0.0 "
    "'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*' 'nvidia-cuda-crt==13.0.*'"
)
INSTALL_COMPILER = "install a C++20 compiler: apt install g++ (version 11 or later), or set CXX"
INSTALL_NINJA = "pip install ninja"
INSTALL_TORCH = "pip install torch==2.13.0"


@dataclass(frozen=True, slots=True)
class Installation:
    """Everything a build needs from this machine. Paths are absolute."""

    compiler: str
    compiler_version: str
    ninja: str
    torch: str
    cutlass_include: str
    cuda_include: str
    python_include: str
    processor: str
    versions: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Changes whenever an equal source could become a different library."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def find() -> Installation:
    """Look at this machine.

    Raises:
        ToolchainError: something is missing; the message says what to install.
    """
    compiler = find_compiler()
    packages = (*HEADER_PACKAGES, "torch")
    return Installation(
        compiler=compiler,
        compiler_version=_first_line([compiler, "--version"]),
        ninja=find_ninja(),
        torch=str(find_torch()),
        cutlass_include=str(find_cutlass()),
        cuda_include=str(find_cuda()),
        python_include=sysconfig.get_paths()["include"],
        processor=processor(),
        versions={name: version for name in packages if (version := _version(name))},
    )


def find_compiler() -> str:
    """Absolute path of `CXX` or g++."""
    if compiler := shutil.which(os.environ.get("CXX", "g++")):
        return str(Path(compiler).absolute())
    raise ToolchainError(f"no C++ compiler found: {INSTALL_COMPILER}")


def find_ninja() -> str:
    """The ninja beside this Python, or the one on PATH."""
    beside = Path(sys.executable).parent / "ninja"
    if ninja := (str(beside) if beside.exists() else shutil.which("ninja")):
        return ninja
    raise ToolchainError(f"ninja is not installed: {INSTALL_NINJA}")


def find_torch() -> Path:
    """Folder of the torch package."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError(f"PyTorch is not installed: {INSTALL_TORCH}")
    return Path(spec.submodule_search_locations[0])


def find_cutlass() -> Path:
    """`TILEWRIGHT_CUTLASS_INCLUDE`, or the headers inside the nvidia-cutlass package."""
    if chosen := os.environ.get("TILEWRIGHT_CUTLASS_INCLUDE"):
        return _with_header(Path(chosen), "cute/tensor.hpp", "TILEWRIGHT_CUTLASS_INCLUDE is set but wrong")
    spec = importlib.util.find_spec("cutlass_library")
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError(f"the CuTe headers are not installed: {INSTALL_HEADERS}")
    folder = Path(spec.submodule_search_locations[0]) / "source" / "include"
    return _with_header(folder, "cute/tensor.hpp", INSTALL_HEADERS)


HEADERS = ("cuda_runtime_api.h", "crt/host_defines.h", "cccl/cuda/std/utility")
"""One of each package that CuTe needs of CUDA."""


def find_cuda() -> Path:
    """`TILEWRIGHT_CUDA_INCLUDE`, the headers of the nvidia-cuda-* 13 packages, or those of a CUDA toolkit that is
    there, since the packages that PyTorch brings for a GPU lack some. Headers only: no CUDA is run."""
    if chosen := os.environ.get("TILEWRIGHT_CUDA_INCLUDE"):
        return _with_header(Path(chosen), "cuda_runtime_api.h", "TILEWRIGHT_CUDA_INCLUDE is set but wrong")
    spec = importlib.util.find_spec("nvidia")
    homes = [Path(folder) / "cu13" for folder in (spec.submodule_search_locations or ())] if spec else []
    homes += [Path(home) for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    found = [home / "include" for home in (*homes, Path("/usr/local/cuda")) if (home / "include").is_dir()]
    lacking = {include: next((name for name in HEADERS if not (include / name).exists()), "") for include in found}
    whole = next((include for include, name in lacking.items() if not name), None)
    if whole is None:
        what = "; ".join(f"{include} has no {name}" for include, name in lacking.items())
        raise ToolchainError(f"{what or 'the CUDA headers that CuTe includes are not installed'}: {INSTALL_HEADERS}")
    return whole


def processor() -> str:
    """Model name and instruction sets: `-march=native` builds differ with them."""
    name, flags = "unknown processor", ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            name = value.strip()
        if key.strip() == "flags":
            flags = value.strip()
            break
    return f"{name} [{hashlib.sha256(flags.encode()).hexdigest()[:8]}]"


def _with_header(folder: Path, header: str, remedy: str) -> Path:
    if not (folder / header).exists():
        raise ToolchainError(f"{folder} has no {header}: {remedy}")
    return folder.absolute()


def _first_line(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.split("\n")[0]
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"{command[0]} does not run: {error}. To fix it: {INSTALL_COMPILER}") from error


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def trees_of(program: str) -> tuple[Path, ...]:
    """A compiler and what it may need from the tree it was installed in, where that is not the system's own.

    Not the whole tree: with a compiler in a home folder that would be everything.
    """
    path = Path(program)
    # A link's target looks for its parts beside itself.
    prefixes = dict.fromkeys((path.parent.parent, path.resolve().parent.parent))
    folders = [prefix / name for prefix in prefixes for name in ("bin", "lib", "lib64", "libexec", "include")]
    return (path, *(folder for folder in folders if folder.is_dir()))


def compilers_on_path() -> tuple[Path, ...]:
    """Trees of the C and C++ compilers that torch.compile and Triton find on this machine; may be none."""
    words = ("gcc", os.environ.get("CXX", "g++"))
    found = [str(Path(program).absolute()) for word in words if (program := shutil.which(word))]
    return tuple(tree for program in found for tree in trees_of(program))
