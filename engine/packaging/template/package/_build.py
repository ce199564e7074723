"""The C++ and CUDA of this package: how pip builds it, where it is found then, and how it is built at first use.

Read by `setup.py` too, so it imports nothing of this package.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SOURCES = FOLDER / "csrc"
BUILDS: dict[str, Any] = json.loads((SOURCES / "builds.json").read_text()) if SOURCES.is_dir() else {}
_loaded: dict[str, Any] = {}


def library(name: str) -> Any:
    """The functions of one library, loaded: its operators below `torch.ops`, or the Python module that its source
    defines itself."""
    if name not in _loaded:
        build = BUILDS[name]
        path = found(name) or built(name)
        if build["has_own_binding"]:
            spec = importlib.util.spec_from_file_location(f"_{name}", path)
            if spec is None or spec.loader is None:
                raise ImportError(f"{path} is no module of Python")
            _loaded[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(_loaded[name])
        else:
            import torch

            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
            _loaded[name] = Functions(build["package"], build["functions"], build["suffix"])
    return _loaded[name]


class Functions:
    """The functions that a kernel's file calls, each an operator of its own."""

    def __init__(self, package: str, functions: list[str], suffix: str) -> None:
        import torch

        for function in functions:
            setattr(self, function, getattr(getattr(torch.ops, package), f"{function}{suffix}").default)


def found(name: str) -> Path | None:
    """The library that pip built, where it did."""
    return next(iter(sorted(FOLDER.glob(f"_{name}.*so"))), None)


def built(name: str) -> Path:
    """The library built here, once, and kept in PyTorch's folder for extensions.

    Raises:
        ImportError: what it takes to build it is not here.
    """
    from torch.utils import cpp_extension

    version = re.sub(r"\W", "_", __import__("torch").__version__)
    folder = Path(cpp_extension._get_build_directory(f"{FOLDER.name}_{BUILDS[name]['hash'][:12]}_{version}", False))
    path = folder / f"_{name}.so"
    with (folder / "building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with its process, unlike a lock file that a killed build leaves
        if not path.exists():
            _see_that_it_can_be_built(name)
            (folder / "lock").unlink(missing_ok=True)
            seconds = BUILDS[name]["seconds"]
            print(f"{FOLDER.name}: building {name}, about {seconds} s, once ({folder})", file=sys.stderr, flush=True)
            started = time.monotonic()
            options = extension(name)
            cpp_extension.load(
                f"_{name}",
                [str(source) for source in options["sources"]],
                extra_cflags=options["extra_compile_args"]["cxx"],
                extra_cuda_cflags=options["extra_compile_args"].get("nvcc", []),
                extra_ldflags=options["extra_link_args"],
                extra_include_paths=options["include_dirs"],
                build_directory=str(folder),
                is_python_module=False,
                with_cuda=BUILDS[name]["is_cuda"],
            )
            print(f"{FOLDER.name}: built {name} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return path


def extension(name: str) -> dict[str, Any]:
    """What setuptools or PyTorch is told to build it with."""
    build = BUILDS[name]
    folder = SOURCES / name
    own = list(build["cflags"])
    if march := os.environ.get("TILEWRIGHT_MARCH"):  # a wheel for other processors than this one
        own = [f"-march={march}" if flag == "-march=native" else flag for flag in own]
    compiled = {"cxx": [*own, f"-I{SOURCES}"]}
    if build["is_cuda"]:
        compiled["nvcc"] = [*build["cuda_flags"], *_architectures(build), f"-I{SOURCES}"]
    return {
        "sources": [folder / source for source in build["sources"]],
        "include_dirs": cute_headers(is_host=not build["is_cuda"]) if build["uses_cute"] else [],
        "extra_compile_args": compiled,
        "extra_link_args": list(build["link_flags"]),
    }


def _architectures(build: dict[str, Any]) -> list[str]:
    """The flags for the GPUs that the package was made for, unless the kernel or TORCH_CUDA_ARCH_LIST says which."""
    if build["names_architecture"] or os.environ.get("TORCH_CUDA_ARCH_LIST"):
        return []
    return [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in build["architectures"]]


def _see_that_it_can_be_built(name: str) -> None:
    """
    Raises:
        ImportError: what is missing, and how to get it.
    """
    from torch.utils import cpp_extension

    missing = []
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", ""), str(Path(sys.executable).parent)])
    if not shutil.which(os.environ.get("CXX", "c++").split()[0]):
        missing.append("a C++ compiler (apt install g++)")
    if not shutil.which("ninja"):
        missing.append("ninja (pip install ninja)")
    if BUILDS[name]["is_cuda"] and not (
        cpp_extension.CUDA_HOME and shutil.which(f"{cpp_extension.CUDA_HOME}/bin/nvcc")
    ):
        missing.append("nvcc of the CUDA toolkit (or CUDA_HOME set to where it is)")
    if missing:
        raise ImportError(
            f"{FOLDER.name}: {name} is not built yet, and building it needs {', '.join(missing)}. Or build a wheel "
            "where these are (pip wheel . --no-deps --no-build-isolation, with setuptools>=70.1) and install that here"
        )


def cute_headers(is_host: bool) -> list[str]:
    """Folders of the CuTe headers, and of the CUDA headers that they include.

    Raises:
        ImportError: they are not here.
    """
    from torch.utils import cpp_extension

    named = [os.environ.get(name, "") for name in ("CUTLASS_PATH", "CUTLASS_HOME")]
    folders = [folder for root in named if root for folder in (root, f"{root}/include")]
    folders += [f"{folder}/cutlass_library/source/include" for folder in sys.path]
    folders += ["/usr/local/cutlass/include", "/opt/cutlass/include", "/usr/local/include", "/usr/include"]
    cute = _holding("cute/tensor.hpp", folders, "the CuTe headers: pip install nvidia-cutlass, or set CUTLASS_PATH")
    toolkits = [f"{cpp_extension.CUDA_HOME or '/usr/local/cuda'}/include"]
    if is_host:
        toolkits = [*(f"{folder}/nvidia/cu13/include" for folder in sys.path), *toolkits]
    packages = "nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.* nvidia-cuda-crt==13.0.*"
    cuda = _holding("crt/host_defines.h", toolkits, f"the CUDA headers that CuTe includes: pip install {packages}")
    return [cute, cuda, f"{cuda}/cccl"]


def _holding(header: str, folders: list[str], remedy: str) -> str:
    for folder in folders:
        if folder and (Path(folder) / header).is_file():
            return folder
    raise ImportError(f"{FOLDER.name} needs {remedy}")
