"""Counts what a built library is made of: packed and scalar arithmetic, divides, calls, spills. Runs objdump."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Functions of the binding and of the standard library say nothing about the kernel.
_FOREIGN = re.compile(
    r"^((void )?std::|torch::|c10::|at::|pybind11|tilewright::|_init|_fini|_start|__|\w*_GLOBAL__)|boxed_fn|@plt"
)
_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\s+(?:lock |rep |notrack )*(\S+)\s*(.*)$")
_ARITHMETIC = r"^v?(?:add|sub|mul|div|max|min|sqrt|fn?m(?:add|sub)\d+|rcp14|rsqrt14|rndscale|scalef)"
_PACKED = re.compile(_ARITHMETIC + r"p[sd]$")
_SCALAR = re.compile(_ARITHMETIC + r"s[sd]$")
_FMA = re.compile(r"^vfn?m(?:add|sub)\d+[ps][sd]$")
_LIBM = re.compile(r"<_?_?((?:exp|exp2|expm1|log|log1p|tanh|erf|pow|sin|cos|sqrt|sinh|cosh)f?)(?:_finite)?@plt>")
_SPILL = re.compile(r"%[xyz]mm\d+,\s*-?(0x[0-9a-f]+)?\(%r[sb]p\)$")


@dataclass(frozen=True, slots=True)
class Mix:
    """Static counts over the candidate's own functions; a loop body counts once however often it runs."""

    packed: int
    scalar: int
    fma: int
    divides: int
    zmm: int
    ymm: int
    xmm: int
    spills: int
    libm_calls: int
    libm_names: tuple[str, ...]

    @property
    def packed_share(self) -> float | None:
        """Packed over all floating-point arithmetic; None without any."""
        total = self.packed + self.scalar
        return self.packed / total if total else None


def mix(libraries: Iterable[str]) -> Mix | None:
    """Counts over all libraries of a candidate; None without objdump."""
    program = shutil.which("objdump")
    if program is None:
        return None
    listing = "\n".join(_disassembled(program, library) for library in libraries)
    return _counted(listing) if listing.strip() else None


def _disassembled(program: str, library: str) -> str:
    if not Path(library).exists():
        return ""
    command = [program, "-d", "-C", "--no-show-raw-insn", "-j", ".text", library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


def _counted(listing: str) -> Mix:
    counts: Counter[str] = Counter()
    names: set[str] = set()
    is_own = False
    for line in listing.splitlines():
        if function := _FUNCTION.match(line):
            is_own = not _FOREIGN.search(function[1])
        elif is_own and (found := _INSTRUCTION.match(line)):
            _count(found[1], found[2], counts, names)
    fields = ("packed", "scalar", "fma", "divides", "zmm", "ymm", "xmm", "spills", "libm_calls")
    return Mix(**{name: counts[name] for name in fields}, libm_names=tuple(sorted(names)))


def _count(word: str, operands: str, counts: Counter[str], names: set[str]) -> None:
    counts["packed"] += bool(_PACKED.match(word))
    counts["scalar"] += bool(_SCALAR.match(word))
    counts["fma"] += bool(_FMA.match(word))
    counts["divides"] += "div" in word and word.startswith("v")
    for width in ("zmm", "ymm", "xmm"):
        if f"%{width}" in operands:
            counts[width] += 1
            break
    counts["spills"] += word.startswith("vmov") and bool(_SPILL.search(operands))
    if word.startswith(("call", "jmp")) and (called := _LIBM.search(operands)):
        counts["libm_calls"] += 1
        names.add(called[1])
