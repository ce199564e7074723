"""Which device is the first, as a driver of our own resolves it, and that all who use it take turns."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ToolchainError
from engine.evaluator import tasks
from engine.evaluator.build.device.installation import DeviceInstallation
from engine.evaluator.machine import device_health, devices, lease
from engine.evaluator.machine.devices import Device
from engine.evaluator.processes.client import EvaluatorClient
from engine.evaluator.profiling.device import ceilings
from engine.evaluator.profiling.device.ceilings import DeviceCeilings
from engine.evaluator.toolchains.cuda import CudaToolchain
from storage import codec
from storage.results.evaluation_results import TimingResult
from tests.engine.evaluator.machine.driver import FAST, PART, SLOW, TWIN, driver

__all__ = ["driver"]
# It goes on until every engine has had its share, so that all of them want the device at the same time.
ENGINE = """
import os, sys
from pathlib import Path
from engine.evaluator.machine import lease
from engine.evaluator.toolchains.cuda import CudaToolchain
journal, me, names, turns = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(), int(sys.argv[4])
with CudaToolchain() as toolchain:
    files = toolchain.lease_files
while any(journal.read_text().count(f"{name} begins") < turns for name in names):
    with lease.hold(*files), journal.open("a", buffering=1) as file:
        file.write(f"{me} begins\\n")
        sum(os.sched_yield() or 1 for _ in range(100))
        file.write(f"{me} ends\\n")
"""
TURNS = 20


@pytest.fixture
def asked(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Processes started here find the driver; leases are the test's own."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path / "leases"))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("named", "order", "first"),
    [
        (None, "", FAST),
        (None, "PCI_BUS_ID", SLOW),
        ("0", "", FAST),
        ("0", "PCI_BUS_ID", SLOW),
        ("1,0", "", SLOW),
        ("0,1", "", FAST),
        (f"GPU-{FAST}", "PCI_BUS_ID", FAST),
        (f"GPU-{SLOW[:6]}", "", SLOW),
        (f"MIG-{PART}", "", PART),
    ],
)
def test_the_first_device_is_the_one_that_the_driver_means(
    asked: pytest.MonkeyPatch, tmp_path: Path, named: str | None, order: str, first: str
) -> None:
    if named is not None:
        asked.setenv("CUDA_VISIBLE_DEVICES", named)
    asked.setenv("CUDA_DEVICE_ORDER", order)
    toolchain = CudaToolchain(tmp_path)
    assert (toolchain.gpu.uuid, toolchain.gpu.memory_mib) == (first, 1 << 14)
    assert toolchain.gpu.capability == ("8.0" if first == SLOW else "9.0")
    assert toolchain.lease_files == lease.of_host(f"gpu-{first}")


@pytest.mark.parametrize(
    ("device", "visible", "first"),
    [
        ("0", None, FAST),
        ("1", None, SLOW),
        ("1", "1,0", FAST),
        (f"GPU-{SLOW[:6]}", "0", SLOW),
        (f"MIG-{PART}", None, PART),
        ("slow", None, SLOW),
    ],
)
def test_a_run_uses_the_device_that_its_settings_name(
    asked: pytest.MonkeyPatch, device: str, visible: str | None, first: str
) -> None:
    asked.setenv("CUDA_VISIBLE_DEVICES", devices.choose(device, visible))
    assert devices.first().uuid == first


@pytest.mark.parametrize(
    ("device", "visible", "problem"),
    [
        ("2", "1,0", "there is no GPU 2: CUDA_VISIBLE_DEVICES shows 2"),
        ("H9", None, "no GPU here is called 'H9', there is Fast One, Slow"),
    ],
)
def test_a_device_that_cannot_be_meant_is_told(
    asked: pytest.MonkeyPatch, device: str, visible: str | None, problem: str
) -> None:
    with pytest.raises(ToolchainError, match=problem):
        devices.choose(device, visible)


@pytest.mark.parametrize(("named", "seen"), [("1,7,0", [SLOW]), ("1,0", [SLOW, FAST])])
def test_the_visible_devices_end_at_the_first_unknown_name(
    asked: pytest.MonkeyPatch, named: str, seen: list[str]
) -> None:
    asked.setenv("CUDA_VISIBLE_DEVICES", named)
    assert [one.uuid for one in devices.visible()] == seen


# As an H200 printed it that was divided into two parts, beside a whole one; identities are made up.
LISTED = """GPU 0: NVIDIA H200 (UUID: GPU-5c1e0f7a-0d5e-4a1b-9f1e-0c8f5b2f6a10)
  MIG 3g.71gb     Device  0: (UUID: MIG-0a3f3f0e-6d0c-5d53-8a0e-3c1d4b1f9a01)
  MIG 1g.18gb     Device  1: (UUID: MIG-7be1a3f2-27a4-5a8e-b6d1-91c5a0d0e202)
GPU 1: NVIDIA H200 (UUID: GPU-9d2b6c3e-4f60-4b7a-8c55-6e7d8f9a0b11)
"""


def test_the_parts_of_a_divided_gpu_are_devices_by_their_own_names(asked: pytest.MonkeyPatch) -> None:
    first, second = devices.parts(LISTED)
    assert (first[:12], second[:12]) == ("MIG-0a3f3f0e", "MIG-7be1a3f2")
    asked.setenv("CUDA_VISIBLE_DEVICES", f"GPU-{FAST},MIG-{PART},MIG-{PART[:6]}")
    assert [one.address for one in devices.usable()] == [f"GPU-{FAST}", f"MIG-{PART}", f"MIG-{PART}"]


def test_a_device_that_does_not_keep_what_is_written_is_unhealthy(asked: pytest.MonkeyPatch) -> None:
    asked.setenv("CUDA_VISIBLE_DEVICES", f"GPU-{FAST},GPU-{TWIN}")
    asked.setenv("BROKEN_DEVICE", TWIN)
    fast, twin = devices.usable()
    assert device_health.why_unhealthy(fast) == ""
    assert device_health.why_unhealthy(twin) == "the driver cannot write memory: no such thing (error 999)"


def test_where_the_environment_hides_every_device_that_is_said(asked: pytest.MonkeyPatch) -> None:
    asked.setenv("CUDA_VISIBLE_DEVICES", "-1")
    with pytest.raises(ToolchainError, match=r"shows no device \(CUDA_VISIBLE_DEVICES is '-1'; `advance --device`"):
        devices.first()


def test_the_drivers_version_is_the_kernels_and_else_nvidia_smis(asked: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, Fast One, GPU-x, 535.1, 9.0, 1'\n")
    program.chmod(0o755)
    asked.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    asked.setattr(devices, "VERSION", tmp_path / "version")
    for text, version in (("", "535.1"), ("580.159.04\n", "580.159.04")):
        if text:
            devices.VERSION.write_text(text)
        assert [one.driver for one in devices.visible()] == [version] * 2


def test_without_a_driver_there_is_no_lease_but_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setenv(devices.VISIBLE, "0")
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is a GPU here")
    with pytest.raises(ToolchainError, match="used here: no NVIDIA driver was found$"):
        _ = CudaToolchain(tmp_path).lease_files


def test_engines_that_name_one_gpu_differently_take_turns(asked: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Unset, an index, a list and a UUID, each under a home of its own: four processes want one device at once."""
    journal = tmp_path / "journal"
    journal.touch()
    engines = {"unset": None, "index": "0", "list": "0,1", "uuid": f"GPU-{FAST}"}
    children = []
    for name, named in engines.items():
        own = os.environ | {"TILEWRIGHT_HOME": str(tmp_path / name)}
        own |= {} if named is None else {"CUDA_VISIBLE_DEVICES": named}
        words = [sys.executable, "-c", ENGINE, str(journal), name, " ".join(engines), str(TURNS)]
        children.append(subprocess.Popen(words, env=own, cwd=devices.ROOT))
    assert [child.wait(60) for child in children] == [0, 0, 0, 0]
    told = journal.read_text().splitlines()
    begins, ends = told[::2], told[1::2]
    assert [line.replace("begins", "ends") for line in begins] == ends
    assert all(begins.count(f"{name} begins") >= TURNS for name in engines)


def test_an_engine_on_another_gpu_does_not_wait(asked: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = CudaToolchain(tmp_path), CudaToolchain(tmp_path)
    _ = first.lease_files
    asked.setenv("CUDA_VISIBLE_DEVICES", "1")
    with lease.hold(*first.lease_files), lease.held_if_free(*second.lease_files) as is_free:
        assert is_free
    asked.setenv("CUDA_VISIBLE_DEVICES", "0")
    with lease.hold(*first.lease_files), lease.held_if_free(*CudaToolchain(tmp_path).lease_files) as is_free:
        assert not is_free


def test_what_a_task_needs_is_found_out_once_for_each_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    timing = codec.to_plain(TimingResult((1.0,) * 20, (2.0,) * 20, "eager", 1.0))

    def answer(_: EvaluatorClient, request: Mapping[str, Any], *__: object, **___: object) -> object:
        asked.append(request["act"])
        needs: dict[str, object] = {"min_bytes": 1, "min_flop": 1, "signature": "", "leaves_masked_out": False}
        needs |= {"operators": [], "laid_out": []}
        answers = {"describe": needs, "examine": {"standing": "decided"}}
        return answers.get(request["act"], timing)

    monkeypatch.setenv("TILEWRIGHT_LEASES", str(tmp_path))
    monkeypatch.setattr(EvaluatorClient, "ask", answer)
    monkeypatch.setattr(EvaluatorClient, "start", lambda _: None)
    rates = DeviceCeilings("Fast One", FAST, "", "9.0", 1.0, 1.0, 1.0, 1.0, l2_bytes=1, sm_count=1)
    monkeypatch.setattr(ceilings, "measured", lambda *_, **__: rates)
    one, other = (Device(0, "Fast One", uuid, "", "9.0", 1 << 14) for uuid in (FAST, TWIN))
    toolchain, task = CudaToolchain(tmp_path), tasks.find("swish").task("cuda", {})
    installed = replace(DeviceInstallation(*[""] * 14), arch="90a")
    toolchain.__dict__ |= {"installation": installed, "device_files": ()}
    toolchain.use(one)
    toolchain.limit(task)
    for gpu in (one, other, one, other):
        toolchain.use(gpu)
        toolchain.time(task, "a kernel")
    assert asked.count("time") >= 4
    assert asked.count("describe") == 2
