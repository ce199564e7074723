"""Demangled kernel names made short enough to read; the whole name is kept beside it by who needs it."""

from __future__ import annotations

import re

LENGTH = 60
_CAST = re.compile(r"\((?:unsigned |signed )?(?:int|long|bool|char|short|long long|size_t|std::\w+)\)\s*")
# As CuTe's Python DSL names a kernel: its function, then the types of its arguments and a number.
_DSL = re.compile(r"kernel_cutlass_([a-zA-Z_]\w*?)_(?:tensor|ptr|CopyAtom|Tiled|\w+?_object_at_|\d|None)\w*")
# What a compiler made of a function, as the part of it that each thread runs: "product(float*) [clone ._omp_fn.0]".
_CLONE = re.compile(r"(?: \[clone [^\]]+\])+$")
_BY_DRIVER = re.compile(r"(?:Memset|Memcpy)\b.*")  # no kernel's, as the driver's records call what it does itself
NAMELESS = "a kernel without a name"
_UNNAMED = re.compile(r"(?:<unnamed>|\(anonymous namespace\))::")


def short(name: str) -> str:
    """`void demo::product<(int)32>(const float *, float *)` becomes `product<32>`; of CuTe's Python DSL
    `kernel_cutlass_product_tensorptrf32_0` becomes `product`."""
    if _BY_DRIVER.fullmatch(name.strip()):
        return name.strip()
    if of_dsl := _DSL.fullmatch(name.strip()):
        return of_dsl[1]
    clone = found[0] if (found := _CLONE.search(name.strip())) else ""
    text = _CAST.sub("", _UNNAMED.sub("", name.strip().removesuffix(clone)))
    text = _without_arguments(text)
    head, brackets, rest = text.partition("<")
    head = head.split(" ")[-1].rsplit("::", 1)[-1]
    text = f"{head}{brackets}{rest}"
    return f"{text if len(text) <= LENGTH or not brackets else f'{head}<…>'}{clone}" if text else NAMELESS


def _without_arguments(text: str) -> str:
    """Without the argument list at the end, which begins at the bracket that closes last."""
    if not text.endswith(")"):
        return text
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[i], 0)
        if depth == 0:
            return text[:i] or text
    return text
