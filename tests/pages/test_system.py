"""The System page in process, over the real doctor in its child process."""

from __future__ import annotations

import pytest

from engine.supervisor import Finding
from pages.parts.system import findings_table
from tests.pages.conftest import Open, words


def test_the_system_page_says_whether_runs_can_work_here(open_page: Open) -> None:
    app = open_page("system")
    assert not app.exception
    shown = words(app)
    assert "CPU toolchain ready" in shown
    assert [button.label for button in app.button] == ["Check again"]  # so a read-only server needs no other page
    for section in ("CPU toolchain", "GPU", "Sandbox", "Runs and models"):
        assert section in shown


def test_a_doctor_that_fails_is_told_and_can_be_asked_again(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_page("system")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    app.button(key="again").click().run()
    assert "System check failed" in words(app)
    monkeypatch.delenv("PYTHONHOME")
    app.button(key="again").click().run()
    assert "CPU toolchain ready" in words(app)


def test_what_is_missing_and_needed_stands_out() -> None:
    needed = findings_table.cells(Finding("s", "compiler", False, "no g++", "apt install g++", True))
    spare = findings_table.cells(Finding("s", "perf", False, "none", "apt install linux-perf", False))
    assert needed["standing"] != spare["standing"]
    assert needed["standing"]["tone"] == "red"  # type: ignore[index]
