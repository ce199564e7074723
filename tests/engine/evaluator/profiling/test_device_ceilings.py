"""What is kept of a device's measured ceilings, from what the measuring child printed on an H200."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from engine.errors import ToolchainError
from engine.evaluator.machine import lease
from engine.evaluator.machine.devices import Device
from engine.evaluator.profiling.device import ceilings
from storage.results.hardware_limit import useful_rates
from tests.engine.evaluator.profiling.sessions import H200

DEVICE = Device(0, "NVIDIA H200", "GPU-c25c6378", "580.159.04", "9.0", 143771)
TOLD = {
    "sm_count": 132, "l2_bytes": 62914560, "shared_bytes": 233472, "registers": 65536, "blocks": 32, "warps": 64,
    "reserved_shared_bytes": 1024, "block_shared_bytes": 232448, "has_clusters": 1, "cluster_blocks": 16,
    "copy_gb_s": {"67108864": 7921.1, "8589934592": 4278.3}, "bandwidth_gb_s": 4278.3,
    "fp32_gflop_s": 66011.2, "tf32_gflop_s": 436345.7, "bf16_gflop_s": 863933.8,
}  # fmt: skip


def test_what_the_child_tells_becomes_the_ceilings_of_that_device() -> None:
    found = ceilings.from_measured(DEVICE, TOLD)
    assert (found.uuid, found.capability, found.fp32_gflop_s) == ("GPU-c25c6378", "9.0", 66011.2)
    assert found.by_name() == {"memory": 4278.3e9, "fp32": 66011.2e9, "tf32": 436345.7e9, "bf16": 863933.8e9}


def test_a_run_is_told_of_the_device_what_the_child_told() -> None:
    facts = ceilings.from_measured(DEVICE, TOLD).facts("sm_90a")
    assert (facts.architecture, facts.processors, facts.block_shared_bytes) == ("sm_90a", 132, 232448)
    assert (facts.has_clusters, facts.cluster_blocks) == (True, 16)
    assert facts.rates_gflop_s == {"fp32": 66011.2, "tf32": 436345.7, "bf16": 863933.8}
    eight = ceilings.from_measured(DEVICE, TOLD | {"fp8_gflop_s": 1400000.0}).facts("sm_90a").rates_gflop_s
    assert (eight["fp8"], useful_rates(eight, "half", has_float8=True)["fp8"]) == (1400000.0, 1400000.0)
    assert "fp8" not in useful_rates(eight, "half", has_float8=False)
    assert "fp8" not in useful_rates(eight, "fp32", has_float8=True)
    assert not ceilings.from_measured(DEVICE, TOLD | {"has_clusters": -1}).facts("sm_89").has_clusters


def test_a_device_without_a_measured_rate_has_no_ceilings() -> None:
    with pytest.raises(ToolchainError, match="could not be measured"):
        ceilings.from_measured(DEVICE, TOLD | {"bandwidth_gb_s": 0.0})


def test_of_two_measurements_the_higher_rate_is_kept() -> None:
    found = ceilings.highest(ceilings.from_measured(DEVICE, TOLD), H200)
    assert (found.bandwidth_gb_s, found.fp32_gflop_s) == (4300.7, 66011.2)
    assert found.copy_gb_s["8589934592"] == 4300.7
    assert ceilings.highest(H200, None) == H200


def test_ceilings_survive_in_a_file_and_those_of_another_version_do_not(tmp_path: Path) -> None:
    file = tmp_path / "device.json"
    assert ceilings.read(file) is None
    file.write_text(json.dumps(asdict(H200)))
    assert ceilings.read(file) == H200
    file.write_text(json.dumps({"device": "NVIDIA H200", "peak": 1.0}))
    assert ceilings.read(file) is None
    file.write_text("{")
    assert ceilings.read(file) is None


def test_a_rate_is_never_lower_for_a_smaller_set() -> None:
    rates = [H200.bandwidth_at(size) for size in (1 << 10, 1 << 20, 1 << 26, 1 << 28, 1 << 33, 1 << 40)]
    assert rates == sorted(rates, reverse=True)


def test_what_measures_is_built_before_the_device_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that says whether it could have had the device, and a child that says whether it had it alone."""
    lock, seen = tmp_path / "gpu.lock", tmp_path / "seen"
    look = f"flock --nonblock {lock} true && echo free >> {seen} || echo held >> {seen}"
    nvcc, python = tmp_path / "nvcc", tmp_path / "python"
    for program, rest in ((nvcc, ""), (python, f"echo '{json.dumps(TOLD)}'")):
        program.write_text(f"#!/bin/sh\n{look}\n{rest}\n")
        program.chmod(0o755)

    def measured(*, again: bool) -> ceilings.DeviceCeilings:
        return ceilings.measured(DEVICE, str(nvcc), tmp_path, lambda: lease.hold(lock), python=str(python), again=again)

    found = measured(again=False)
    assert found.bandwidth_gb_s == TOLD["bandwidth_gb_s"]
    assert measured(again=True) == found, "an hour is not over"
    assert seen.read_text().split() == ["free", "held"]
    (kept,) = tmp_path.glob("device-*.json")
    os.utime(kept, (0, 0))
    nvcc.write_text("#!/bin/sh\necho no such option >&2\nexit 1\n")
    with pytest.raises(ToolchainError, match="limits could not be measured: no such option"):
        measured(again=True)
