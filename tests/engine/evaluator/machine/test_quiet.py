"""How long a timing waits for a quiet machine. What others use is scripted: much at first, nothing at the next look."""

from __future__ import annotations

import os

import pytest

from engine.evaluator.machine import quiet

PROCESSORS = 32


@pytest.mark.parametrize(
    ("busy", "needs", "waits"),
    [
        (0.10, None, False),
        (0.50, None, True),
        (0.50, quiet.BESIDE_A_DEVICE, False),  # sixteen are idle
        (0.95, quiet.BESIDE_A_DEVICE, True),  # one or two are
    ],
)
def test_a_timing_waits_until_the_processors_that_it_needs_are_idle(
    busy: float, needs: int | None, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter((busy, 0.0))
    monkeypatch.setattr(quiet, "_busy_share", lambda: next(looks))
    monkeypatch.setattr(os, "cpu_count", lambda: PROCESSORS)
    assert quiet.wait(60.0, needs) == (0.0 if waits else busy)
