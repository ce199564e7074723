"""One evaluation carried out on a toolchain. Knows neither devices nor hosts."""

from __future__ import annotations

from typing import Any

from engine.evaluator.pool import Act, Evaluation
from engine.evaluator.toolchains import Toolchain


def carry_out(toolchain: Toolchain, asked: Evaluation) -> Any:
    """What the toolchain answers, or raises."""
    task = asked.task
    match asked.act:
        case Act.EXAMINE:
            return toolchain.examine(task)
        case Act.EXAMINE_CONFINED:
            return toolchain.examine_confined(task)
        case Act.LIMIT:
            return toolchain.limit(task)
        case Act.COMPILE:
            return toolchain.compile(task, asked.sources[0])
        case Act.COMPILE_ALL:
            return toolchain.compile_all(task, asked.sources)
        case Act.CHECK:
            return toolchain.check(task, asked.sources[0])
        case Act.TIME:
            return toolchain.time(task, asked.sources[0])
        case Act.TIME_BRIEFLY:
            return toolchain.time_briefly(task, asked.sources[0])
        case Act.COMPILED_BASELINE:
            return toolchain.compiled_baseline(task)
        case Act.COMPILER_SOURCE:
            return toolchain.compiler_source(task)
        case Act.COMPILED_START:
            return toolchain.compiled_start(task)
        case Act.PROFILE:
            return toolchain.profile(task, asked.sources[0], asked.timed)
