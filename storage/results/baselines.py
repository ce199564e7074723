"""What a user would run instead of a kernel, beside eager PyTorch: by which names it is asked for and shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Instead(StrEnum):
    """A baseline that every task has."""

    COMPILE = "compile"
    MAX_AUTOTUNE = "max-autotune"
    GRAPH = "cuda-graph"


EAGER = "eager"
COMPILED = "torch.compile"
TITLES: Mapping[str, str] = {
    Instead.COMPILE: COMPILED,
    Instead.MAX_AUTOTUNE: "torch.compile max-autotune",
    Instead.GRAPH: "CUDA graph",
}
USUAL_IN_WORDS = "compile on a processor and all three on a GPU"
USUAL: Mapping[str, tuple[str, ...]] = {
    "cpu": (Instead.COMPILE,),
    "cuda": (Instead.COMPILE, Instead.MAX_AUTOTUNE, Instead.GRAPH),
}
NONE = "none"
"""In place of names: eager alone."""


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


def of_run(asked: tuple[str, ...], toolchain: str) -> tuple[str, ...]:
    """The baselines of a run beside eager: those asked for, else those that are usual on its toolchain."""
    return tuple(name for name in asked or USUAL.get(toolchain, ()) if name != NONE)


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
