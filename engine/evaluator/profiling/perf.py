"""What perf and objdump tell of a kernel on the CPU: sampled symbol shares, hardware counters where they exist, and
what a built library is made of. Knows no candidate."""

from __future__ import annotations

import functools
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

HARDWARE = ("cycles", "instructions", "cache-references", "cache-misses", "branch-misses")
MOST = 12  # of the symbols, in the order of their shares
_SHARE = re.compile(r"^\s*([\d.]+)%\s+(\S+)\s+(.*\S)\s*$")


def hardware_events() -> tuple[str, ...]:
    """Counters that really count here: under virtualisation perf exists and most counters do not."""
    perf = shutil.which("perf")
    if perf is None:
        return ()
    done = _run([perf, "stat", "-x,", "-e", ",".join(HARDWARE), "true"])
    return tuple(_counts(done))


class Sampling:
    """perf record and perf stat on a running process, from outside it."""

    def __init__(self, pid: int, folder: Path, events: tuple[str, ...]) -> None:
        self._perf = shutil.which("perf")
        self._file = folder / "perf.data"
        self._children: dict[str, subprocess.Popen[str]] = {}
        if self._perf is None:
            return
        start = functools.partial(subprocess.Popen, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # Trap: without -N perf copies all libraries it met to ~/.debug: with PyTorch 480 MB, and a second.
        record = [self._perf, "record", "-q", "-N", "-e", "cpu-clock:u", "-F", "1999", "-o", str(self._file)]
        self._children["record"] = start([*record, "-p", str(pid)])
        if events:
            self._children["stat"] = start([self._perf, "stat", "-x,", "-e", ",".join(events), "-p", str(pid)])

    def finish(self) -> tuple[list[tuple[float, str, str]], Mapping[str, float]]:
        """End the sampling: the largest (share, library, symbol) rows and counter values, empty where perf cannot."""
        outputs: dict[str, str] = {}
        for name, child in self._children.items():
            child.send_signal(signal.SIGINT)
            try:
                outputs[name] = child.communicate(timeout=20)[1]
            except subprocess.TimeoutExpired:
                child.kill()
                outputs[name] = child.communicate()[1]
        return self._shares(), _counts(outputs.get("stat", ""))

    def script(self) -> str:
        """Once it has ended: the address of every sample, and where libraries lay; empty where perf cannot."""
        if self._perf is None or not self._file.exists():
            return ""
        return _run([self._perf, "script", "-F", "ip", "--show-mmap-events", "-i", str(self._file)], is_output=True)

    def _shares(self) -> list[tuple[float, str, str]]:
        if self._perf is None or not self._file.exists():
            return []
        words = ["report", "--stdio", "-q", "--no-children", "--no-demangle", "--sort", "dso,symbol", "-i"]
        matches = [
            _SHARE.match(line) for line in _run([self._perf, *words, str(self._file)], is_output=True).splitlines()
        ]
        rows = [row for row in matches if row][:MOST]
        names = _demangled([_name(row[3]) for row in rows])
        return _added_up((float(row[1]) / 100, row[2], name) for row, name in zip(rows, names, strict=True))


def _added_up(rows: Iterable[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Symbols that are called alike as one, the largest first: a compiler makes several of a function with threads."""
    shares: dict[tuple[str, str], float] = {}
    for share, library, name in rows:
        shares[library, name] = shares.get((library, name), 0.0) + share
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return [(share, library, name) for (library, name), share in ordered]


def _name(symbol: str) -> str:
    """The symbol's name without the privilege mark before it and the empty columns after it."""
    return re.sub(r"^\[.\] |(\s+-)+$", "", symbol)


def _demangled(symbols: list[str]) -> list[str]:
    """As perf itself would; but it does so with every name in PyTorch's libraries, which takes it a second."""
    names = _run(["c++filt", "--no-params", "--no-verbose", *symbols], is_output=True).splitlines() if symbols else []
    return names if len(names) == len(symbols) else symbols


def _run(command: list[str], is_output: bool = False) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if is_output else done.stderr


def _counts(text: str) -> dict[str, float]:
    """Values of `perf stat -x,`; an event that is not supported or not counted is left out, never zero."""
    counts: dict[str, float] = {}
    for line in text.splitlines():
        parts = line.split(",")
        if len(parts) > 2 and re.fullmatch(r"[\d.]+", parts[0]):
            counts[parts[2].split(":")[0]] = float(parts[0])
    return counts


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


def instruction_mix(libraries: Iterable[str]) -> Mix | None:
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
        elif is_own and (instruction := _INSTRUCTION.match(line)):
            _count(instruction[1], instruction[2], counts, names)
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
