"""Builds the C++ and CUDA of this package: pip wheel . --no-deps --no-build-isolation (setuptools>=70.1)"""

import sys
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension

PACKAGE = "tilewright_package"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / PACKAGE))
import _build  # noqa: E402 - it stands in the package and imports nothing of it

modules = []
for name, build in _build.BUILDS.items():
    options = _build.extension(name)
    options["sources"] = [str(source.relative_to(HERE)) for source in options["sources"]]
    modules.append((CUDAExtension if build["is_cuda"] else CppExtension)(f"{PACKAGE}._{name}", **options))
setup(ext_modules=modules, cmdclass={"build_ext": BuildExtension})
