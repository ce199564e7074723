"""What this machine offers for kernels on a GPU: devices, driver, compiler, profiler, and whether it may count."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.errors import ToolchainError
from engine.machine import devices, lease
from engine.machine.devices import Device
from engine.profiling.device import nsight
from engine.sandbox.program import Done
from engine.toolchains.requirements import Checked

INSTALL_DRIVER = "for kernels on a GPU: a machine with an NVIDIA GPU of compute capability 8.0 or later, and its driver"
INSTALL_NVCC = "install the CUDA toolkit 12.8 or later and put nvcc on PATH (or set CUDA_HOME)"
INSTALL_NCU = (
    "install Nsight Compute (package cuda-nsight-compute) and put ncu on PATH; profiles then count in hardware"
)
TOOLS = {
    "compute-sanitizer": "part of the CUDA toolkit; finds the bad access of a crashing kernel",
    "cuobjdump": "part of the CUDA toolkit; tells registers and spills",
}
PROBE = "import torch; torch.zeros(1, device='cuda'); torch.cuda.synchronize()"
PROBE_S = 90.0
TOLD_S = 20.0


def checks() -> list[Checked]:
    """Every line; all are optional, for the cpu toolchain needs none of them."""
    here, ncu = devices.found(), nsight.find_ncu()
    try:
        seen, why = devices.visible(), ""
    except ToolchainError as error:
        seen, why = [], str(error)
    return [*gpus(here, seen, why), _compiler(), _profiler(ncu), _counters(seen, ncu), *map(_tool, TOOLS)]


def is_ready(found: Sequence[Checked]) -> bool:
    """Whether the cuda toolchain has a device and a compiler here, from the lines above."""
    names = {one.name for one in found if one.is_ok}
    return "CUDA compiler" in names and any(re.fullmatch(r"GPU (part )?\d+", name) for name in names)


def gpus(here: Sequence[Device], seen: Sequence[Device], why: str = "") -> list[Checked]:
    """One line per GPU with its driver. `seen` are those that a process started here uses; `why` there are none."""
    if not here:
        return [Checked("GPU", False, "none found (nvidia-smi returned no device); optional", INSTALL_DRIVER)]
    names, known = {one.uuid for one in seen}, {one.uuid for one in here}
    parts = [one for one in seen if one.uuid not in known]
    hidden = why or f"CUDA_VISIBLE_DEVICES hides it{', or it is divided into the parts below' if parts else ''}"
    whole = [
        Checked(f"GPU {one.index}", one.uuid in names, _described(one), "" if one.uuid in names else hidden)
        for one in here
    ]
    return [*whole, *(Checked(f"GPU part {one.index}", True, _described(one), "") for one in parts)]


def _described(one: Device) -> str:
    size = f"{one.memory_mib / 1024:.0f} GiB"
    return f"{one.name}, {size}, compute capability {one.capability}, driver {one.driver}"


def counted(done: Done) -> Checked:
    """What a trial of the profiler says about hardware counters."""
    reason = nsight.why_not(done, has_report=True, limit_s=PROBE_S)
    if not reason:
        return Checked("GPU counters", True, "allowed: a trial kernel was counted", "")
    remedy = nsight.ALLOW_COUNTERS if nsight.REFUSED in reason else "run `ncu` by hand on a small program to see why"
    return Checked("GPU counters", False, f"{reason}; optional", remedy)


def _compiler() -> Checked:
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in homes if home)]
    found = next((place for place in places if place and os.access(place, os.X_OK)), None)
    if found is None:
        return Checked("CUDA compiler", False, "nvcc not found; optional", INSTALL_NVCC)
    told = re.search(r"release [\d.]+, V([\d.]+)", _told([found, "--version"]).output)
    return Checked(
        "CUDA compiler", told is not None, f"{found} {told[1] if told else ''}", "" if told else INSTALL_NVCC
    )


def _profiler(ncu: str | None) -> Checked:
    if ncu is None:
        return Checked("Nsight Compute", False, "ncu not found; optional", INSTALL_NCU)
    told = re.search(r"Version ([\d.]+)", _told(nsight.version_command(ncu)).output)
    return Checked("Nsight Compute", told is not None, f"{ncu} {told[1] if told else ''}", "" if told else INSTALL_NCU)


def _counters(seen: Sequence[Device], ncu: str | None) -> Checked:
    """Really profile one launch: what a setting promises is not what a container allows."""
    if not seen or ncu is None:
        missing = "GPU" if not seen else "profiler"
        return Checked("GPU counters", False, f"not tried: no {missing}; optional", "")
    program = [sys.executable, "-c", PROBE]
    words = [ncu, "--clock-control", "none", "--launch-count", "1", "--metrics", "dram__bytes_read.sum", *program]
    with lease.held_if_free(*lease.of_host(seen[0].lease)) as is_free:
        if not is_free:
            return Checked("GPU counters", False, "not tried: a run is timing on the GPU right now; optional", "")
        return counted(_told(words, PROBE_S))


def _tool(name: str) -> Checked:
    beside = [Path(path) / name for path in ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")]
    found = shutil.which(name) or next((str(path) for path in beside if path.exists()), None)
    return Checked(name, True, found, "") if found else Checked(name, False, "not installed; optional", TOOLS[name])


def _told(words: list[str], limit_s: float = TOLD_S) -> Done:
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return Done(-9, "", is_timeout=True)
    except OSError as error:
        return Done(127, str(error))
    return Done(done.returncode, done.stdout)
