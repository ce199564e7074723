"""The GPUs that nvidia-smi names, and which of them a process here would use. Knows no limits and sets none."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from engine.errors import ToolchainError

FIELDS = "index,name,uuid,driver_version,compute_cap,memory.total"
LIMIT_S = 30


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU; `capability` as in `9.0`, `memory_mib` of device memory."""

    index: int
    name: str
    uuid: str
    driver: str
    capability: str
    memory_mib: int

    @property
    def architecture(self) -> str:
        """As compilers call it: `sm_90`."""
        return f"sm_{self.capability.replace('.', '')}"


def found() -> list[Device]:
    """Every GPU; none where nvidia-smi is missing or sees none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return []
    return parsed(done.stdout) if done.returncode == 0 else []


def parsed(text: str) -> list[Device]:
    """The lines of `nvidia-smi --query-gpu`."""
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    return [
        Device(int(row[0]), row[1], row[2], row[3], row[4], int(row[5]) if row[5].isdigit() else 0)
        for row in rows
        if len(row) == 6 and row[0].isdigit()
    ]


def first() -> Device:
    """The device that a process sees first.

    Raises:
        ToolchainError: there is none.
    """
    chosen = visible(found(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    if not chosen:
        raise ToolchainError("no NVIDIA GPU is visible here: nvidia-smi names none that CUDA_VISIBLE_DEVICES allows")
    return chosen[0]


def visible(devices: list[Device], allowed: str | None) -> list[Device]:
    """Those that CUDA_VISIBLE_DEVICES lets a process see, in its order."""
    if allowed is None:
        return devices
    words = [word.strip() for word in allowed.split(",") if word.strip()]
    matching = [next((d for d in devices if word == str(d.index) or d.uuid.startswith(word)), None) for word in words]
    seen = []
    for device in matching:  # as the driver does: the list ends at the first name that fits nothing
        if device is None:
            break
        seen.append(device)
    return seen
