"""A candidate laid out for a program that is no worker, profiler or sanitizer, and running those. Knows no metric."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import sandbox
from engine.errors import ProfileUnavailable
from engine.evaluator.worker_pair import EvaluationRequest, WorkerPair
from engine.profiling.device import nsight
from engine.profiling.device.ceilings import DeviceCeilings
from engine.profiling.device.profile import WITHOUT_COUNTERS, Subject
from engine.profiling.device.profile import profile as profile_subject
from engine.sandbox import Done, Isolation
from engine.sandbox.probe import DEMANDED
from storage import codec
from storage.records import HardwareLimit, ProfileResult

WARM_UP_CALLS = 3
WALLS = "walls"
PARAMETERS = Path("/proc/driver/nvidia/params")
SANITIZER_S = 60.0
MOST_ERRORS = 3
MOST_LINES = 12
_MARK = re.compile(r"^=+ ?")
_NOISE = re.compile(r"^(Host Frame|Saved host backtrace|in /|COMPUTE-SANITIZER|Program hit|ERROR SUMMARY|LEAK)")


@dataclass(frozen=True, slots=True)
class Staged:
    """A folder as `engine.profiling.device.target` wants it, and where the candidate's libraries are."""

    folder: Path
    libraries: Path

    @classmethod
    def of(cls, workers: WorkerPair, folder: Path) -> Staged:
        """From workers that have imported the candidate."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "candidate.py").write_text(workers.request.source)
        (folder / "task.py").write_text(workers.request.task_source)
        (folder / "builds.json").write_text(json.dumps(workers.answers))
        (folder / "request.json").write_text(json.dumps({"seed": workers.call_seed, "calls": WARM_UP_CALLS}))
        return cls(folder, workers.libraries)

    def run(self, words: list[str], limit_s: float, isolation: Isolation) -> Done:
        """Run a program in the folder, in a sandbox."""
        readable = (*nsight.readable_trees(words[0]), self.libraries)
        return sandbox.run(words, self.folder, limit_s, isolation, readable)


def profile(request: EvaluationRequest, staged: Staged) -> dict[str, Any]:
    """The result as plain JSON, or `failure`."""
    details = request.details
    subject = Subject(
        staged.folder,
        str(details["kernel_hash"]),
        codec.from_plain(DeviceCeilings, details["ceilings"]),
        codec.from_plain(HardwareLimit, details["limit"]),
        Path(details["cache"]),
    )
    result: ProfileResult | None = None
    why = ""
    rungs = ladder(
        request.isolation, may_step_down=_may_step_down(request), is_for_administrators=_is_for_administrators()
    )
    for isolation in rungs:

        def run(command: list[str], limit_s: float, isolation: Isolation = isolation) -> Done:
            return staged.run(command, limit_s, isolation)

        try:
            found = profile_subject(subject, str(details["ncu"]) or None, run)
        except ProfileUnavailable as error:
            why = why or str(error)
            continue
        stood = ", ".join(name for name, stands, _ in isolation.described() if stands)
        found = dataclasses.replace(found, evidence={**found.evidence, WALLS: stood})
        if found.evidence.get("way") != WITHOUT_COUNTERS:
            return dict(codec.to_plain(found))
        result = result or found
    return dict(codec.to_plain(result)) if result else {"failure": why}


def ladder(isolation: Isolation, *, may_step_down: bool, is_for_administrators: bool) -> tuple[Isolation, ...]:
    """The isolation to try, strongest first, down to limits alone: hardware counters may ask for privileges.

    Without leave to step down there is one rung. A user number of its own gets no counter that the driver keeps for
    administrators, so that rung is left out then.
    """
    if not may_step_down or not (isolation.has_namespaces or isolation.has_own_user):
        return (isolation,)
    open_room = dataclasses.replace(
        isolation, has_own_user=False, needs_user_namespace=False, has_seccomp=False, landlock=0
    )
    weaker = (open_room, Isolation(devices=isolation.devices))
    return weaker if is_for_administrators else (isolation, *weaker)


def _may_step_down(request: EvaluationRequest) -> bool:
    """Less isolation helps a profiler, where there is one, and only where nobody asks for all of it."""
    return bool(request.details["ncu"]) and os.environ.get(DEMANDED) != "full"


def _is_for_administrators() -> bool:
    """Whether the driver keeps its counters from ordinary users."""
    with suppress(OSError):
        return "RmProfilingAdminOnly: 1" in PARAMETERS.read_text()
    return False


def sanitize(request: EvaluationRequest, staged: Staged) -> str:
    """Run one call under memcheck and tell its first findings; an empty text when there are none."""
    tool = str(request.details.get("sanitizer", ""))
    if not tool:
        return ""
    # Tensors in one cached block are one allocation to the tool: without the cache it sees where each ends.
    words = ["/usr/bin/env", "PYTORCH_NO_CUDA_MEMORY_CACHING=1", tool, "--tool", "memcheck", "--show-backtrace", "no"]
    words += ["--print-limit", str(MOST_ERRORS), *nsight.target_command(staged.folder, "profile")]
    return sanitizer_findings(staged.run(words, SANITIZER_S, request.isolation).output)


def sanitizer_findings(output: str) -> str:
    """The tool's first errors, without its banners and host frames."""
    lines = [_MARK.sub("", line).rstrip() for line in output.splitlines() if line.startswith("=====")]
    told = [line for line in lines if line.strip() and not _NOISE.match(line.strip())]
    return "\n".join(told[:MOST_LINES])
