"""Kernels as another system left them on disk, in the order in which they were made. Knows files, not runs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError

SOURCES = (".py",)
MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class ForeignKernel:
    """One source. `is_final` marks the one its depth ended with; the others were tries on the way.

    `status` and the latencies (milliseconds) are what the other system says, None where it says nothing.
    """

    file: str
    source: str
    depth: int
    is_final: bool
    status: str = ""
    latency_ms: float | None = None
    baseline_latency_ms: float | None = None
    message: str = ""


def read_kernels(folder: Path) -> list[ForeignKernel]:
    """What a folder holds: saved node files (CuTeGen), or source files, one per step (KernelBench).

    Raises:
        EngineError: no such folder, neither of the two, or a file that cannot be read.
    """
    if not folder.is_dir():
        raise EngineError(f"{folder} is not a folder")
    nodes = sorted(_nodes(folder), key=lambda found: (found[1]["depth"], found[0].name))
    if nodes:
        return _of_nodes(folder, nodes)
    files = sorted(
        (p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file()), key=lambda p: _natural(p, folder)
    )
    kernels = [_of_file(folder, path, depth) for depth, path in enumerate(p for p in files if "ModelNew" in _text(p))]
    if not kernels:
        raise EngineError(
            f"{folder} has no kernels to import: expected JSON files with src and depth, or Python files with ModelNew"
        )
    return kernels


def _nodes(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for path in sorted(folder.rglob("*.json")):
        try:
            node = json.loads(_text(path))
        except json.JSONDecodeError:
            continue
        if isinstance(node, dict) and isinstance(node.get("src"), str) and isinstance(node.get("depth"), int):
            yield path, node


def _of_nodes(folder: Path, nodes: list[tuple[Path, Mapping[str, Any]]]) -> list[ForeignKernel]:
    references = {node.get("ref") for _, node in nodes if isinstance(node.get("ref"), str)}
    depths = [node["depth"] for _, node in nodes]
    if len(references) > 1 or len(set(depths)) != len(depths):
        raise EngineError(f"{folder} holds more than one result: import the folder of a single task and run")
    kernels = list[ForeignKernel]()
    for depth, (path, node) in enumerate(nodes):
        name = str(path.relative_to(folder))
        kernels += [_of_try(name, tried, depth) for tried in _tries(node)]
        kernels.append(
            ForeignKernel(
                name, node["src"], depth, True, str(node.get("error_type") or ""),
                _milliseconds(node.get("time")), _milliseconds(node.get("ref_time")),
            )
        )  # fmt: skip
    return kernels


def _tries(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The failed versions on the way to a node's source."""
    history = node.get("history")
    found = history if isinstance(history, list) else []
    return [t for t in found if isinstance(t, dict) and isinstance(t.get("src"), str) and t["src"] != node["src"]]


def _of_try(name: str, tried: Mapping[str, Any], depth: int) -> ForeignKernel:
    message = str(tried.get("msg") or "")
    return ForeignKernel(name, tried["src"], depth, False, str(tried.get("error_type") or ""), message=message[:4000])


def _of_file(folder: Path, path: Path, depth: int) -> ForeignKernel:
    told = _beside(path)
    status = "" if "correctness" not in told else "correct" if told["correctness"] is True else "not correct"
    return ForeignKernel(
        str(path.relative_to(folder)), _text(path), depth, True, status,
        _milliseconds(told.get("runtime")), _milliseconds(told.get("ref_runtime")),
    )  # fmt: skip


def _beside(path: Path) -> Mapping[str, Any]:
    """The result in a JSON file of the same name (compiled, correctness, runtime), empty without one."""
    try:
        found = json.loads(_text(path.with_suffix(".json")))
    except (EngineError, json.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _milliseconds(value: Any) -> float | None:
    """A latency as a number or as an object with a mean; None for what is none."""
    number = value.get("mean") if isinstance(value, dict) else value
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        return None
    return float(number) if math.isfinite(number) and number > 0 else None


def _natural(path: Path, folder: Path) -> list[tuple[int, str]]:
    """Order by the numbers in a name, so that step 10 comes after step 9."""
    parts = re.findall(r"\d+|\D+", str(path.relative_to(folder)))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise EngineError(f"{path} is larger than {MAX_BYTES >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"cannot read {path}: {error}") from error
