"""Asks compute-sanitizer what a wrong or crashing kernel does to memory, in words for the model. Decides no verdict."""

from __future__ import annotations

import re

from engine.evaluation.bench import Case
from engine.evaluation.device.staged import Staged
from engine.profiling.device import command

LIMIT_S = 60.0
MOST_ERRORS = 3
MOST_LINES = 12
_MARK = re.compile(r"^=+ ?")
_NOISE = re.compile(r"^(Host Frame|Saved host backtrace|in /|COMPUTE-SANITIZER|Program hit|ERROR SUMMARY|LEAK)")


def examine(case: Case, staged: Staged) -> str:
    """Run one call under memcheck and tell its first findings; an empty text when there are none."""
    tool = str(case.details.get("sanitizer", ""))
    if not tool:
        return ""
    # Tensors in one cached block are one allocation to the tool: without the cache it sees where each ends.
    words = ["/usr/bin/env", "PYTORCH_NO_CUDA_MEMORY_CACHING=1", tool, "--tool", "memcheck", "--show-backtrace", "no"]
    words += ["--print-limit", str(MOST_ERRORS), *command.target(staged.folder, "profile")]
    return findings(staged.run(words, LIMIT_S, case.walls).output)


def findings(output: str) -> str:
    """The tool's first errors, without its banners and host frames."""
    lines = [_MARK.sub("", line).rstrip() for line in output.splitlines() if line.startswith("=====")]
    told = [line for line in lines if line.strip() and not _NOISE.match(line.strip())]
    return "\n".join(told[:MOST_LINES])
