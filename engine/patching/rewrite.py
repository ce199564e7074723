"""The two later rungs: SEARCH/REPLACE with unique blocks, and a whole file that must still be the same kernel."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from engine.patching.edits import EditError

MIN_SIMILARITY = 0.15
_CUTE = re.compile(r"\b(cute::\w+|make_tensor|make_layout|local_tile|local_partition|TiledCopy|TiledMMA|MMA_Atom)\b")
_LIBRARY = re.compile(
    r"\b(torch\.(?:matmul|mm|bmm|softmax|sigmoid|einsum|compile)|F\.\w+|cublas\w*|cudnn\w*|at::\w+_out)\b"
)


def apply_search_replace(source: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Replace each searched text, which must stand in the source exactly once; all or nothing.

    Raises:
        EditError: a text is missing or ambiguous, or nothing changes.
    """
    result = source
    for index, (search, replacement) in enumerate(pairs, 1):
        places = result.count(search) if search.strip() else 0
        if places != 1:
            problem = "is empty" if not search.strip() else f"stands in the source {places} times, not once"
            raise EditError(f"SEARCH block {index} {problem}. Copy whole lines exactly, enough of them to be unique.")
        result = result.replace(search, replacement)
    if result == source:
        raise EditError("The SEARCH/REPLACE blocks change nothing.")
    return result


def guard_rewrite(source: str, rewritten: str) -> str:
    """The rewritten file, if it still is a version of the same kernel.

    Raises:
        EditError: nothing changed, CuTe was stripped, a library call came in, or hardly a line is shared.
    """
    if rewritten == source:
        raise EditError("The file is unchanged.")
    if _CUTE.search(source) and not _CUTE.search(rewritten):
        raise EditError("The rewrite strips the CuTe structure. Keep the tensors, layouts and tiles of the kernel.")
    gained = set(_LIBRARY.findall(rewritten)) - set(_LIBRARY.findall(source))
    if gained:
        raise EditError(
            f"The rewrite brings in library calls ({', '.join(sorted(gained))}); the kernel must do the work."
        )
    matcher = difflib.SequenceMatcher(None, source.split("\n"), rewritten.split("\n"), autojunk=False)
    if matcher.ratio() < MIN_SIMILARITY:
        raise EditError("The rewrite shares hardly a line with the kernel. Change what must change and keep the rest.")
    return rewritten
