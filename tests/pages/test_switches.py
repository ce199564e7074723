"""The switches of profiling: what they show, and what is said about auto."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pages.parts.steering import steering_panel
from storage import events as ev
from storage import liveness
from storage.exposure import Exposure
from storage.journal import Journal
from storage.records import Command, CommandKind, Switch
from tests import samples
from tests.pages.conftest import Open, words


def test_auto_is_put_into_words_for_this_run() -> None:
    assert (
        steering_panel.auto_words(Exposure(5), 8) == "auto: collected at depth 0 and from depth 4, shown from depth 5"
    )
    assert (
        steering_panel.auto_words(Exposure(9), 8)
        == "auto: collected at depth 0 and from depth 8, never shown in this run"
    )
    assert steering_panel.auto_words(Exposure(12), 8) == "auto: collected at depth 0, never shown in this run"
    assert steering_panel.auto_words(Exposure(2), 8) == "auto: collected at every depth, shown from depth 2"


def test_an_adaptive_schedule_is_put_into_words_with_what_it_waits_for() -> None:
    assert steering_panel.auto_words(Exposure(1, 2), 8) == (
        "auto: collected at depth 0 and, after 1 depth without a gain, later, shown after 2 depths without a gain"
    )
    assert steering_panel.auto_words(Exposure(4, 1), 8) == (
        "auto: collected at depth 0 and from depth 3, shown after 1 depth without a gain from depth 4"
    )
    assert steering_panel.auto_words(Exposure(9, 2), 8).endswith("never shown in this run")


def test_a_run_whose_model_is_never_shown_a_profile_says_so(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    settings = replace(folder.read_settings(), strategy_options={"expose_from_depth": 5})
    folder.settings_file.unlink()
    folder.write_settings(settings)
    liveness.hold(folder)
    assert "never shown in this run" in words(open_page("run", run="r1"))


def test_a_switch_that_is_not_on_auto_is_not_spoken_of() -> None:
    assert steering_panel.auto_words(Exposure(5), 8, shown=Switch.ON) == "auto: collected at depth 0 and from depth 4"
    assert steering_panel.auto_words(Exposure(5), 8, collect=Switch.OFF) == "auto: shown from depth 5"
    assert steering_panel.auto_words(Exposure(5), 8, Switch.ON, Switch.OFF) == ""


def test_the_page_says_nothing_about_auto_while_both_switches_are_forced(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    liveness.hold(folder)
    journal = Journal(folder.journal_file)
    for kind in (CommandKind.COLLECT, CommandKind.EXPOSE):
        command = Command(f"forced-{kind}", kind, Switch.ON, "ada", 1.0)
        journal.append(ev.CommandAcknowledged(command, 90))
        journal.append(ev.CommandEffective(command.command_id, 90, ""))
    journal.close()
    assert "auto: " not in words(open_page("run", run="r1"))
