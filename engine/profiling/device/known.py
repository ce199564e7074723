"""Which metric names this profiler knows for this chip: asked once, kept per version and chip. Knows no value."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.profiling.device import command
from engine.profiling.device.running import Run

COLLECTIONS = ("profiling", "launch")
QUERY_S = 60.0
# Worked out by the profiler itself, so that no list of the chip's names has it.
DERIVED = frozenset({"sm__maximum_warps_per_active_cycle_pct"})
CREDIBLE = 0.8
_NAME = re.compile(r"^\s*([a-z]\w*__\w+)(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Known:
    """The profiler's version and the base names (without `.sum` and the like) of this chip's counters."""

    version: str
    names: frozenset[str]


def names(run: Run, ncu: str, capability: str, cache: Path) -> Known:
    """From the cache if there; no names when the profiler does not say."""
    file = cache / f"counters-{_identity(ncu, capability)}.json"
    try:
        kept = json.loads(file.read_text())
        return Known(kept["version"], frozenset(kept["names"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        found = Known(_version(run, ncu), frozenset(name for one in COLLECTIONS for name in _ask(run, ncu, one)))
    if found.names:
        cache.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({"version": found.version, "names": sorted(found.names)}))
        draft.replace(file)
    return found


def listed(text: str) -> set[str]:
    """Names at the start of the lines of a query."""
    return {found[1] for line in text.splitlines() if (found := _NAME.match(line))}


def split(wanted: Iterable[str], known: frozenset[str]) -> tuple[list[str], list[str]]:
    """Names to ask for and names that this chip does not have.

    A list that lacks most of them is no list of this chip's names: then all are asked for, and the answer tells.
    """
    names_wanted = list(wanted)
    asked = [name for name in names_wanted if name.split(".", 1)[0] in known | DERIVED]
    if len(asked) < CREDIBLE * len(names_wanted):
        return names_wanted, []
    return asked, [name for name in names_wanted if name not in asked]


def _identity(ncu: str, capability: str) -> str:
    """Of this very program and chip: another version is another file, or the same one with another time."""
    path = Path(ncu)
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return hashlib.sha256(json.dumps([ncu, stamp, capability, COLLECTIONS]).encode()).hexdigest()[:16]


def _version(run: Run, ncu: str) -> str:
    found = re.search(r"Version ([\d.]+)", run(command.version(ncu), QUERY_S).output)
    return found[1] if found else "unknown version"


def _ask(run: Run, ncu: str, collection: str) -> set[str]:
    done = run(command.known_metrics(ncu, collection, None), QUERY_S)
    return listed(done.output) if done.status == 0 else set()
