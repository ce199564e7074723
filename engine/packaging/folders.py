"""The folder around a package: for pip and setuptools, or as the kernel builder of Hugging Face has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.evaluator import languages
from engine.packaging.kernels import PackagedKernel

TEMPLATE = Path(__file__).resolve().parent / "template" / "folder"
LAYOUTS = WHEEL, KERNELS = "wheel", "kernels"
NOT_STATED = "not stated"
LOADS_LAYERS = "\nfrom . import layers as layers  # noqa: E402 - where `kernels` looks for them\n"


@dataclass(frozen=True, slots=True)
class MadePackage:
    """A package as far as its folder and card tell of it."""

    name: str
    licence: str
    kernels: tuple[PackagedKernel, ...]
    architectures: Sequence[str]
    network: str = ""
    """Whose regions the kernels are for; empty for those of one task."""

    @property
    def about(self) -> str:
        """What it is for, in a word or two."""
        return f"the network {self.network}" if self.network else self.kernels[0].record.settings.task_name

    @property
    def needs_build(self) -> bool:
        """Whether it has C++ or CUDA of its own."""
        return any(kernel.builds for kernel in self.kernels)

    @property
    def is_cuda(self) -> bool:
        """Whether its kernels run on a GPU."""
        return self.kernels[0].is_cuda

    @property
    def uses_cute(self) -> bool:
        """Whether building it takes the CuTe headers."""
        return any(kernel.uses_cute for kernel in self.kernels)


def around(package: Mapping[str, str], made: MadePackage, layout: str) -> dict[str, str]:
    """The package's files, given by `name/…`, and those around them."""
    tried = "test_network_package.py" if made.network else "test_package.py"
    tests = {
        "tests/test_package.py": _template(tried, made.name),
    }
    if not made.network:
        tests[benchmark_of(layout)] = _template("benchmark.py", made.name)
    if layout == KERNELS:
        package = {**package, f"{made.name}/layers.py": _layers(made)}
        package[f"{made.name}/__init__.py"] += LOADS_LAYERS
        moved = {f"torch-ext/{path}": text for path, text in package.items()}
        moved |= {f"{variant(made)}/{path.partition('/')[2]}": text for path, text in package.items()}
        moved[f"{variant(made)}/metadata.json"] = _metadata(made)
        around_them = {"build.toml": _build_toml(made), "flake.nix": _template("flake.nix", made.name)}
        return moved | tests | around_them
    setup = {"setup.py": _template("setup.py", made.name)} if made.needs_build else {}
    return {**package, **tests, **setup, "pyproject.toml": _pyproject(made)}


def benchmark_of(layout: str) -> str:
    """Where the program stands that times a package, in its folder."""
    return "benchmarks/benchmark.py" if layout == KERNELS else "benchmark.py"


def _template(name: str, package: str) -> str:
    return re.sub(r"\btilewright_package\b", package, (TEMPLATE / name).read_text(encoding="utf-8"))


def _pyproject(made: MadePackage) -> str:
    version = f"0.1.0+{made.kernels[0].hash[:8]}"
    needs = ['"torch"', *(['"triton"'] if any(kernel.how == "triton" for kernel in made.kernels) else [])]
    if any(languages.written_in(kernel.text) == languages.CuteDsl.name for kernel in made.kernels):
        needs.append('"nvidia-cutlass-dsl[cu13]==4.8.1"')
    building = ['"setuptools>=70.1"']  # the first with bdist_wheel
    if made.needs_build:
        building += ['"torch"', '"ninja"', *(['"nvidia-cutlass"'] if made.uses_cute else [])]
        if made.uses_cute and not made.is_cuda:
            building += [f'"nvidia-cuda-{part}==13.0.*"' for part in ("runtime", "cccl", "crt")]
    licence = f'license = "{made.licence}"\n' if made.licence else ""
    return f"""[build-system]
requires = [{", ".join(building)}]
build-backend = "setuptools.build_meta"

[project]
name = "{made.name.replace("_", "-")}"
version = "{version}"
description = "Kernels for {made.about}, made and judged by Tilewright"
readme = "CARD.md"
{licence}requires-python = ">=3.10"
dependencies = [{", ".join(needs)}]

[tool.setuptools]
packages = ["{made.name}"]

[tool.setuptools.package-data]
"{made.name}" = ["csrc/**/*", "csrc/*"]
"""


def _build_toml(made: MadePackage) -> str:
    """What the kernel builder compiles; a package without C++ is the same for every GPU."""
    lines = ["[general]", f'name = "{made.name.replace("_", "-")}"', "version = 1", "edition = 5"]
    lines += [f'license = "{made.licence}"'] if made.licence else []
    backend = "cuda" if made.is_cuda else "cpu"
    lines += [f'backends = ["{backend}"]', ""]
    if not made.needs_build:
        return "\n".join([*lines, "[torch-noarch]", ""])
    lines += ["[torch]", 'pyext = ["py", "json"]', ""]
    for kernel in made.kernels:
        for library in kernel.builds:
            names = ["main.cpp", "kernels.cu"] if made.is_cuda else ["main.cpp"]
            listed = ", ".join(f'"torch-ext/{made.name}/csrc/{library}/{name}"' for name in names)
            lines += [f"[kernel.{library}]", f'backend = "{backend}"', f"src = [{listed}]"]
            lines += [f'include = ["torch-ext/{made.name}/csrc"]']
            lines += ['depends = ["torch", "cutlass_3_8"]' if made.uses_cute else 'depends = ["torch"]']
            if made.is_cuda and made.architectures:
                lines += [f"cuda-capabilities = [{', '.join(map(_capability, made.architectures))}]"]
            lines += [""]
    return "\n".join(lines)


def variant(made: MadePackage) -> str:
    """Where `kernels` finds what needs no builder: libraries are built at first use there."""
    return f"build/torch-{'cuda' if made.is_cuda else 'cpu'}"


def _metadata(made: MadePackage) -> str:
    """What `kernels` reads of a variant; its `id` is the name that the module gets in Python."""
    backend: dict[str, object] = {"type": "cuda" if made.is_cuda else "cpu"}
    if made.architectures:
        backend["archs"] = [_capability(architecture).strip('"') for architecture in made.architectures]
    plain = {
        "id": f"_{made.name}_{made.kernels[0].hash[:8]}", "name": made.name.replace("_", "-"), "version": 1,
        "license": made.licence or NOT_STATED, "python-depends": [], "backend": backend,
    }  # fmt: skip
    return json.dumps(plain, indent=2) + "\n"


def _capability(architecture: str) -> str:
    """`"9.0a"` of `90a`."""
    digits = architecture.rstrip("af")
    return f'"{digits[:-1]}.{digits[-1]}{architecture[len(digits) :]}"'


def _layers(made: MadePackage) -> str:
    """The layer that `kernels.kernelize` puts in a network's; its forward has the arguments of the reference's."""
    names = [wanted.name for wanted in made.kernels[0].entries[0].inputs]
    text = _template("layers.py", made.name)
    signature, handed = ", ".join(["self", *names]), ", ".join(names)
    return text.replace("self, *inputs", signature).replace("(*inputs", f"({handed}")
