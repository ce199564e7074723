"""What the compiler gave each kernel: registers, stack (where spills go), shared memory. Reads cuobjdump's words."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.profiling.device.running import Run

TOOL_S = 60.0
_FUNCTION = re.compile(r"^\s*Function (\S+):\s*$")
_USAGE = re.compile(r"\b(REG|STACK|SHARED|LOCAL):(\d+)")


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one compiled kernel, by its mangled name; bytes but for registers. Dynamic shared memory is not known here."""

    kernel: str
    registers: int
    stack_bytes: int
    shared_bytes: int


def of(libraries: Iterable[str], run: Run) -> list[Resources]:
    """Of every kernel in the libraries; none where cuobjdump is missing or says nothing."""
    tool = shutil.which("cuobjdump") or next(
        (str(p) for p in [Path("/usr/local/cuda/bin/cuobjdump")] if p.exists()), ""
    )
    if not tool:
        return []
    return [one for path in libraries for one in parsed(run([tool, "--dump-resource-usage", path], TOOL_S).output)]


def parsed(text: str) -> list[Resources]:
    """Read `cuobjdump --dump-resource-usage`."""
    found, name = [], ""
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            name = match[1]
        elif name and (usage := dict(_USAGE.findall(line))):
            values = [int(usage.get(key, 0)) for key in ("REG", "STACK", "LOCAL", "SHARED")]
            found.append(Resources(name, values[0], values[1] + values[2], values[3]))
            name = ""
    return found
