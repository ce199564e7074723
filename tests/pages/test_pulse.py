"""What makes an open page draw itself again without an event."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pages.parts import pulse
from storage import events as ev
from storage.records import Command, CommandKind
from tests.browser.play import PretendEngine, finished_depth
from tests.pages.conftest import Open, words


def test_the_way_to_end_an_engine_appears_by_itself_once_a_stop_takes_too_long(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PretendEngine(home / "runs", "stuck", depths=3)
    engine.play_until(finished_depth)
    engine.emit(ev.CommandAcknowledged(Command("stop00000000", CommandKind.STOP, "", "ada", time.time()), 9))
    app = open_page("run", run="stuck")
    assert "Stop asked at" in words(app)
    assert "End the engine now" not in [button.label for button in app.button]
    soon = pulse.version(["stuck"], is_overview=False)
    assert pulse.version(["stuck"], is_overview=False) == soon
    monkeypatch.setattr(pulse, "STOP_GRACE_S", 0.0)
    assert pulse.version(["stuck"], is_overview=False) != soon
    assert "End the engine now" in [button.label for button in app.run().button]
    engine.die()
    assert pulse.pending_stop("stuck") is None
