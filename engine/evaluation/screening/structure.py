"""Whether a new version of a kernel still has the CuTe structure of its parent. Compares texts; judges no result."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

COMMENTS = re.compile(r"//[^\n]*|^[ \t]*#[ \t]*include[^\n]*|/\*.*?\*/", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"[A-Za-z_]\w*")
FEW = 3
LEFT_SHARE = 0.25
CUTE = re.compile(
    r"make_(tensor|layout|fragment|tiled|gmem_ptr|smem_ptr|rmem|identity|shape|stride|coord)\w*|local_(tile|partition)"
    r"|zipped_divide|logical_divide|tiled_divide|flat_divide|logical_product|composition|right_inverse|left_inverse"
    r"|partition_(A|B|C|S|D|shape_\w|fragment_\w)|retile_\w|TiledCopy|TiledMMA|MMA_Atom|Copy_Atom|cp_async_\w+|UniversalFMA"
    r"|UniversalCopy|SM\d+_\w+|ThrMMA|ThrCopy|coalesce|recast|group_modes|Layout|Stride|Shape|Swizzle|cute"
)


@dataclass(frozen=True, slots=True)
class Structure:
    """What a version is built from: uses of CuTe by name, whether it builds C++, and how many kernels it launches."""

    cute: Counter[str]
    has_extension: bool
    kernels: int

    @property
    def uses(self) -> int:
        """How often CuTe is used."""
        return sum(self.cute.values())


def lost_structure(parent: str, child: str) -> str | None:
    """What a child lost of its parent's structure, as a sentence; None when it is still the same kind of kernel."""
    old, new = structure(parent), structure(child)
    if old.has_extension and not new.has_extension:
        return "This version drops the custom kernel: no extension is built any more."
    if old.kernels and not new.kernels:
        return f"This version drops the CUDA kernels of its parent ({old.kernels} of them)."
    if old.uses < FEW or new.uses >= max(1.0, LEFT_SHARE * old.uses):
        return None
    gone = ", ".join(name for name, _ in (old.cute - new.cute).most_common(4))
    how = "strips the CuTe structure" if not new.uses else "loses most of the CuTe structure"
    return f"This version {how} of its parent: {old.uses} uses became {new.uses} (gone: {gone})."


def structure(source: str) -> Structure:
    """The structure of one candidate's file, comments left out; a file that does not parse is read as it stands."""
    cute: Counter[str] = Counter()
    kernels, has_extension = 0, False
    for text in _texts(source):
        names = NAME.findall(COMMENTS.sub(" ", text))
        cute.update(name for name in names if CUTE.fullmatch(name))
        kernels += names.count("__global__")
        has_extension |= not {"load_inline", "load"}.isdisjoint(names)
    return Structure(cute, has_extension, kernels)


def _texts(source: str) -> list[str]:
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [re.sub(r'"""|\'\'\'', "\n", source)]
    texts = [node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    names = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    called = [
        f.attr if isinstance(f, ast.Attribute) else f.id for f in names if isinstance(f, ast.Attribute | ast.Name)
    ]
    return [*texts, " ".join(called)]
