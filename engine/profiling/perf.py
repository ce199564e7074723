"""What perf offers here: sampled symbol shares, and hardware counters where they exist. Knows no candidate."""

from __future__ import annotations

import functools
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
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
        record = [self._perf, "record", "-q", "-e", "cpu-clock:u", "-F", "1999", "-o", str(self._file), "-p", str(pid)]
        self._children["record"] = start(record)
        if events:
            self._children["stat"] = start([self._perf, "stat", "-x,", "-e", ",".join(events), "-p", str(pid)])

    def finish(self) -> tuple[list[tuple[float, str, str]], Mapping[str, float]]:
        """End the sampling: the largest (share, library, symbol) rows and counter values, empty where perf cannot."""
        said: dict[str, str] = {}
        for name, child in self._children.items():
            child.send_signal(signal.SIGINT)
            try:
                said[name] = child.communicate(timeout=20)[1]
            except subprocess.TimeoutExpired:
                child.kill()
                said[name] = child.communicate()[1]
        return self._shares(), _counts(said.get("stat", ""))

    def _shares(self) -> list[tuple[float, str, str]]:
        if self._perf is None or not self._file.exists():
            return []
        words = ["report", "--stdio", "-q", "--no-children", "--no-demangle", "--sort", "dso,symbol", "-i"]
        found = [
            _SHARE.match(line) for line in _run([self._perf, *words, str(self._file)], is_output=True).splitlines()
        ]
        rows = [row for row in found if row][:MOST]
        names = _demangled([_name(row[3]) for row in rows])
        return [(float(row[1]) / 100, row[2], name) for row, name in zip(rows, names, strict=True)]


def _name(symbol: str) -> str:
    """Without the privilege mark before it and the empty columns after it."""
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
    found: dict[str, float] = {}
    for line in text.splitlines():
        parts = line.split(",")
        if len(parts) > 2 and re.fullmatch(r"[\d.]+", parts[0]):
            found[parts[2].split(":")[0]] = float(parts[0])
    return found
