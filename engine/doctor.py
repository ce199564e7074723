"""What this machine has and lacks, each with what to do about it. Starts no engine and imports no torch."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.errors import ToolchainError
from engine.evaluator.machine import devices, lease
from engine.evaluator.machine.devices import Device
from engine.evaluator.profiling.device import nsight
from engine.evaluator.sandbox import Isolation
from engine.evaluator.sandbox.child import Done
from engine.evaluator.toolchains.requirements import Checked, checks
from engine.search import daily
from engine.search.llm import environment
from storage import codec, files
from storage.home import home
from storage.run import saved_models

ALLOW_NAMESPACES = (
    "a kernel 5.13 or later (6.12 for every part of the sandbox) with user namespaces allowed: on Ubuntu `sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0`, in a container --cap-add SYS_ADMIN --security-opt "
    "seccomp=unconfined; with TILEWRIGHT_ISOLATION=full nothing is judged without them"
)
TRY_BY_HAND = "run `python -m engine.evaluator.sandbox.probe` by hand to see where it stops"
SANDBOX_S = 120.0
LEAST_FREE_GB = 5.0
DASHBOARD = ("streamlit", "duckdb", "plotly", "watchdog", "openai")
BUILDING, DEVICE, SANDBOX, RUNS = "CPU toolchain", "GPU", "Sandbox", "Runs and models"


def findings() -> dict[str, list[Checked]]:
    """Everything worth knowing before a run, by section, required things first."""
    device = device_checks()
    return {
        BUILDING: checks(has_gpu=is_device_ready(device)),
        DEVICE: device,
        SANDBOX: sandbox_checks(),
        RUNS: [_home(), _space(), *_spent(), _endpoint(), _dashboard(), _versions()],
    }


def sandbox_checks(limit_s: float = SANDBOX_S) -> list[Checked]:
    """What stands between a generated kernel and this machine, raised and tried in a process of its own."""
    command = [sys.executable, "-m", "engine.evaluator.sandbox.probe"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        detail = f"the trial of the sandbox did not end within {limit_s:g} s"
        return [Checked("isolation", False, detail, TRY_BY_HAND, is_required=True)]
    if tried.returncode != 0:
        reason = tried.stderr.strip().splitlines()[-1:] or [f"its trial ended with status {tried.returncode}"]
        return [Checked("isolation", False, reason[0], ALLOW_NAMESPACES, is_required=True)]
    isolation: Isolation = codec.from_plain(Isolation, json.loads(tried.stdout))
    return [
        Checked(name, stands, detail, "" if stands else ALLOW_NAMESPACES)
        for name, stands, detail in isolation.described()
    ]


def is_ready(sections: Mapping[str, Sequence[Checked]]) -> bool:
    """True when a run with recorded replies can work here."""
    return all(check.is_ok for section in sections.values() for check in section if check.is_required)


def summary(sections: Mapping[str, Sequence[Checked]]) -> str:
    """The report in one line: the CPU toolchain, the GPU, the model, and how much that is optional is missing."""
    lines = [check for section in sections.values() for check in section]
    broken = [check.name for check in lines if check.is_required and not check.is_ok]
    cpu = f"not ready (missing: {', '.join(broken)})" if broken else "ready"
    gpus = [check for check in sections[DEVICE] if check.name.startswith("GPU") and "counters" not in check.name]
    devices = "; ".join(gpu.detail.split(",")[0].removesuffix("; optional") for gpu in gpus if gpu.is_ok)
    absent = sum(not check.is_ok and not check.is_required for check in lines)
    rest = f" Optional parts missing: {absent}; the last column says how to get them." if absent else ""
    return f"CPU toolchain {cpu}. GPU: {devices or gpus[0].detail.removesuffix('; optional')}.{rest}"


def print_findings(console: Console) -> bool:
    """Print the report, a table per section and a summary; True when a run with recorded replies can work here."""
    sections = findings()
    for section, lines in sections.items():
        _print(console, section, lines)
        console.print()
    console.print(escape(summary(sections)), highlight=False)
    return is_ready(sections)


def print_json() -> bool:
    """Print the report as one line of JSON, a list of findings with their sections; True when a run with recorded
    replies can work here."""
    sections = findings()
    print(
        json.dumps([{"section": section, **check._asdict()} for section, lines in sections.items() for check in lines])
    )
    return is_ready(sections)


def _print(console: Console, subject: str, checks: Sequence[Checked]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", subject, "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        mark = "[green]ok[/]" if check.is_ok else "[red]missing[/]" if check.is_required else "[yellow]-[/]"
        table.add_row(mark, *map(escape, (check.name, check.detail, check.remedy)))
    console.print(table, highlight=False)


def _home() -> Checked:
    folder = home()
    is_writable = os.access(_existing(folder), os.W_OK)
    remedy = "" if is_writable else "set TILEWRIGHT_HOME to a folder that you may write to"
    return Checked("runs folder", is_writable, str(folder), remedy)


def _space() -> Checked:
    usage = shutil.disk_usage(_existing(home()))
    free_gb = usage.free / 1e9
    remedy = "" if free_gb >= LEAST_FREE_GB else "free some space, or set TILEWRIGHT_HOME to a larger disk"
    return Checked("disk space", not remedy, f"{free_gb:.0f} GB free of {usage.total / 1e9:.0f} GB", remedy)


def _spent() -> list[Checked]:
    """Only told where something is wrong with it."""
    try:
        unread = daily.Ledger(home()).damage()
    except OSError as error:
        unread = files.explained(error)
    return [Checked("spent today", False, unread, "correct or remove those lines")] if unread else []


def _existing(folder: Path) -> Path:
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


def _endpoint() -> Checked:
    if environment.is_configured():
        where = without_secrets(os.environ.get("OPENAI_BASE_URL", "")) or "OpenAI"
        return Checked("model endpoint", True, f"{environment.configured_model()} at {where}", "")
    if saved := saved_models.readable():
        return Checked("model endpoint", True, f"saved: {', '.join(entry.name for entry in saved)}", "")
    remedy = "save one on the page Models, or set OPENAI_API_KEY, and OPENAI_BASE_URL for another provider"
    return Checked("model endpoint", False, "not set; runs use recorded replies; optional", remedy)


def without_secrets(address: str) -> str:
    """An address without user, password and query, any of which may be a key."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid address"
    if not parts.hostname:
        return f"{parts.scheme}:…" if parts.scheme else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def _dashboard() -> Checked:
    versions = {name: _version(name) for name in DASHBOARD}
    missing = [name for name, version in versions.items() if not version]
    detail = ", ".join(f"{name} {version}" for name, version in versions.items() if version) or "none"
    remedy = f"for the dashboard and live models: pip install {' '.join(missing)}" if missing else ""
    return Checked("dashboard packages", not missing, f"{detail}{'; optional' if missing else ''}", remedy)


def _versions() -> Checked:
    return Checked("versions", True, f"Python {platform.python_version()}, {platform.platform(terse=True)}", "")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


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


def device_checks() -> list[Checked]:
    """Every line; all are optional, for the cpu toolchain needs none of them."""
    present, ncu = devices.found(), nsight.find_ncu()
    try:
        seen, why = devices.visible(), ""
    except ToolchainError as error:
        seen, why = [], str(error)
    return [*gpus(present, seen, why), _compiler(), _profiler(ncu), _counters(seen, ncu), *map(_tool, TOOLS)]


def is_device_ready(checks: Sequence[Checked]) -> bool:
    """Whether the cuda toolchain has a device and a compiler here, from the lines above."""
    names = {check.name for check in checks if check.is_ok}
    return "CUDA compiler" in names and any(re.fullmatch(r"GPU (part )?\d+", name) for name in names)


def gpus(present: Sequence[Device], seen: Sequence[Device], why: str = "") -> list[Checked]:
    """One line per GPU with its driver. `seen` are those that a process started here uses; `why` there are none."""
    if not present:
        return [Checked("GPU", False, "none found (nvidia-smi returned no device); optional", INSTALL_DRIVER)]
    names, present_ids = {device.uuid for device in seen}, {device.uuid for device in present}
    parts = [device for device in seen if device.uuid not in present_ids]
    hidden = why or f"CUDA_VISIBLE_DEVICES hides it{', or it is divided into the parts below' if parts else ''}"
    whole = [
        Checked(f"GPU {device.index}", device.uuid in names, _described(device), "" if device.uuid in names else hidden)
        for device in present
    ]
    return [*whole, *(Checked(f"GPU part {device.index}", True, _described(device), "") for device in parts)]


def _described(device: Device) -> str:
    size = f"{device.memory_mib / 1024:.0f} GiB"
    return f"{device.name}, {size}, compute capability {device.capability}, driver {device.driver}"


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
    compiler = next((path for path in places if path and os.access(path, os.X_OK)), None)
    if compiler is None:
        return Checked("CUDA compiler", False, "nvcc not found; optional", INSTALL_NVCC)
    version = re.search(r"release [\d.]+, V([\d.]+)", _run([compiler, "--version"]).output)
    return Checked(
        "CUDA compiler",
        version is not None,
        f"{compiler} {version[1] if version else ''}",
        "" if version else INSTALL_NVCC,
    )


def _profiler(ncu: str | None) -> Checked:
    if ncu is None:
        return Checked("Nsight Compute", False, "ncu not found; optional", INSTALL_NCU)
    version = re.search(r"Version ([\d.]+)", _run(nsight.version_command(ncu)).output)
    return Checked(
        "Nsight Compute", version is not None, f"{ncu} {version[1] if version else ''}", "" if version else INSTALL_NCU
    )


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
        return counted(_run(words, PROBE_S))


def _tool(name: str) -> Checked:
    beside = [Path(path) / name for path in ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")]
    path = shutil.which(name) or next((str(path) for path in beside if path.exists()), None)
    return Checked(name, True, path, "") if path else Checked(name, False, "not installed; optional", TOOLS[name])


def _run(words: list[str], limit_s: float = TOLD_S) -> Done:
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return Done(-9, "", is_timeout=True)
    except OSError as error:
        return Done(127, str(error))
    return Done(done.returncode, done.stdout)
