"""How a process opens its GPU; no GPU is needed here."""

from __future__ import annotations

import os

import pytest
import torch

from engine.evaluator.processes import model_caller
from engine.evaluator.processes.model_caller import QUEUES


def test_a_process_asks_the_driver_for_one_queue_only_where_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str | None]()
    monkeypatch.delenv(QUEUES, raising=False)
    monkeypatch.setattr(torch, "empty", lambda *_, **__: asked.append(os.environ.get(QUEUES)))
    assert model_caller.open_device("cuda", is_timed=False) > 0
    assert model_caller.open_device("cuda", is_timed=True) > 0
    assert asked == ["1", None]
    assert QUEUES not in os.environ, "what this process starts later, a profiler or the sanitizer, must not inherit it"
    assert model_caller.open_device("cpu", is_timed=False) == 0
