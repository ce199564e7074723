"""A profiler that answers with what the real one printed on an H200, recorded; and the ceilings measured there."""

from __future__ import annotations

import json
from pathlib import Path

from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.profiling.device.profile import Subject
from engine.evaluator.sandbox.child import Done
from storage.results.hardware_limit import HardwareLimit

RECORDED = Path(__file__).parent / "recorded"
NCU = "/opt/nvidia/nsight-compute/ncu"
H200 = DeviceCeilings(
    device="NVIDIA H200", uuid="GPU-ebfee809", driver="580.159.04", capability="9.0", bandwidth_gb_s=4300.7,
    fp32_gflop_s=65971.0, tf32_gflop_s=453252.0, bf16_gflop_s=857342.0, l2_bytes=62914560, sm_count=132,
    copy_gb_s={"1048576": 3594.3, "67108864": 8030.3, "268435456": 4298.9, "8589934592": 4300.7},
)  # fmt: skip
# A product of two 1024 x 1024 matrices.
LIMIT = HardwareLimit("NVIDIA H200", 4300.7, 65971.0, 12_582_912, 2_147_483_648)
REFUSAL = (
    "==PROF== Connected to process 11 (python3)\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to "
    "access NVIDIA GPU Performance Counters on the target device 0.\ntarget: done\n"
)


def recorded(name: str) -> str:
    """One recorded output."""
    return (RECORDED / name).read_text()


def subject(folder: Path) -> Subject:
    """A prepared folder, as far as a profiler that only answers needs one."""
    return Subject(folder, "hash", H200, LIMIT, folder / "cache")


class RecordedRun:
    """Answers as the real programs did. `session` is what profiling prints; the watched program writes `trace`."""

    def __init__(
        self, folder: Path, session: Done, raw: str = "two_launches_raw.csv", trace: str = "", source: str = ""
    ) -> None:
        self.folder = folder
        self.session = session
        self.raw = raw
        self.trace = trace
        self.source = source
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str], limit_s: float) -> Done:
        """What the program that the command names would answer."""
        self.commands.append(command)
        if "--query-metrics" in command:
            return Done(0, recorded(f"known_{command[command.index('--query-metrics-collection') + 1]}.txt"))
        if "--version" in command:
            return Done(0, recorded("version.txt"))
        if "source" in command:
            return Done(0, self.source)
        if "--import" in command:
            return Done(0, recorded(self.raw if "raw" in command else "two_launches_details.csv"))
        return self._watched() if command[-1] == "watch" else self._profiled()

    def _profiled(self) -> Done:
        if self.session.status == 0 and "Report:" in self.session.output:
            (self.folder / "report.ncu-rep").write_bytes(b"NVR\0")
        return self.session

    def _watched(self) -> Done:
        if not self.trace:
            return Done(1, "RuntimeError: CUDA error: an illegal memory access was encountered")
        (self.folder / "trace.json").write_text(self.trace)
        (self.folder / "events.json").write_text(json.dumps({"latency_ms": 0.44, "calls": 20}))
        return Done(0, "target: done")
