"""Triton: kernels of tiles, written as Python functions that are compiled when they are launched."""

from __future__ import annotations

import ast
import re
from collections import Counter

from engine.evaluator.build import just_in_time
from engine.evaluator.build.just_in_time import Compiler
from engine.evaluator.languages import decorated
from engine.evaluator.languages.decorated import imported, parsed, words
from engine.evaluator.toolchain_table import GPU, HOST

JIT = "triton.jit"
# What stands for a decision about tiles and memory; losing most of them makes another kernel.
WORDS = re.compile(
    r"program_id|num_programs|arange|load|store|dot|dot_scaled|make_block_ptr|advance|\w*tensor_descriptor|atomic_\w+|reduce"
    r"|associative_scan|sum|max|min|argmax|argmin|cumsum|cumprod|where|exp2?|log2?|sqrt|rsqrt|sigmoid|trans|permute|reshape"
    r"|view|join|split|gather|histogram|sort|static_range|range|constexpr|autotune|heuristics|Config|cdiv|multiple_of"
    r"|max_contiguous|debug_barrier|inline_asm_elementwise|swizzle2d|libdevice"
)
FEW, LEFT_SHARE = 3, 0.25


class Triton:
    """Python functions under `@triton.jit`."""

    name = "triton"
    label = "Triton"
    title = "Triton, kernels of tiles written as Python functions"
    devices: tuple[str, ...] = (GPU,)
    suffix = "python"
    imports: tuple[str, ...] = ("triton",)
    compiler: Compiler | None = just_in_time
    interpreted: tuple[str, ...] = (HOST,)

    def lacks(self, source: str) -> str:
        """A kernel, its launch from ModelNew, and freedom from C++."""
        if (module := parsed(source)) is None:
            return ""
        names = kernel_names(source)
        if not names:
            return (
                "this run's kernels are written in Triton, and no kernel is defined here. Define one with "
                "`@triton.jit`, and launch it from forward with `kernel[grid](...)`"
            )
        if not _launched(module, names):
            missing = ", ".join(f"`{name}`" for name in sorted(names)[:3])
            return (
                f"no kernel is launched from ModelNew: what is defined ({missing}) is never started there. Launch it "
                "from forward, or from a function that forward calls, with `kernel[grid](...)`"
            )
        if "load_inline" in words(module) or any("cpp_extension" in name for name in imported(module).values()):
            return (
                "this run's kernels are written in Triton, and `torch.utils.cpp_extension` builds C++. Write the "
                "kernel in Triton"
            )
        return ""

    def lost(self, parent: str, child: str) -> str:
        """Its kernels, or most of what they say of tiles."""
        if not (kernels := kernel_names(parent)):
            return ""
        if not kernel_names(child):
            return f"This version drops the Triton kernels of its parent ({len(kernels)} of them)."
        old, new = (_uses(source) for source in (parent, child))
        if old.total() < FEW or new.total() >= max(1.0, LEFT_SHARE * old.total()):
            return ""
        gone = ", ".join(name for name, _ in (old - new).most_common(4))
        return (
            f"This version loses most of the Triton structure of its parent: {old.total()} uses became {new.total()} "
            f"(gone: {gone})."
        )

    def cut(self, example: str) -> str:
        """From the first decorated function to the class."""
        return decorated.cut(example)


def kernel_names(source: str) -> set[str]:
    """The functions under `@triton.jit` in a file: under these names their kernels run."""
    module = parsed(source)
    return {node.name for node in decorated.functions(module, JIT)} if module is not None else set()


def _launched(module: ast.Module, kernels: set[str]) -> bool:
    """Whether ModelNew, or what it uses by name, indexes a kernel with a grid; also under another name."""
    defined = {
        node.name: node
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in kernels
    }
    assigned = {
        target.id if isinstance(target, ast.Name) else target.attr: node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name | ast.Attribute)
    }
    kernels = kernels | {name for name, value in assigned.items() if kernels & words(value).keys()}
    open_, seen = ["ModelNew"], set[str]()
    while open_:
        name = open_.pop()
        node: ast.AST | None = defined.get(name) or assigned.get(name)
        if name in seen or node is None:
            continue
        seen.add(name)
        if any(_is_launch(child, kernels) for child in ast.walk(node)):
            return True
        open_ += [child.id for child in ast.walk(node) if isinstance(child, ast.Name)]
        open_ += [child.attr for child in ast.walk(node) if isinstance(child, ast.Attribute)]
    return False


def _is_launch(node: ast.AST, kernels: set[str]) -> bool:
    """`kernel[grid]` or `self.kernel[grid]`."""
    if isinstance(node, ast.Subscript):
        value = node.value
        name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
        return name in kernels
    return False


def _uses(source: str) -> Counter[str]:
    module = parsed(source)
    return decorated.uses(module, WORDS, JIT) if module is not None else Counter()
