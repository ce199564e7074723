"""What the doctor says of GPUs and their profiler, from what the programs printed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from engine import doctor, supervisor
from engine.evaluator.machine import devices
from engine.evaluator.sandbox.child import Done
from engine.evaluator.toolchains.requirements import Checked
from tests.engine.evaluator.profiling.sessions import REFUSAL, recorded

TOLD = (
    "0, NVIDIA H200, GPU-ebfee809-9114, 580.159.04, 9.0, 143771\n"
    "1, NVIDIA H200, GPU-1c000000-0000, 580.159.04, 9.0, 143771\n"
)


def test_a_gpu_is_told_with_driver_and_capability() -> None:
    here = devices.parsed(TOLD)
    assert [one.architecture for one in here] == ["sm_90", "sm_90"]
    first = doctor.gpus(here, here)[0]
    assert first.is_ok
    assert "NVIDIA H200, 140 GiB, compute capability 9.0, driver 580.159.04" in first.detail


def test_a_hidden_gpu_is_told_apart() -> None:
    here = devices.parsed(TOLD)
    told = doctor.gpus(here, here[1:])
    assert [one.is_ok for one in told] == [False, True]
    assert "CUDA_VISIBLE_DEVICES" in told[0].remedy
    assert doctor.gpus(here, [], "the driver is too old")[0].remedy == "the driver is too old"


def test_the_parts_of_a_divided_gpu_are_told() -> None:
    here = devices.parsed(TOLD)
    part = replace(here[0], name="NVIDIA H200 MIG 1g.18gb", uuid="part")
    whole, _, last = doctor.gpus(here, [part])
    assert (whole.is_ok, last.is_ok, last.name) == (False, True, "GPU part 0")
    assert "divided" in whole.remedy


def test_refused_counters_come_with_the_way_to_allow_them() -> None:
    refused = doctor.counted(Done(1, REFUSAL))
    assert not refused.is_ok
    assert not refused.is_required
    assert "NVreg_RestrictProfilingToAdminUsers=0" in refused.remedy
    assert "NVreg" not in refused.detail
    assert doctor.counted(Done(0, recorded("session.txt"))).is_ok
    hung = doctor.counted(Done(-9, "", is_timeout=True))
    assert "did not end" in hung.detail
    assert not hung.is_ok


@pytest.mark.parametrize(
    ("does", "detail", "remedy"),
    [
        (
            "exec sleep 600",
            "the trial of the sandbox did not end within 0.2 s",
            "engine.evaluator.sandbox.probe` by hand",
        ),
        ("exit 3", "its trial ended with status 3", "user namespaces"),
    ],
)
def test_a_trial_of_the_sandbox_that_hangs_or_ends_without_a_word_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, detail: str, remedy: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{does}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    (told,) = doctor.sandbox_checks(limit_s=0.2 if "sleep" in does else 60)
    assert (told.name, told.is_ok, told.is_required, told.detail) == ("isolation", False, True, detail)
    assert remedy in told.remedy


def test_without_a_gpu_everything_about_it_is_optional_and_has_a_remedy() -> None:
    told = doctor.device_checks()
    assert not any(one.is_required for one in told)
    assert all(one.remedy for one in told if not one.is_ok and not one.detail.startswith("not tried"))


def test_the_cpu_toolchains_cuda_headers_are_optional_where_the_gpu_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CUDA_INCLUDE", "/nowhere")
    here = devices.parsed(TOLD)
    compiler = Checked("CUDA compiler", True, "/usr/local/cuda/bin/nvcc 13.0", "")
    for found, is_required in (([compiler, *doctor.gpus(here, here)], False), ([compiler], True)):
        monkeypatch.setattr(doctor, "device_checks", lambda found=found: found)
        building = doctor.findings()[doctor.BUILDING]
        headers = next(one for one in building if one.name == "CUDA headers")
        assert (headers.is_ok, headers.is_required) == (False, is_required)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://me:key@host.example:8443/v1?key=x#y", "https://host.example:8443/v1"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("http://host:notaport/v1", "an invalid address"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_a_key(address: str, shown: str) -> None:
    assert doctor.without_secrets(address) == shown


def test_the_doctor_in_a_child_tells_the_same_as_in_this_process() -> None:
    found = supervisor.examine()
    here = [(section, one.name) for section, lines in doctor.findings().items() for one in lines]
    assert [(one.section, one.name) for one in found] == here


def test_keys_in_the_environment_never_leave_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://name:verysecret@models.example:8443/v1?key=verysecret")
    told = str(supervisor.examine())
    assert "models.example:8443/v1" in told
    assert "verysecret" not in told


def test_the_report_ends_in_one_line_with_toolchain_gpu_and_what_is_missing() -> None:
    found = {
        doctor.BUILDING: [Checked("compiler", True, "/usr/bin/g++", "", is_required=True)],
        doctor.DEVICE: doctor.gpus([], []),
    }
    assert doctor.summary(found) == (
        "CPU toolchain ready. GPU: none found (nvidia-smi returned no device). "
        "Optional parts missing: 1; the last column says how to get them."
    )
    found[doctor.DEVICE] = [Checked("GPU 0", True, "NVIDIA H200, 140 GiB", ""), Checked("GPU counters", True, "", "")]
    found[doctor.BUILDING] = [Checked("compiler", False, "no g++", "apt install g++", is_required=True)]
    assert doctor.summary(found) == "CPU toolchain not ready (missing: compiler). GPU: NVIDIA H200."
