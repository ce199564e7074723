"""How long a kernel is sampled, as the environment asks."""

from __future__ import annotations

import pytest

from engine.errors import ToolchainError
from engine.evaluator.machine.worker_limits import CHECK_S, TIMING_S, times_here

NAMES = {"TILEWRIGHT_CHECK_SECONDS": CHECK_S, "TILEWRIGHT_TIMING_SECONDS": TIMING_S}


@pytest.fixture(autouse=True)
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name)


def test_without_a_word_it_is_the_usual_time() -> None:
    assert (times_here().check_s, times_here().timing_s) == (CHECK_S, TIMING_S)


def test_what_is_asked_for_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_TIMING_SECONDS", "0.5")
    assert (times_here().check_s, times_here(30.0).timing_s, times_here(30.0).call_s) == (CHECK_S, 0.5, 30.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf"])
def test_what_is_no_time_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ToolchainError, match=f"{name}={text} .*unset it for the default {NAMES[name]:g}"):
        times_here()
