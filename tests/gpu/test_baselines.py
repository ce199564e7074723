"""What a kernel's time is divided by on a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from engine.evaluator import tasks

pytestmark = pytest.mark.gpu


def test_what_torch_compile_makes_of_a_module_is_timed_in_the_sandbox(
    gpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILEWRIGHT_COMPILED_BASELINE")
    swish = tasks.find("swish").task("cuda", {"batch_size": 512, "dim": 8192})
    assert gpu.baseline(swish).latency_ms > 0
