"""What evaluation processes get of the engine's environment."""

import pytest

from engine.sandbox import environment


def test_only_named_variables_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD", "/nowhere.so")
    monkeypatch.setenv("TZ", "UTC")
    kept = environment(2)
    assert kept["TZ"] == "UTC"
    assert kept["OMP_NUM_THREADS"] == "2"
    assert not {"OPENAI_API_KEY", "LD_PRELOAD"} & kept.keys()
    assert "secret" not in kept.values()
