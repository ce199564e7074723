"""CUDA C++: kernels of threads, warps and blocks that are written without a library."""

from __future__ import annotations

import re

from engine.evaluator.build.just_in_time import Compiler
from engine.evaluator.languages import structure
from engine.evaluator.toolchain_table import GPU

# What stands for a decision about threads and memory; losing most of them makes another kernel.
WORDS = re.compile(
    r"__(shared|launch_bounds|cluster_dims|syncthreads|syncwarp|ldg|ldcs|stcs)\w*|__(shfl|reduce|ballot|match)\w*_sync"
    r"|(float|int|uint|double)[24]|atomic[A-Z]\w*|asm|cooperative_groups|cg|memcpy_async|pipeline|barrier|wmma|mma_sync"
)
LAUNCHED = re.compile(r"<<<|\bcudaLaunch(Cooperative)?Kernel\w*\b|\bcuLaunchKernel\w*\b")
DEFINED = re.compile(r"\b__global__\b")
OTHERS = re.compile(
    r"#[ \t]*include[ \t]*[<\"](cute|cutlass)/|\b(cute|cutlass)[ \t]*::|\bnamespace[ \t]+(cute|cutlass)\b"
)
_KERNEL = re.compile(r"(?:^#include[^\n]*\n)+(.*?)\"\"\"", re.DOTALL | re.MULTILINE)


class Cuda:
    """CUDA C++ that `load_inline` builds."""

    name = "cuda"
    label = "CUDA C++"
    title = "CUDA C++, without a library of kernels"
    devices: tuple[str, ...] = (GPU,)
    suffix = "cpp"
    imports: tuple[str, ...] = ()
    compiler: Compiler | None = None
    interpreted: tuple[str, ...] = ()

    def lacks(self, source: str) -> str:
        """A kernel, its launch, and freedom from CuTe."""
        texts = structure.texts(source)
        if not structure.is_python(source):
            return ""
        if not any(map(DEFINED.search, texts)):
            return (
                "this run's kernels are written in CUDA C++, and no kernel is defined here. Define one with "
                "`__global__` in cuda_sources, and launch it from a host function with "
                "`<<<grid, block, shared, stream>>>`"
            )
        if not any(map(LAUNCHED.search, texts)):
            return (
                "a `__global__` kernel is defined and never launched. Launch it from a host function with "
                "`<<<grid, block, shared, stream>>>`"
            )
        if library := next(filter(None, map(OTHERS.search, texts)), None):
            return (
                f"this run's kernels are written in plain CUDA C++, and `{library[0].strip()}` brings in a library of "
                "kernels. Write indices, tiles and copies out"
            )
        return ""

    def lost(self, parent: str, child: str) -> str:
        """Its use of the device, its kernels or its extension."""
        return structure.lost_structure(parent, child, WORDS, "CUDA")

    def cut(self, example: str) -> str:
        """The example from below the includes to the end of the C++."""
        match = _KERNEL.search(example)
        return (match[1] if match else example).strip()
