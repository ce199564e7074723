"""The GPUs of this machine: all that nvidia-smi names, and those that a process here would use, as the driver tells.

Which device is the first depends on CUDA_VISIBLE_DEVICES (indices, UUIDs or their beginnings, MIG names) and on
CUDA_DEVICE_ORDER, whose default is not nvidia-smi's order. Only the driver knows, so a child process asks it and no
CUDA is started here. Run as a program this module is that child; it prints one JSON object per device. Sets no limits.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import ToolchainError
from storage.results.in_words import NO_DRIVER

FIELDS = "index,name,uuid,driver_version,compute_cap,memory.total"
LIMIT_S = 60
ROOT = Path(__file__).resolve().parents[3]
DRIVER = "libcuda.so.1"
VERSION = Path("/sys/module/nvidia/version")  # of the driver, as the kernel tells it
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*: see cuda.h
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, or one part of a divided one; `capability` as in `9.0`, `memory_mib` of device memory.

    `uuid` is without the kind before it (`GPU-`, `MIG-`); `driver` is empty where nvidia-smi does not tell it.
    """

    index: int
    name: str
    uuid: str
    driver: str
    capability: str
    memory_mib: int

    @property
    def architecture(self) -> str:
        """The architecture as compilers call it: `sm_90`."""
        return f"sm_{self.capability.replace('.', '')}"

    @property
    def is_part(self) -> bool:
        """Whether it is one part of a divided GPU; the driver names it so."""
        return " MIG " in self.name

    @property
    def address(self) -> str:
        """Its name in CUDA_VISIBLE_DEVICES, the same for every process."""
        return f"{'MIG' if self.is_part else 'GPU'}-{self.uuid}"

    @property
    def lease(self) -> str:
        """What every process on this host calls it when it wants it for itself."""
        return f"gpu-{self.uuid}"

    def see_that_it_is(self, name: str) -> None:
        """See that times taken here and on a device of this name can be compared.

        Raises:
            ToolchainError: it is another model.
        """
        if self.name != name:
            raise ToolchainError(
                f"this run's kernels were measured on {name} and the GPU here is {self.name}: times of two models "
                "cannot be compared. Go on where there is the same one, or fork the run here"
            )


def found() -> list[Device]:
    """Every GPU by nvidia-smi's index; none where nvidia-smi is missing or sees none."""
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
        Device(int(row[0]), row[1], row[2].removeprefix("GPU-"), row[3], row[4], int(row[5]) if row[5].isdigit() else 0)
        for row in rows
        if len(row) == 6 and row[0].isdigit()
    ]


def choose(name: str, visible: str | None) -> str:
    """What CUDA_VISIBLE_DEVICES has to be for one device: a number counts those `visible` now (None: all of them), a
    name such as `GPU-8932f937` or `MIG-…` stays as it is. Of a part of a model's name, all devices of it.

    Raises:
        ToolchainError: there is none of that name, or not so many devices are visible.
    """
    if name.startswith(("GPU-", "MIG-")):
        return name
    if not name.isdecimal():
        devices = usable()
        if named := [device.address for device in devices if name.casefold() in device.name.casefold()]:
            return ",".join(named)
        there = ", ".join(sorted({device.name for device in devices}))
        raise ToolchainError(
            f"no GPU here is called {name!r}, there is {there}: use a part of that, a number, GPU-… or MIG-…"
        )
    addresses = [entry.strip() for entry in visible.split(",")] if visible is not None else None
    if addresses is not None and int(name) >= len(addresses):
        raise ToolchainError(f"there is no GPU {name}: CUDA_VISIBLE_DEVICES shows {len(addresses)}, counted from 0")
    return addresses[int(name)] if addresses is not None else name


def has_driver() -> bool:
    """Whether this host has an NVIDIA driver at all."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return False
    return True


def first() -> Device:
    """The device that a process started here uses.

    Raises:
        ToolchainError: there is none, or the driver does not tell.
    """
    return visible()[0]


def usable() -> list[Device]:
    """Every device that work can be spread over, in the driver's order; at least one.

    A process sees one part of a divided GPU at most, so nvidia-smi lists the parts and each is asked for by itself.

    Raises:
        ToolchainError: there is none, or the driver does not tell.
    """
    seen = visible()
    if not any(device.is_part for device in seen):
        return seen
    chosen = os.environ.get(VISIBLE)
    named = [entry.strip() for entry in chosen.split(",")] if chosen is not None else parts(_listed())
    names = [name for name in named if name.startswith("MIG-")]
    whole = [device for device in seen if not device.is_part]
    return whole + [visible({VISIBLE: name})[0] for name in names] if len(names) > 1 else seen


def parts(listing: str) -> list[str]:
    """The parts of divided GPUs in what `nvidia-smi -L` prints, by the names that CUDA_VISIBLE_DEVICES takes."""
    return re.findall(r"^\s+MIG .*\(UUID: (MIG-[^)]+)\)", listing, re.MULTILINE)


def _listed() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    try:
        return subprocess.run([program, "-L"], capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def visible(variables: Mapping[str, str] | None = None) -> list[Device]:
    """The devices that a process started here sees, with these variables set, in its order; at least one.

    Raises:
        ToolchainError: there is none, or the driver does not tell.
    """
    command = [sys.executable, "-m", "engine.evaluator.machine.devices"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False,
            env=os.environ | dict(variables or {}),
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(f"the NVIDIA driver did not name its devices within {LIMIT_S} s") from error
    if done.returncode != 0:
        complaint = (done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"])[0]
        hint = "" if complaint == NO_DRIVER else _hint()
        raise ToolchainError(f"no NVIDIA GPU can be used here: {complaint}{hint}")
    driver = _version()
    return [Device(**{**json.loads(line), "driver": driver}) for line in done.stdout.splitlines()]


def _version() -> str:
    """The driver's version. nvidia-smi is asked only where the kernel does not say: it opens every GPU, and the driver
    lets one process do that at a time."""
    with suppress(OSError):
        return VERSION.read_text().strip()
    return next((device.driver for device in found()), "")


def _hint() -> str:
    named, other = os.environ.get("CUDA_VISIBLE_DEVICES"), "`advance --device` and `resume --device` name another GPU"
    return "" if named is None else f" (CUDA_VISIBLE_DEVICES is {named!r}; {other})"


def _asked() -> list[Device]:
    """In the child: what the driver says, by its own resolution of the environment."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as error:
        if "No such file" in str(error):
            raise SystemExit(NO_DRIVER) from error
        raise SystemExit(f"the NVIDIA driver's library {DRIVER} cannot be loaded ({error})") from error
    count = ctypes.c_int()
    _checked(driver, "start", driver.cuInit(0))
    _checked(driver, "count its devices", driver.cuDeviceGetCount(ctypes.byref(count)))
    if not count.value:
        raise SystemExit("the NVIDIA driver shows no device")
    return [_device(driver, number) for number in range(count.value)]


def _device(driver: Any, number: int) -> Device:
    handle, value, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    name, identity = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
    _checked(driver, "open a device", driver.cuDeviceGet(ctypes.byref(handle), number))
    # Only the second version tells the parts of a divided GPU apart; old drivers have the first alone.
    tell = getattr(driver, "cuDeviceGetUuid_v2", driver.cuDeviceGetUuid)
    _checked(driver, "name a device", tell(identity, handle))
    _checked(driver, "name a device", driver.cuDeviceGetName(name, len(name), handle))
    _checked(driver, "tell a device's memory", driver.cuDeviceTotalMem_v2(ctypes.byref(size), handle))
    capability = []
    for attribute in (MAJOR, MINOR):
        _checked(driver, "describe a device", driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle))
        capability.append(str(value.value))
    text_uuid = str(uuid.UUID(bytes=identity.raw))
    return Device(number, name.value.decode(errors="replace"), text_uuid, "", ".".join(capability), size.value >> 20)


def _checked(driver: Any, what: str, code: int) -> None:
    if code == NO_DEVICE:
        raise SystemExit("the NVIDIA driver shows no device")
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        raise SystemExit(f"the NVIDIA driver cannot {what}: {(text.value or b'').decode()} (error {code})")


if __name__ == "__main__":
    for device in _asked():
        print(json.dumps(asdict(device)))
