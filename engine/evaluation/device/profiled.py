"""Runs the profiler on a staged candidate, behind as many walls as it works with. Knows no metric."""

from __future__ import annotations

import dataclasses
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.errors import ProfileUnavailable
from engine.evaluation.bench import Case
from engine.evaluation.device.staged import Staged
from engine.profiling.device.ceilings import DeviceCeilings
from engine.profiling.device.profile import Subject
from engine.profiling.device.profile import profile as profile_subject
from engine.profiling.device.results import WITHOUT_COUNTERS
from engine.sandbox import Done, Isolation
from engine.sandbox.probe import DEMANDED
from storage import codec
from storage.records import HardwareLimit, ProfileResult

WALLS = "walls"
PARAMETERS = Path("/proc/driver/nvidia/params")


def profile(case: Case, staged: Staged) -> dict[str, Any]:
    """The result as plain JSON, or `failure`."""
    details = case.details
    subject = Subject(
        staged.folder,
        str(details["kernel_hash"]),
        codec.from_plain(DeviceCeilings, details["ceilings"]),
        codec.from_plain(HardwareLimit, details["limit"]),
        Path(details["cache"]),
    )
    result: ProfileResult | None = None
    why = ""
    rungs = ladder(case.walls, may_step_down=_may_step_down(case), is_for_administrators=_is_for_administrators())
    for walls in rungs:

        def run(command: list[str], limit_s: float, walls: Isolation = walls) -> Done:
            return staged.run(command, limit_s, walls)

        try:
            found = profile_subject(subject, str(details["ncu"]) or None, run)
        except ProfileUnavailable as error:
            why = why or str(error)
            continue
        stood = ", ".join(name for name, stands, _ in walls.described() if stands)
        found = dataclasses.replace(found, evidence={**found.evidence, WALLS: stood})
        if found.evidence.get("way") != WITHOUT_COUNTERS:
            return dict(codec.to_plain(found))
        result = result or found
    return dict(codec.to_plain(result)) if result else {"failure": why}


def ladder(walls: Isolation, *, may_step_down: bool, is_for_administrators: bool) -> tuple[Isolation, ...]:
    """The walls to try, strongest first, down to limits alone: hardware counters may ask for privileges.

    Without leave to step down there is one rung. A user number of its own gets no counter that the driver keeps for
    administrators, so that rung is left out then.
    """
    if not may_step_down or not (walls.has_room or walls.has_own_user):
        return (walls,)
    open_room = dataclasses.replace(
        walls, has_own_user=False, needs_user_namespace=False, has_seccomp=False, landlock=0
    )
    weaker = (open_room, Isolation(devices=walls.devices))
    return weaker if is_for_administrators else (walls, *weaker)


def _may_step_down(case: Case) -> bool:
    """Fewer walls help a profiler, where there is one, and only where nobody asks for all of them."""
    return bool(case.details["ncu"]) and os.environ.get(DEMANDED) != "full"


def _is_for_administrators() -> bool:
    """Whether the driver keeps its counters from ordinary users."""
    with suppress(OSError):
        return "RmProfilingAdminOnly: 1" in PARAMETERS.read_text()
    return False
