"""The System page in process, over the real doctor in its child process."""

from __future__ import annotations

import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.supervisor import Finding
from pages.parts import server_memory
from pages.parts.system import examined
from storage import device_use
from storage.device_use import KnownDevice, Place
from tests.pages.conftest import Open, everything, words


def test_the_system_page_says_whether_runs_can_work_here(open_page: Open) -> None:
    app = open_page("system")
    assert not app.exception
    shown = words(app)
    assert "CPU toolchain ready" in shown
    assert [button.label for button in app.button] == ["Check again"]  # so a read-only server needs no other page
    assert "No run has used a device yet." in shown
    for section in ("Devices", "CPU toolchain", "GPU", "Sandbox", "Runs and models"):
        assert section in shown


def test_a_doctor_that_fails_is_told_and_can_be_asked_again(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("system")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    app.button(key="again").click().run()
    assert "System check failed" in words(app)
    monkeypatch.delenv("PYTHONHOME")
    app.button(key="again").click().run()
    assert "CPU toolchain ready" in words(app)


def test_a_check_that_began_before_somebody_asked_again_is_nobodys_report_when_it_ends_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    slow, held = tmp_path / "bin" / "perf", tmp_path / "held"
    os.mkfifo(held)
    slow.write_text(f"#!/bin/sh\nread word < {held}\n")
    slow.chmod(0o755)

    def perf_of(report: list[Finding]) -> str:
        return next(one.detail for one in report if one.name == "perf")

    with ThreadPoolExecutor() as pool, monkeypatch.context() as before:
        before.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
        examined.ask_again()
        earlier = pool.submit(examined.latest)
        with open(held, "w") as release:  # waits until the check has come to what does not end
            before.undo()
            examined.ask_again()
            newer = examined.latest()
            release.write("end\n")
        assert perf_of(earlier.result()[0]) == str(slow)
    assert perf_of(newer[0]) != str(slow)
    assert examined.latest() == newer


def test_what_is_missing_and_needed_stands_out() -> None:
    needed = examined.cells(Finding("s", "compiler", False, "no g++", "apt install g++", True))
    spare = examined.cells(Finding("s", "perf", False, "none", "apt install linux-perf", False))
    assert needed["standing"] != spare["standing"]
    assert needed["standing"]["tone"] == "red"  # type: ignore[index]


def test_what_each_device_does_is_shown_with_its_queue_and_why_one_is_out(open_page: Open) -> None:
    device_use.found_here(KnownDevice("GPU-1", "NVIDIA H200"))
    device_use.take_out(KnownDevice("GPU-2", "NVIDIA H200"), "the driver cannot write memory")
    with (
        device_use.claimed("check", "swish-1", 3, "GPU-1") as busy,
        device_use.claimed("time", "r2", 5, "GPU-1") as late,
        device_use.claimed("profile", "r4", 2, "GPU-1") as now,
    ):
        busy.holds()
        late.waits(Place(weight=2.0, used_s=7.0, position=3.5, done=0.5, began=time.time() - 1000, held_s=250.0))
        now.waits(Place(is_now=True, position=9.0))
        assert "No evaluation waits" not in everything(open_page("system"))
        with device_use.claimed("compile", "r3", 1):
            shown = everything(open_page("system"))
    assert "checking: swish-1, step 3" in shown.replace("\\\\", "")
    assert "the driver cannot write memory" in shown
    assert shown.index("profiling: r4") < shown.index("timing: r2")  # in the order of their turns
    assert "a person waits" in shown
    assert shown.count("50 % of its search done, a device for 25 % of its time") == 1
    assert "1 evaluation at work on what needs no device, such as builds." in shown
    assert device_use.uses(0.0, time.time())[0].run_id == "swish-1"


def test_the_memory_of_the_server_is_told_and_too_much_of_it_is_an_alarm(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.search(
        r"server holds [\d,]+ MB of memory; beyond 1,024 MB an alarm stands here", words(open_page("system"))
    )
    monkeypatch.setattr(server_memory, "ALARM_BYTES", 1 << 20)
    shown = words(open_page("system"))
    assert re.search(r"\*\*The dashboard's server holds [\d,]+ MB of memory\*\*, more than 1 MB\. Restart it", shown)
