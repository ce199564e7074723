"""What makes an open page draw itself again without an event."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pages.parts import change_token, run_state
from storage.run import events as ev
from storage.run import liveness, remeasurements
from storage.run.remeasurements import KernelName, RemeasureProgress, RemeasureRequest, RemeasureState, Round
from storage.run.steering.verbs import Command, CommandKind
from tests.browser.play import PretendEngine, finished_depth
from tests.pages.conftest import Open, words


def test_the_way_to_end_an_engine_appears_by_itself_once_a_stop_takes_too_long(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PretendEngine(home / "runs", "stuck", depths=3)
    engine.play_until(finished_depth)
    engine.emit(ev.CommandAcknowledged(Command("stop00000000", CommandKind.STOP, "", "ada", time.time()), 9))
    app = open_page("run", run="stuck")
    assert "Stopping: requested at" in words(app)
    assert "Force stop" not in [button.label for button in app.button]
    soon = change_token.of(["stuck"], is_overview=False)
    assert change_token.of(["stuck"], is_overview=False) == soon
    monkeypatch.setattr(run_state, "STOP_GRACE_S", 0.0)
    assert change_token.of(["stuck"], is_overview=False) != soon
    assert "Force stop" in [button.label for button in app.run().button]
    engine.die()
    assert run_state.pending_stop("stuck") is None


def test_a_page_that_shows_re_measurements_is_drawn_for_each_of_their_steps_and_no_other_page(open_page: Open) -> None:
    open_page()
    one, other = (KernelName("mine", f"c00{n}", n, 1.0, 0.01) for n in (1, 2))
    request = RemeasureRequest("m1", "swish", "cpu", one, other, rounds=6, asked_by="ada", asked_at=time.time())
    folder = remeasurements.create(request)
    steps = [
        RemeasureProgress(RemeasureState.STARTING, request.asked_at),
        RemeasureProgress(RemeasureState.MEASURING, request.asked_at),
        RemeasureProgress(RemeasureState.MEASURING, request.asked_at, (Round(1.1, 1.0, 2.0, 2.2),)),
        RemeasureProgress(RemeasureState.DONE, request.asked_at, (Round(1.1, 1.0, 2.0, 2.2),)),
    ]
    tokens, others = list[str](), set[str]()
    lock = liveness.hold(folder)
    for step in steps:
        remeasurements.tell(folder, step)
        tokens.append(change_token.of(["mine"], is_overview=False, has_measurements=True))
        assert change_token.of(["mine"], is_overview=False, has_measurements=True) == tokens[-1]
        others.add(change_token.of(["mine"], is_overview=False))
        others.add(change_token.of(["yours"], is_overview=False, has_measurements=True).removesuffix("[]"))
    os.close(lock)
    assert len(set(tokens)) == len(steps)
    assert len(others) == 1
