"""The switches of profiling: what they show, and what is said about auto."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pages.parts import auto_words
from storage import liveness
from storage.records import CommandKind, Switch
from tests import samples
from tests.pages.conftest import Open, words


def test_auto_is_put_into_words_for_this_run() -> None:
    assert auto_words.auto(5, 8) == "auto: collected at depth 0 and from depth 4, shown from depth 5"
    assert auto_words.auto(9, 8) == "auto: collected at depth 0 and from depth 8, never shown in this run"
    assert auto_words.auto(12, 8) == "auto: collected at depth 0, never shown in this run"
    assert auto_words.auto(2, 8) == "auto: collected at every depth, shown from depth 2"


def test_a_run_whose_model_is_never_shown_a_profile_says_so(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    settings = replace(folder.read_settings(), expose_from_depth=5)
    folder.settings_file.unlink()
    folder.write_settings(settings)
    liveness.hold(folder)
    assert "never shown in this run" in words(open_page("run", run="r1"))


def test_switches_show_what_is_in_force_after_the_page_was_left_and_come_back_to(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    liveness.hold(folder)
    app = open_page("run", run="r1")
    before = [app.session_state[f"{kind}:r1"] for kind in (CommandKind.COLLECT, CommandKind.EXPOSE)]
    assert all(value in list(Switch) for value in before)
    app.switch_page("candidate.py").run()
    app.switch_page("run.py").run()
    assert not app.exception
    shown = [one.value for one in app.button_group if one.label in ("Collect profiles", "Show them to the model")]
    assert shown == before
