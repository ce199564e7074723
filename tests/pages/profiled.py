"""Sample runs whose profiles are what Nsight Compute really gave on an H200."""

from __future__ import annotations

import json
from pathlib import Path

from engine.evaluator.profiling.device.profile import profile
from engine.evaluator.sandbox.child import Done
from storage import codec
from storage.results.profile_results import ProfileResult
from storage.run.folder import RunFolder
from tests import samples
from tests.engine.evaluator.profiling.sessions import NCU, REFUSAL, RecordedRun, recorded, subject
from tests.engine.evaluator.profiling.test_device_profile import TRACE


def counted(folder: Path) -> ProfileResult:
    """With hardware counters."""
    return profile(
        subject(folder), NCU, RecordedRun(folder, Done(0, recorded("session.txt")), source=recorded("source_lines.csv"))
    )


def watched(folder: Path) -> ProfileResult:
    """Where they are refused."""
    return profile(subject(folder), NCU, RecordedRun(folder, Done(1, REFUSAL), trace=TRACE))


def write_run(root: Path, run_id: str, found: ProfileResult, depths: int = 3) -> tuple[RunFolder, list[str]]:
    """A run in which every profile is this one; its folder and the kernels that have a profile."""
    folder = samples.write_run(root, run_id, depths=depths)
    lines, names = [], []
    for line in map(json.loads, folder.journal_file.read_text().splitlines()):
        if line["kind"] == "Profiled":
            names.append(line["event"]["candidate_id"])
            line["event"]["result"] = codec.to_plain(found)
        lines.append(json.dumps(line))
    folder.journal_file.write_text("\n".join(lines) + "\n")
    return folder, names
