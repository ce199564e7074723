"""What a user would run instead of a kernel, beside eager PyTorch: by which names it is asked for and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Instead(StrEnum):
    """A baseline that every task has; `SCALED` one that multiplies FP8 matrices."""

    COMPILE = "compile"
    MAX_AUTOTUNE = "max-autotune"
    GRAPH = "cuda-graph"
    SCALED = "scaled-mm"


EAGER = "eager"
COMPILED = "torch.compile"
TITLES: Mapping[str, str] = {
    Instead.COMPILE: COMPILED,
    Instead.MAX_AUTOTUNE: "torch.compile max-autotune",
    Instead.GRAPH: "CUDA graph",
    Instead.SCALED: "torch._scaled_mm",
}
USUAL_IN_WORDS = "compile on a processor, on a GPU the first three, and scaled-mm where FP8 matrices are multiplied"
USUAL: Mapping[str, tuple[str, ...]] = {
    "cpu": (Instead.COMPILE,),
    "cuda": (Instead.COMPILE, Instead.MAX_AUTOTUNE, Instead.GRAPH),
}
NO_SCALED_PRODUCT = "the reference multiplies no two FP8 matrices that it only converts and scales"
_EIGHT_BITS, _SCALED_MM = "float8_", "_scaled_mm"
_PRODUCT = re.compile(r"@|matmul|\b(add|ba)?b?mm\b|linear|Linear|einsum")
NONE = "none"
"""In place of names: eager alone."""
BEST_TIMED = "the best alternative timed in this run"
"""The fastest of eager and what the run has timed; what was timed elsewhere, as for docs/results.md, may be faster."""


@dataclass(frozen=True, slots=True)
class OwnBaseline:
    """A person's baseline: the text of a file with a class Baseline, or ModelNew as an export has it, and its name."""

    name: str
    source: str


def own(name: str, text: str) -> OwnBaseline:
    """A person's baseline out of a file's text, to be judged as a kernel's file is.

    Raises:
        ValueError: it defines neither class; says what to do.
    """
    classes = set(re.findall(r"^(?:class\s+)?(Baseline|ModelNew)\b\s*[(:=]", text, re.MULTILINE))
    if not classes:
        raise ValueError(
            f"{name} defines no class Baseline: write one that is made and called as the task's Model is, or name an "
            "export, which has a class ModelNew"
        )
    return OwnBaseline(name, text if "Baseline" not in classes else f"{text.rstrip()}\n\n\nModelNew = Baseline\n")


def may_be_scaled(source: str) -> bool:
    """Whether a task's text may multiply FP8 matrices otherwise than by `torch._scaled_mm`; its graph says the rest."""
    return _EIGHT_BITS in source and _SCALED_MM not in source and bool(_PRODUCT.search(source))


def of_run(asked: tuple[str, ...], toolchain: str, source: str) -> tuple[str, ...]:
    """The baselines of a run beside eager: those asked for, else those that are usual on its toolchain for a task of
    that text."""
    usual = USUAL.get(toolchain, ())
    if toolchain != "cpu" and may_be_scaled(source):  # a processor computes it plainly and slowly
        usual = (*usual, Instead.SCALED)
    return tuple(name for name in asked or usual if name != NONE)


def fault(asked: tuple[str, ...], toolchain: str = "") -> str:
    """Why these cannot be had, on a toolchain where one is named; empty where they can."""
    for name in asked:
        if name not in (*Instead, NONE):
            return f"baseline {name!r} is unknown; choose of {', '.join((*Instead, NONE))}"
        if name == Instead.GRAPH and toolchain == "cpu":
            return f"baseline {name} needs a GPU: leave it out, or choose the toolchain cuda"
    if NONE in asked and len(asked) > 1:
        return f"baselines {', '.join(asked)}: {NONE} stands alone"
    return ""
