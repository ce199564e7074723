"""One Nsight Compute session around a prepared candidate: run it and read its pages, or say why there are none."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.profiling.device import command, findings, known, pages
from engine.profiling.device.pages import Launch
from engine.profiling.device.running import Run
from engine.sandbox.program import Done
from storage import counters
from storage.records import Advice

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

    @property
    def is_cut(self) -> bool:
        """True when the candidate may have launched more than was profiled."""
        return len(self.launches) >= command.MAX_LAUNCHES


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why counters could not be had."""

    reason: str
    said: str = ""


def wanted() -> list[str]:
    """Every counter asked for, in the order of the screen."""
    names = [one.name for one in counters.COUNTERS]
    names += [counters.stall_counter(reason) for reason in counters.STALLS]
    names += [counters.operation_counter(kind) for kind in counters.OPERATIONS]
    return names + [f"{counters.TENSOR_START}{kind}.sum" for kind in TENSOR_KINDS]


def collect(
    folder: Path, ncu: str, run: Run, capability: str, cache: Path, limit_s: float, python: str
) -> Collected | Nothing:
    """Profile one call of the candidate prepared in `folder`."""
    knows = known.names(run, ncu, capability, cache)
    asked, absent = known.split(wanted(), knows.names)
    if knows.names and counters.DRAM in absent:
        asked.append(counters.DRAM_OLD)
    report = folder / f"{command.REPORT}.ncu-rep"
    report.unlink(missing_ok=True)  # an earlier try may have left a part of one
    done = run(command.collect(ncu, asked, command.target(folder, "profile", python)), limit_s)
    if failure := why_not(done, report.exists(), limit_s):
        return Nothing(failure, done.output[-4000:])
    raw, details = (run(command.page(ncu, report, name), PAGE_S) for name in ("raw", "details"))
    launches = pages.launches(raw.output)
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
        findings.ranked(pages.advice(details.output), launches),
        missing,
        text,
        knows.version,
        passes,
        kept,
        size,
    )


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
    return (naming or lines or ["it said nothing"])[-1][:400]


def _text(done: Done, raw: Done, details: Done) -> str:
    """Everything the profiler printed, for people; each part is cut to what a page can show."""
    parts = {"session": done.output, "raw page": raw.output, "details page": details.output}
    return "\n".join(
        f"# {name}{' (cut)' if len(said) > MAX_PAGE else ''}\n{said[:MAX_PAGE]}" for name, said in parts.items()
    )
