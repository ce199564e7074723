"""Whether a GPU does what it is asked: opened, written and read back by a child process, through the driver alone.

Run as a program this module is that child; it starts no torch. It knows nothing of leases: who asks has had a failure
on the device, or finds it marked as broken.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

from engine.evaluator.machine.devices import DRIVER, ROOT, VISIBLE, Device

LIMIT_S = 60.0
WORDS = 1 << 20  # of four bytes
PATTERN = 0x5A5A1234


def why_unhealthy(device: Device, limit_s: float = LIMIT_S) -> str:
    """Why nothing can be measured on a device; empty where it answers as it should."""
    command = [sys.executable, "-m", "engine.evaluator.machine.device_health"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=limit_s, check=False,
            env=os.environ | {VISIBLE: device.address},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not answer within {limit_s:.0f} s"
    if done.returncode == 0:
        return ""
    return (done.stderr.strip().splitlines() or [f"the check ended with status {done.returncode}"])[-1]


def _check() -> None:
    """In the child: raises SystemExit with the reason."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as error:
        raise SystemExit(f"the NVIDIA driver's library {DRIVER} cannot be loaded ({error})") from error
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    read = (ctypes.c_uint32 * WORDS)()
    _see(driver, "start", driver.cuInit(0))
    _see(driver, "find the device", driver.cuDeviceGet(ctypes.byref(device), 0))
    _see(driver, "open the device", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _see(driver, "open the device", driver.cuCtxSetCurrent(context))
    _see(driver, "reserve memory", driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4 * WORDS)))
    _see(driver, "write memory", driver.cuMemsetD32_v2(memory, ctypes.c_uint32(PATTERN), ctypes.c_size_t(WORDS)))
    _see(driver, "read memory", driver.cuMemcpyDtoH_v2(read, memory, ctypes.c_size_t(4 * WORDS)))
    wrong = sum(word != PATTERN for word in read)
    if wrong:
        raise SystemExit(f"{wrong} of {WORDS} words of its memory are not what was written")


def _see(driver: Any, what: str, code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorString(code, ctypes.byref(text))
        raise SystemExit(f"the driver cannot {what}: {(text.value or b'').decode()} (error {code})")


if __name__ == "__main__":
    _check()
