"""Nsight Compute: its command lines, the metrics it knows here, and one session around a prepared candidate.

Clocks are never touched: they are recorded as they were, and every figure is read with that in mind.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from engine.evaluator.profiling.device import bottleneck, launch_counters, source_lines
from engine.evaluator.profiling.device.launch_counters import Launch
from engine.evaluator.profiling.device.source_lines import Sampled
from engine.evaluator.sandbox.child import Done
from storage import files
from storage.results import counters
from storage.results.profile_results import Advice

PAGE_S = 60.0
MAX_REPORT = 4 << 20
MAX_PAGE = 1 << 20
TENSOR_KINDS = ("bf16_dst_fp32", "fp16", "tf32_dst_fp32", "fp64", "fp8", "int8")
REFUSED = "ERR_NVGPUCTRPERM"
RAISED = re.compile(r"[\w.]*(Error|Exception)\b")
ALLOW_COUNTERS = (
    "an administrator allows them with `options nvidia NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d and a "
    "restart, or a container gets --cap-add SYS_ADMIN"
)
ROOT = Path(__file__).resolve().parents[4]
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
    "from engine.evaluator.profiling.device import target; target.main(sys.argv[2], sys.argv[3])"
)
COLLECTIONS = ("profiling", "launch")
QUERY_S = 60.0
# Worked out by the profiler itself, so that no list of the chip's names has it.
DERIVED = frozenset({"sm__maximum_warps_per_active_cycle_pct"})
CREDIBLE = 0.8
_NAME = re.compile(r"^\s*([a-z]\w*__\w+)(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Collected:
    """What a session gave. `report` is the profiler's own file in base64, empty when it is too large to keep."""

    launches: Sequence[Launch]
    advice: Sequence[Advice]
    missing: Sequence[str]
    text: str
    version: str
    passes: int
    report: str
    report_bytes: int
    sampled: Sampled | None = None

    @property
    def is_cut(self) -> bool:
        """True when the candidate may have launched more than was profiled."""
        return len(self.launches) >= MAX_LAUNCHES


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why counters could not be had."""

    reason: str
    said: str = ""


def wanted() -> list[str]:
    """Every counter asked for, in the order of the screen."""
    names = [counter.name for counter in counters.COUNTERS]
    names += [counters.stall_counter(reason) for reason in counters.STALLS]
    names += [counters.operation_counter(kind) for kind in counters.OPERATIONS]
    return names + [f"{counters.TENSOR_START}{kind}.sum" for kind in TENSOR_KINDS]


def collect(
    folder: Path, ncu: str, run: Run, capability: str, cache: Path, limit_s: float, python: str
) -> Collected | Nothing:
    """Profile one call of the candidate prepared in `folder`."""
    knows = known_metrics(run, ncu, capability, cache)
    asked, absent = known_and_absent(wanted(), knows.names)
    if knows.names and counters.DRAM in absent:
        asked.append(counters.DRAM_OLD)
    report = folder / f"{REPORT}.ncu-rep"
    report.unlink(missing_ok=True)  # an earlier try may have left a part of one
    done = run(collect_command(ncu, asked, target_command(folder, "profile", python)), limit_s)
    if failure := why_not(done, report.exists(), limit_s):
        return Nothing(failure, done.output[-4000:])
    raw, details = (run(page_command(ncu, report, name), PAGE_S) for name in ("raw", "details"))
    launches = launch_counters.read_launches(raw.output)
    if not launches:
        return Nothing("the profiler's report holds no launch", (done.output + raw.output)[-4000:])
    measured = {name for launch in launches for name in launch.values}
    missing = [*absent, *(name for name in asked if name not in measured)]
    text = _text(done, raw, details)
    size = report.stat().st_size
    kept = base64.b64encode(report.read_bytes()).decode() if size <= MAX_REPORT else ""
    passes = max((int(number) for number in re.findall(r"- (\d+) passes", done.output)), default=1)
    return Collected(
        launches,
        bottleneck.ranked(launch_counters.read_advice(details.output), launches),
        missing,
        text,
        knows.version,
        passes,
        kept,
        size,
        _sampled(run, ncu, report, launches),
    )


def _sampled(run: Run, ncu: str, report: Path, launches: Sequence[Launch]) -> Sampled | None:
    """Samples by source line; None where the profiler does not print them in time or as known."""
    is_long = len(launches) > source_lines.MOST_LAUNCHES
    longest = max(range(len(launches)), key=lambda i: launches[i].value(counters.TIME) or 0.0) if is_long else None
    done = run(source_lines.print_command(ncu, str(report), longest), PAGE_S)
    if done.status != 0 or done.is_timeout or done.is_cut:
        return None
    sampled = source_lines.read(done.output)
    of = f"only of the longest of the {len(launches)} profiled launches" if is_long else ""
    return replace(sampled, of=of) if sampled else None


def why_not(done: Done, has_report: bool, limit_s: float) -> str:
    """Why a session gave nothing, in words for a person; empty when it did."""
    if REFUSED in done.output:
        return f"the system does not allow hardware counters to this user ({REFUSED})"
    if done.is_timeout:
        return f"the profiler did not end within {limit_s:.0f} s"
    if done.is_memory:
        return "the profiler and the candidate needed more memory than is allowed"
    if "No kernels were profiled" in done.output:
        return "no kernel was launched in the profiled call"
    if done.status != 0 or not has_report:
        return f"the profiler ended with status {done.status}: {_error(done.output)}"
    return ""


def _error(output: str) -> str:
    """The profiler's own error lines and what the program under it raised."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("==ERROR== ").rstrip(".") for line in lines if line.startswith("==ERROR==")]
    raised = [line for line in lines if RAISED.match(line)][-1:]
    return "; ".join([*errors, *raised])[:600] or last_error(output)


def last_error(output: str) -> str:
    """The line that says what went wrong: the last that names an error, else the last of all."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    naming = [line for line in lines if RAISED.match(line)]
    return (naming or lines or ["no output"])[-1][:400]


def _text(done: Done, raw: Done, details: Done) -> str:
    """Everything the profiler printed, for people; each part is cut to what a page can show."""
    parts = {"session": done.output, "raw page": raw.output, "details page": details.output}
    return "\n".join(
        f"# {name}{' (cut)' if len(page) > MAX_PAGE else ''}\n{page[:MAX_PAGE]}" for name, page in parts.items()
    )


def find_ncu() -> str | None:
    """Nsight Compute on PATH or where NVIDIA's installers put it, the newest first; None without one."""
    installed = sorted((path for pattern in PLACES for path in Path("/").glob(pattern)), reverse=True)
    ncu = shutil.which("ncu") or next(iter(installed), None)
    return os.path.realpath(ncu) if ncu else None


def readable_trees(ncu: str | None) -> tuple[Path, ...]:
    """Trees that the profiler and the program under it must be able to read, beyond the system's and Python's."""
    homes = (Path(ncu).resolve().parent, *(home for home in HOMES if home.exists())) if ncu else ()
    return (*homes, ROOT / "engine", ROOT / "storage")


def target_command(folder: Path, mode: str, python: str = sys.executable) -> list[str]:
    """The program that calls the candidate in `folder`. -P keeps that folder's files from standing in for modules."""
    return [python, "-P", "-c", _START, str(ROOT), str(folder), mode]


def collect_command(
    ncu: str, metrics: Iterable[str], program: list[str], sections: Iterable[str] = SECTIONS
) -> list[str]:
    """Profile the launches between cudaProfilerStart and -Stop into a report file in the current folder."""
    return [
        ncu, "--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off",
        "--target-processes", "application-only", "--launch-count", str(MAX_LAUNCHES), "--force-overwrite",
        "--export", REPORT, "--metrics", ",".join(metrics),
        *(word for name in sections for word in ("--section", name)), *program,
    ]  # fmt: skip


def page_command(ncu: str, report: Path, name: str) -> list[str]:
    """Print one page (raw or details) of a report as CSV in base units."""
    return [ncu, "--import", str(report), "--page", name, "--csv", "--print-units", "base"]


def version_command(ncu: str) -> list[str]:
    """Ask for the version."""
    return [ncu, "--version"]


def query_command(ncu: str, collection: str, chip: str | None) -> list[str]:
    """List the metric names that a chip has; None asks the chip that is there."""
    chosen = ["--chips", chip] if chip else []
    return [ncu, "--query-metrics-collection", collection, "--query-metrics", *chosen]


@dataclass(frozen=True, slots=True)
class Known:
    """The profiler's version and the base names (without `.sum` and the like) of this chip's counters."""

    version: str
    names: frozenset[str]


def known_metrics(run: Run, ncu: str, capability: str, cache: Path) -> Known:
    """The metrics, from the cache if there; no names when the profiler does not say."""
    file = cache / f"counters-{_identity(ncu, capability)}.json"
    try:
        kept = json.loads(file.read_text())
        return Known(kept["version"], frozenset(kept["names"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        metrics = Known(
            _version(run, ncu), frozenset(name for collection in COLLECTIONS for name in _ask(run, ncu, collection))
        )
    if metrics.names:
        cache.mkdir(parents=True, exist_ok=True)
        files.replace(file, json.dumps({"version": metrics.version, "names": sorted(metrics.names)}))
    return metrics


def listed_metrics(text: str) -> set[str]:
    """Names at the start of the lines of a query."""
    return {match[1] for line in text.splitlines() if (match := _NAME.match(line))}


def known_and_absent(wanted: Iterable[str], chip_names: frozenset[str]) -> tuple[list[str], list[str]]:
    """Names to ask for and names that this chip does not have.

    A list that lacks most of them is no list of this chip's names: then all are asked for, and the answer tells.
    """
    names_wanted = list(wanted)
    asked = [name for name in names_wanted if name.split(".", 1)[0] in chip_names | DERIVED]
    if len(asked) < CREDIBLE * len(names_wanted):
        return names_wanted, []
    return asked, [name for name in names_wanted if name not in asked]


def _identity(ncu: str, capability: str) -> str:
    """What names this very program and chip: another version is another file, or the same with another time."""
    path = Path(ncu)
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return hashlib.sha256(json.dumps([ncu, stamp, capability, COLLECTIONS]).encode()).hexdigest()[:16]


def _version(run: Run, ncu: str) -> str:
    match = re.search(r"Version ([\d.]+)", run(version_command(ncu), QUERY_S).output)
    return match[1] if match else "unknown version"


def _ask(run: Run, ncu: str, collection: str) -> set[str]:
    done = run(query_command(ncu, collection, None), QUERY_S)
    return listed_metrics(done.output) if done.status == 0 else set()


class Run(Protocol):
    """Runs a command in the subject's folder and gives its status and output (standard output and error in one)."""

    def __call__(self, command: list[str], limit_s: float) -> Done:
        """Never raises for what the command does."""
        ...
