"""A device's own limits, measured once and kept per device and driver: bandwidth by working set, arithmetic rates.

Other work on the device can only make a limit look lower, so of all measurements the highest is kept. Clocks are read
by nobody and set by nobody. Imports no torch; the child that does is
`python -m engine.evaluator.profiling.device.ceilings`.
"""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.errors import ToolchainError
from engine.evaluator.machine.devices import Device
from engine.evaluator.machine.turns import Turn
from storage import files
from storage.results.hardware_limit import FP8, DeviceFacts

SOURCE = Path(__file__).with_name("ceilings.cu")
ROOT = Path(__file__).resolve().parents[4]
LIMIT_S = 180
FRESH_S = 3600.0
"""What was measured so lately is not measured again for one more run: that holds the device for about six seconds."""
RATES = ("fp32_gflop_s", "tf32_gflop_s", "bf16_gflop_s", "fp8_gflop_s", "bandwidth_gb_s")
FIRST_WITH_FLOAT8 = (8, 9)
SIZES = [1 << power for power in range(20, 34)]
# cudaDeviceAttr: see cuda_runtime_api.h.
ATTRIBUTES = {
    "sm_count": 16, "l2_bytes": 38, "threads": 39, "shared_bytes": 81, "registers": 82, "block_shared_bytes": 97,
    "blocks": 106, "reserved_shared_bytes": 111, "has_clusters": 120,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeviceCeilings:
    """What one device can do. Rates are in 1e9 per second; `copy_gb_s` maps a working set in bytes to read plus written
    gigabytes per second, `bandwidth_gb_s` is that of sets far beyond the caches. The rest is per multiprocessor;
    `block_shared_bytes` is the most that one block may ask for, `has_clusters` 1 where blocks launch in clusters, of at
    most `cluster_blocks`.

    `note` says which rate was measured in another way than usual.
    """

    device: str
    uuid: str
    driver: str
    capability: str
    bandwidth_gb_s: float
    fp32_gflop_s: float
    tf32_gflop_s: float
    bf16_gflop_s: float
    l2_bytes: int
    sm_count: int
    registers: int = 65536
    shared_bytes: int = 233472
    reserved_shared_bytes: int = 1024
    warps: int = 64
    blocks: int = 32
    block_shared_bytes: int = 0
    has_clusters: int = 0
    cluster_blocks: int = 0
    fp8_gflop_s: float = 0.0
    copy_gb_s: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def bandwidth_at(self, working_set: int) -> float:
        """The best rate that a set of so many bytes or more can see: a small one may lie in the second-level cache."""
        sizes = sorted(map(int, self.copy_gb_s))
        fitting = [size for size in sizes if size <= working_set] or sizes[:1]
        return max((self.copy_gb_s[str(size)] for size in sizes if size >= fitting[-1]), default=self.bandwidth_gb_s)

    def by_name(self) -> dict[str, float]:
        """Rates in base units under the names that a profile's record uses."""
        return {"memory": self.bandwidth_gb_s * 1e9} | {unit: rate * 1e9 for unit, rate in self._rates().items()}

    def _rates(self) -> dict[str, float]:
        rates = {"fp32": self.fp32_gflop_s, "tf32": self.tf32_gflop_s, "bf16": self.bf16_gflop_s, FP8: self.fp8_gflop_s}
        return {unit: rate for unit, rate in rates.items() if rate > 0}

    def facts(self, architecture: str) -> DeviceFacts:
        """What a model is told of it; `architecture` as compilers call it."""
        return DeviceFacts(
            architecture, self.sm_count, self.bandwidth_gb_s, self._rates(), l2_bytes=self.l2_bytes,
            shared_bytes=self.shared_bytes, block_shared_bytes=self.block_shared_bytes, registers=self.registers,
            warps=self.warps, blocks=self.blocks, has_clusters=self.has_clusters > 0,
            cluster_blocks=max(self.cluster_blocks, 0),
        )  # fmt: skip


def measured(
    device: Device,
    nvcc: str,
    cache: Path,
    turn: Turn,
    *,
    python: str = sys.executable,
    again: bool = False,
    variables: Mapping[str, str] | None = None,
) -> DeviceCeilings:
    """A device's ceilings from the cache; measured now, alone inside `turn`, if there are none, or when asked `again`
    and the last ones are an hour old.

    `variables` choose the device for the child, where it is not the first that a process sees.

    Raises:
        ToolchainError: measuring fails.
    """
    key_parts = [device.uuid, device.driver, SOURCE.read_text(), ATTRIBUTES]
    file = cache / f"device-{hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:16]}.json"
    old = read(file)
    if old is not None and not (again and time.time() - file.stat().st_mtime > FRESH_S):
        return old
    with _built(device, nvcc) as library, turn():
        ceilings = highest(_measure(device, library, python, variables or {}), old)
    cache.mkdir(parents=True, exist_ok=True)
    files.replace(file, json.dumps(asdict(ceilings), indent=1))
    return ceilings


def read(file: Path) -> DeviceCeilings | None:
    """Kept ceilings; None when there are none, or they are another version's."""
    try:
        return DeviceCeilings(**json.loads(file.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def highest(new: DeviceCeilings, old: DeviceCeilings | None) -> DeviceCeilings:
    """The better of two measurements, rate by rate."""
    if old is None:
        return new
    rates = {name: max(getattr(new, name), getattr(old, name)) for name in RATES}
    copies = {size: max(rate, old.copy_gb_s.get(size, 0.0)) for size, rate in new.copy_gb_s.items()}
    return replace(new, **rates, copy_gb_s=copies)


@contextmanager
def _built(device: Device, nvcc: str) -> Iterator[Path]:
    """The measuring library, for as long as it is needed; the device is not."""
    with tempfile.TemporaryDirectory(prefix="tilewright.ceilings.") as folder:
        library = Path(folder) / "ceilings.so"
        architecture = f"-arch=sm_{device.capability.replace('.', '')}"
        with _told():
            build = [nvcc, "-O3", architecture, "-Xcompiler", "-fPIC", "-shared", str(SOURCE), "-o", str(library)]
            subprocess.run(build, check=True, capture_output=True, text=True, timeout=LIMIT_S)
        yield library


def _measure(device: Device, library: Path, python: str, variables: Mapping[str, str]) -> DeviceCeilings:
    measure = [python, "-m", "engine.evaluator.profiling.device.ceilings", str(library)]
    with _told():
        done = subprocess.run(
            measure, check=True, capture_output=True, text=True, timeout=LIMIT_S, cwd=ROOT,
            env=os.environ | dict(variables),
        )  # fmt: skip
        measured = json.loads(done.stdout.splitlines()[-1])
    return from_measured(device, measured)


@contextmanager
def _told() -> Iterator[None]:
    """Raises ToolchainError for what cannot be run or read."""
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise ToolchainError(f"the device's limits could not be measured: {error.stderr[-600:]}") from error
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise ToolchainError(f"the device's limits could not be measured: {error}") from error


def from_measured(device: Device, measured: Mapping[str, object]) -> DeviceCeilings:
    """What the child printed, with the device's own names.

    Raises:
        ToolchainError: a rate is missing or makes no sense.
    """
    fields = {column.name for column in dataclasses.fields(DeviceCeilings)}
    machine_ids = {"device": device.name, "uuid": device.uuid, "driver": device.driver, "capability": device.capability}
    values: dict[str, Any] = {name: value for name, value in {**measured, **machine_ids}.items() if name in fields}
    ceilings = DeviceCeilings(**values)
    if not (ceilings.bandwidth_gb_s > 0 and ceilings.fp32_gflop_s > 0):
        raise ToolchainError(f"the device's limits could not be measured: {dict(measured)}")
    return ceilings


def main(library: str) -> None:
    """Measure and print."""
    import torch

    torch.cuda.init()  # type: ignore[no-untyped-call]
    torch.zeros(1, device="cuda")
    measured: dict[str, Any] = _own_kernels(library)
    torch.backends.cuda.matmul.allow_tf32 = True
    kinds = {"tf32": torch.float32, "bf16": torch.bfloat16}
    if torch.cuda.get_device_capability() >= FIRST_WITH_FLOAT8:
        kinds[FP8] = torch.float8_e4m3fn
    for unit, dtype in kinds.items():
        measured[f"{unit}_gflop_s"] = max(_product_gflop_s(dtype, size) for size in (4096, 8192, 12288))
    print(json.dumps(measured), flush=True)


def _own_kernels(path: str) -> dict[str, Any]:
    library = ctypes.CDLL(path)
    library.copy_gb_s.restype = library.fma_gflop_s.restype = ctypes.c_double
    library.copy_gb_s.argtypes = [ctypes.c_size_t]
    rates = {str(size): float(library.copy_gb_s(size)) for size in SIZES}
    copies = {size: rate for size, rate in rates.items() if rate > 0}  # a set that does not fit has no rate
    values = {name: int(library.attribute(number)) for name, number in ATTRIBUTES.items()}
    values["warps"] = values.pop("threads") // 32
    large = [rate for size, rate in copies.items() if int(size) >= 8 * values["l2_bytes"]]
    fma = max(float(library.fma_gflop_s()) for _ in range(3))
    values["cluster_blocks"] = int(library.largest_cluster())
    return {**values, "copy_gb_s": copies, "bandwidth_gb_s": max(large, default=0.0), "fp32_gflop_s": fma}


def _product_gflop_s(dtype: Any, size: int) -> float:
    """The rate of a square product of even random numbers: what values are multiplied changes the power drawn."""
    import torch

    from engine.evaluator.checks import float8

    a = torch.rand(size, size, device="cuda").to(dtype)
    b = torch.rand(size, size, device="cuda").to(dtype)
    one = torch.ones(1, device="cuda")

    def multiply() -> Any:
        if dtype not in float8.FORMATS:
            return a @ b
        return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)

    best_ms = float("inf")
    for _ in range(10):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        multiply()
        end.record()
        end.synchronize()
        best_ms = min(best_ms, begin.elapsed_time(end))
    return 2 * size**3 / best_ms / 1e6


if __name__ == "__main__":
    main(sys.argv[1])
