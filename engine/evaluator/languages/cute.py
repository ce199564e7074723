"""CuTe C++: kernels of tensors, layouts and tiles, for a GPU and for the host alike."""

from __future__ import annotations

import re

from engine.evaluator.build.just_in_time import Compiler
from engine.evaluator.languages import structure
from engine.evaluator.toolchain_table import GPU, HOST

WORDS = re.compile(
    r"make_(tensor|layout|fragment|tiled|gmem_ptr|smem_ptr|rmem|identity|shape|stride|coord)\w*|local_(tile|partition)"
    r"|zipped_divide|logical_divide|tiled_divide|flat_divide|logical_product|composition|right_inverse|left_inverse"
    r"|partition_(A|B|C|S|D|shape_\w|fragment_\w)|retile_\w|TiledCopy|TiledMMA|MMA_Atom|Copy_Atom|cp_async_\w+|UniversalFMA"
    r"|UniversalCopy|SM\d+_\w+|ThrMMA|ThrCopy|coalesce|recast|group_modes|Layout|Stride|Shape|Swizzle|cute"
)
NAMESPACE = "cute"  # alone it uses nothing
_KERNEL = re.compile(r"using namespace cute;\n(.*?)\"\"\"", re.DOTALL)


class Cute:
    """The tensor and layout library of CUTLASS, in C++ that `load_inline` builds."""

    name = "cute"
    label = "CuTe"
    title = "CuTe, the tensor and layout library of CUTLASS, in C++"
    devices: tuple[str, ...] = (GPU, HOST)
    suffix = "cpp"
    imports: tuple[str, ...] = ()
    compiler: Compiler | None = None
    interpreted: tuple[str, ...] = ()

    def lacks(self, source: str) -> str:
        """A use of CuTe."""
        if not structure.is_python(source) or set(structure.structure(source, WORDS).words) - {NAMESPACE}:
            return ""
        return (
            "this run's kernels are written in CuTe, and nothing of CuTe is used here. Express the work with CuTe "
            "tensors, layouts and tiles: make_tensor, make_layout, local_tile, copy, gemm"
        )

    def lost(self, parent: str, child: str) -> str:
        """Its CuTe, its kernels or its extension."""
        return structure.lost_structure(parent, child, WORDS, "CuTe")

    def cut(self, example: str) -> str:
        """The example from the namespace to the end of the C++."""
        match = _KERNEL.search(example)
        return (match[1] if match else example).strip()
