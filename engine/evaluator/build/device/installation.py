"""Finds nvcc, headers and NVIDIA's tools without importing torch and without touching a device's context."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path

from engine.errors import ToolchainError
from engine.evaluator.build.host import installation as host
from engine.evaluator.machine import devices

INSTALL_NVCC = (
    "install the CUDA toolkit (nvcc 12.8 or later) and set CUDA_HOME, or: pip install 'nvidia-cuda-nvcc==13.0.*' "
    "'nvidia-nvvm==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*'"
)
NO_DEVICE = "name an architecture (--arch sm_90a) to compile without a device"
SPECIFIC = {"9.0": "sm_90a", "10.0": "sm_100a", "10.3": "sm_103a", "12.0": "sm_120a"}  # wgmma, TMA and their kin


@dataclass(frozen=True, slots=True)
class DeviceInstallation:
    """Everything a device build needs from this machine, as text. Paths are absolute, '' stands for none."""

    nvcc: str
    nvcc_version: str
    compiler: str
    compiler_version: str
    ninja: str
    torch: str
    torch_version: str
    torch_libraries: str
    cutlass_include: str
    cuda_include: str
    cudart: str
    cuda_stubs: str
    python_include: str
    arch: str
    ncu: str = ""
    sanitizer: str = ""

    @property
    def fingerprint(self) -> str:
        """Changes whenever an equal source could become a different library."""
        plain = asdict(self) | {"ncu": "", "sanitizer": ""}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def find(arch: str | None = None) -> DeviceInstallation:
    """Look at this machine; `arch` as in `sm_90a`, or None to ask the device.

    Raises:
        ToolchainError: something is missing; the message says what to install.
    """
    nvcc, torch = find_nvcc(), host.find_torch()
    compiler = find_host_compiler()
    return DeviceInstallation(
        nvcc=str(nvcc),
        nvcc_version=_version_of(nvcc),
        compiler=compiler,
        compiler_version=_output_of([compiler, "--version"]).split("\n")[0],
        ninja=host.find_ninja(),
        torch=str(torch),
        torch_version=metadata.version("torch"),
        torch_libraries=str(torch / "lib"),
        cutlass_include=str(host.find_cutlass()),
        cuda_include=str(find_include(nvcc)),
        cudart=str(find_cudart(nvcc)),
        cuda_stubs=_stubs(nvcc),
        python_include=sysconfig.get_paths()["include"],
        arch=arch or device_arch(),
        ncu=find_tool("ncu", nvcc),
        sanitizer=find_tool("compute-sanitizer", nvcc),
    )


def find_host_compiler() -> str:
    """What nvcc itself would take: it does not look at CXX, which may name a compiler for other purposes."""
    return os.environ.get("NVCC_CCBIN") or shutil.which("g++") or host.find_compiler()


def find_nvcc() -> Path:
    """nvcc on PATH, under CUDA_HOME or /usr/local/cuda, or the one that pip installs."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in homes if home)]
    places += [f"{folder}/bin/nvcc" for folder in _pip_folders()]
    for path in places:
        if path and os.access(path, os.X_OK):
            return _itself(Path(path))
    raise ToolchainError(f"no CUDA compiler found: {INSTALL_NVCC}")


def find_include(nvcc: Path) -> Path:
    """The CUDA headers that belong to this nvcc."""
    root = nvcc.parent.parent
    for folder in (root / "include", *root.glob("targets/*/include")):
        if (folder / "cuda_runtime.h").exists():
            return folder.absolute()
    raise ToolchainError(f"{root} has no cuda_runtime.h: {INSTALL_NVCC}")


def find_cudart(nvcc: Path) -> Path:
    """The CUDA runtime to link: PyTorch's own if its version fits, so that a process has one; else the toolkit's."""
    major = _version_of(nvcc).split(".")[0]
    root = nvcc.parent.parent
    folders = [*(folder / "lib" for folder in map(Path, _pip_folders())), host.find_torch() / "lib"]
    folders += [root / "lib64", root / "lib", *root.glob("targets/*/lib")]
    for folder in folders:
        if (library := folder / f"libcudart.so.{major}").exists():
            return library.absolute()
    raise ToolchainError(f"no libcudart.so.{major} found beside {nvcc} or PyTorch: {INSTALL_NVCC}")


def device_arch() -> str:
    """What the first visible device is, as nvcc calls it.

    Raises:
        ToolchainError: there is no device.
    """
    try:
        return arch_of(devices.first().capability)
    except ToolchainError as error:
        raise ToolchainError(f"{error}; {NO_DEVICE}") from error


def arch_of(capability: str) -> str:
    """A compute capability as nvcc calls it, with the instructions that only such a device has."""
    return SPECIFIC.get(capability, "sm_" + capability.replace(".", ""))


def find_tool(name: str, nvcc: Path) -> str:
    """Path of one of NVIDIA's tools, '' when it is not installed."""
    root = nvcc.parent.parent
    nsight_folders = [
        *sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True),
        *sorted(root.glob("nsight-compute*")),
    ]
    places = [
        shutil.which(name),
        root / "bin" / name,
        root / name / name,
        *(folder / name for folder in nsight_folders),
    ]
    for path in places:
        if path and os.access(path, os.X_OK) and Path(path).is_file():
            return str(Path(path).absolute())
    return ""


def _itself(nvcc: Path) -> Path:
    """The compiler behind links and shell wrappers: its headers stand beside it."""
    nvcc = nvcc.resolve()
    with nvcc.open("rb") as file:
        start = file.read(400)
    wrapped = re.search(rb"exec\s+\"?(/[^\s\"]*nvcc)", start) if start.startswith(b"#!") else None
    return Path(os.fsdecode(wrapped[1])).resolve() if wrapped else nvcc


def _stubs(nvcc: Path) -> str:
    root = nvcc.parent.parent
    stubs = [*root.glob("lib64/stubs/libcuda.so"), *root.glob("targets/*/lib/stubs/libcuda.so")]
    return str(stubs[0].parent) if stubs else ""


def _pip_folders() -> list[str]:
    spec = util.find_spec("nvidia")
    packages = (spec.submodule_search_locations or ()) if spec else ()
    return [str(folder) for package in packages for folder in sorted(Path(package).glob("cu[0-9]*"), reverse=True)]


def _version_of(nvcc: Path) -> str:
    match = re.search(r"release [\d.]+, V([\d.]+)", _output_of([str(nvcc), "--version"]))
    if match is None:
        raise ToolchainError(f"{nvcc} does not print its version: {INSTALL_NVCC}")
    return match[1]


def _output_of(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"{command[0]} does not run: {error}") from error
