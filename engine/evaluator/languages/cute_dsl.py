"""CuTe's Python DSL: CuTe's tensors and layouts in Python functions that are compiled when they are first called."""

from __future__ import annotations

import ast
import re

from engine.evaluator.build import cute_dsl
from engine.evaluator.build.just_in_time import Compiler
from engine.evaluator.languages import decorated
from engine.evaluator.languages.decorated import imported, parsed, words
from engine.evaluator.toolchain_table import GPU

NAME = "cute_dsl"
KERNEL, HOST_FUNCTION = "cutlass.cute.kernel", "cutlass.cute.jit"
# What stands for a decision about tiles, memory and pipelines; losing most of them makes another kernel.
WORDS = re.compile(
    r"thread_idx|block_idx|grid_dim|block_idx_in_cluster|warp_idx|lane_idx|make_layout|make_ordered_layout|make_layout_tv"
    r"|make_identity_tensor|make_tensor|make_rmem_tensor\w*|make_fragment\w*|local_tile|local_partition|zipped_divide"
    r"|logical_divide|tiled_divide|flat_divide|composition|partition_[SDABC]|partition_shape_[ABC]|retile|tma_partition"
    r"|make_tiled_\w+|make_copy_atom|make_mma_atom|make_smem_layout\w*|tile_to_shape|make_swizzle|Swizzle|copy|autovec_copy"
    r"|gemm|load|store|reduce|warp_reduction\w*|shuffle_sync\w*|SmemAllocator|allocate\w*|alloc_smem|sync_threads|barrier"
    r"|mbarrier_\w+|Pipeline\w+|producer_\w+|consumer_\w+|fence\w*|commit_group|wait_group|cp_async_\w+|Copy\w+Op|Mma\w+Op"
    r"|elem_less|exp2?|log2?|rsqrt|sqrt|tanh|rcp_approx|Constexpr|range_constexpr|setmaxregister_\w+|inline_ptx|atomic_\w+"
)
FEW, LEFT_SHARE = 3, 0.25


class CuteDsl:
    """Python functions under `@cute.kernel`, launched from functions under `@cute.jit`."""

    name = NAME
    label = "CuTe DSL"
    title = "CuTe DSL, CuTe's tensors and layouts written as Python functions"
    devices: tuple[str, ...] = (GPU,)
    suffix = "python"
    imports: tuple[str, ...] = ("cutlass", "cuda")
    compiler: Compiler | None = cute_dsl
    interpreted: tuple[str, ...] = ()

    def lacks(self, source: str) -> str:
        """A kernel, its launch from a host function that ModelNew calls, and freedom from C++ and Triton."""
        if (module := parsed(source)) is None:
            return ""
        if not kernel_names(source):
            return (
                "this run's kernels are written in CuTe's Python DSL, and no kernel is defined here. Define one with "
                "`@cute.kernel`, launch it from a function under `@cute.jit`, and call that from forward"
            )
        if not _launched(module):
            return (
                "no kernel is launched from ModelNew. Launch it with `kernel(...).launch(grid=..., block=..., "
                "stream=...)` in a function under `@cute.jit`, compile that with `cute.compile` once, and call what it "
                "gives from forward, or from a function that forward calls"
            )
        others = {name.partition(".")[0] for name in imported(module).values()} & {"triton"}
        if (
            others
            or "load_inline" in words(module)
            or any("cpp_extension" in name for name in imported(module).values())
        ):
            return (
                "this run's kernels are written in CuTe's Python DSL, and the file uses another language beside it "
                "(Triton, or C++ through `torch.utils.cpp_extension`). Write the kernel in the DSL"
            )
        return ""

    def lost(self, parent: str, child: str) -> str:
        """Its kernels, or most of what they say of tiles, memory and pipelines."""
        if not (kernels := kernel_names(parent)):
            return ""
        if not kernel_names(child):
            return f"This version drops the CuTe DSL kernels of its parent ({len(kernels)} of them)."
        old, new = (
            decorated.uses(module, WORDS, KERNEL, HOST_FUNCTION)
            for module in (parsed(parent), parsed(child))
            if module is not None
        )
        if old.total() < FEW or new.total() >= max(1.0, LEFT_SHARE * old.total()):
            return ""
        gone = ", ".join(name for name, _ in (old - new).most_common(4))
        return (
            f"This version loses most of the CuTe structure of its parent: {old.total()} uses became {new.total()} "
            f"(gone: {gone})."
        )

    def cut(self, example: str) -> str:
        """Its functions, without imports and the class."""
        return decorated.cut(example)


def kernel_names(source: str) -> set[str]:
    """The functions and methods under `@cute.kernel` in a file."""
    module = parsed(source)
    return {node.name for node in decorated.functions(module, KERNEL)} if module is not None else set()


def device_name(function: str) -> str:
    """How the name of a kernel begins under which it runs; the DSL adds the types of its arguments and a number.

    Source: `BaseDSL.mangle_name` of nvidia-cutlass-dsl 4.8.1.
    """
    return f"kernel_cutlass_{function}_"


def _launched(module: ast.Module) -> bool:
    """Whether ModelNew, or what it uses by name to any depth, has a launch."""
    defined: dict[str, list[ast.AST]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name | ast.Attribute):
                    name = target.id if isinstance(target, ast.Name) else target.attr
                    defined.setdefault(name, []).append(node.value)
    open_, seen = ["ModelNew"], set[str]()
    while open_:
        name = open_.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in defined.get(name, ()):
            if any(_is_launch(child) for child in ast.walk(node)):
                return True
            open_ += words(node)
    return False


def _is_launch(node: ast.AST) -> bool:
    """`kernel(...).launch(...)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "launch"
