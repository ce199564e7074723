"""Command lines for Nsight Compute and for the program it profiles. Knows neither what they print nor who runs them.

Clocks are never touched: they are recorded as they were, and every figure is read with that in mind.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PLACES = ("opt/nvidia/nsight-compute/*/ncu", "usr/local/cuda*/bin/ncu", "usr/local/NVIDIA-Nsight-Compute*/ncu")
HOMES = (Path("/opt/nvidia/nsight-compute"),)  # where a starting script in another place leads
REPORT = "report"
CLOCKS = "as they were (not locked)"
CACHES = "flushed before each pass"
MAX_LAUNCHES = 40
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "MemoryWorkloadAnalysis", "WarpStateStats", "SchedulerStats",
            "WorkloadDistribution", "SourceCounters")  # fmt: skip
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from engine.profiling.device import target; target.main(sys.argv[2], sys.argv[3])"
)


def find_ncu() -> str | None:
    """Nsight Compute on PATH or where NVIDIA's installers put it, the newest first; None without one."""
    installed = sorted((path for place in PLACES for path in Path("/").glob(place)), reverse=True)
    found = shutil.which("ncu") or next(iter(installed), None)
    return os.path.realpath(found) if found else None


def readable(ncu: str | None) -> tuple[Path, ...]:
    """Trees that the profiler and the program under it must be able to read, beyond the system's and Python's."""
    homes = (Path(ncu).resolve().parent, *(home for home in HOMES if home.exists())) if ncu else ()
    return (*homes, ROOT / "engine", ROOT / "storage")


def target(folder: Path, mode: str, python: str = sys.executable) -> list[str]:
    """The program that calls the candidate in `folder`. -P keeps that folder's files from standing in for modules."""
    return [python, "-P", "-c", _START, str(ROOT), str(folder), mode]


def collect(ncu: str, metrics: Iterable[str], program: list[str], sections: Iterable[str] = SECTIONS) -> list[str]:
    """Profile the launches between cudaProfilerStart and -Stop into a report file in the current folder."""
    return [
        ncu, "--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off",
        "--target-processes", "application-only", "--launch-count", str(MAX_LAUNCHES), "--force-overwrite",
        "--export", REPORT, "--metrics", ",".join(metrics),
        *(word for name in sections for word in ("--section", name)), *program,
    ]  # fmt: skip


def page(ncu: str, report: Path, name: str) -> list[str]:
    """Print one page (raw or details) of a report as CSV in base units."""
    return [ncu, "--import", str(report), "--page", name, "--csv", "--print-units", "base"]


def version(ncu: str) -> list[str]:
    """Ask for the version."""
    return [ncu, "--version"]


def known_metrics(ncu: str, collection: str, chip: str | None) -> list[str]:
    """List the metric names that a chip has; None asks the chip that is there."""
    chosen = ["--chips", chip] if chip else []
    return [ncu, "--query-metrics-collection", collection, "--query-metrics", *chosen]
