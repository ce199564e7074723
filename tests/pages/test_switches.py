"""The switches of profiling: what they show, and what is said about auto."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from engine.run_settings import new_settings
from engine.search.methods import catalogue, words_of
from engine.search.methods.coder_judge.strategy import CoderJudge
from engine.search.methods.cutegen.strategy import CuteGen
from pages.parts.steering import steering_panel
from storage.results.vocabulary import KernelClass
from storage.run import events as ev
from storage.run import liveness
from storage.run.exposure import Exposure
from storage.run.journal import Journal
from storage.run.method_words import MethodWords
from storage.run.settings import Switch
from storage.run.steering.verbs import Command, CommandKind
from tests import samples
from tests.pages.conftest import Open, words


def auto(planned: Exposure, **switches: Switch) -> str:
    """For a run of eight depths."""
    return steering_panel.auto_words(planned, 8, words_of(CuteGen), **switches)


def test_auto_is_put_into_words_for_this_run() -> None:
    assert auto(Exposure(5)) == "auto: collected at depth 0 and from depth 4, shown from depth 5"
    assert auto(Exposure(9)) == "auto: collected at depth 0 and from depth 8, never shown in this run"
    assert auto(Exposure(12)) == "auto: collected at depth 0, never shown in this run"
    assert auto(Exposure(2)) == "auto: collected at every depth, shown from depth 2"


def test_an_adaptive_schedule_is_put_into_words_with_what_it_waits_for() -> None:
    assert auto(Exposure(1, 2)) == (
        "auto: collected at depth 0 and, after 1 depth without a gain, later, shown after 2 depths without a gain"
    )
    assert auto(Exposure(4, 1)) == (
        "auto: collected at depth 0 and from depth 3, shown after 1 depth without a gain from depth 4"
    )
    assert auto(Exposure(9, 2)).endswith("never shown in this run")


def test_a_method_with_nothing_scheduled_says_when_by_its_own_words_or_nothing() -> None:
    judged = words_of(CoderJudge)
    assert steering_panel.auto_words(None, 8, judged) == (
        "auto: collected for every correct kernel, shown to the judge in every round"
    )
    assert steering_panel.auto_words(None, 8, judged, shown=Switch.OFF) == "auto: collected for every correct kernel"
    assert steering_panel.auto_words(None, 8, MethodWords("walk", "walks")) == ""


def test_a_run_whose_model_is_never_shown_a_profile_says_so(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=4, ending="running")
    settings = replace(folder.read_settings(), strategy_options={"expose_from_depth": 5})
    folder.settings_file.unlink()
    folder.write_settings(settings)
    liveness.hold(folder)
    assert "never shown in this run" in words(open_page("run", run="r1"))


def test_settings_tell_on_auto_the_depth_that_the_switches_tell(home: Path, open_page: Open) -> None:
    liveness.hold(samples.write_run(home / "runs", "r1", depths=4, ending="running"))
    said = words(open_page("run", run="r1")).replace("\\", "")
    first = re.search(r"shown from (depth \d)", said)
    assert first
    assert f"from {first[1]} (auto, by kernel class)" in said
    assert "at every depth from that one on" in said
    settings = new_settings("swish", model="manual", strategy_options={"profile_schedule": "adaptive=2"})
    assert dict(catalogue.in_words(settings, KernelClass.MATMUL))["Show profiles to the model"] == "from depth 1 (auto)"


def test_a_switch_that_is_not_on_auto_is_not_spoken_of() -> None:
    assert auto(Exposure(5), shown=Switch.ON) == "auto: collected at depth 0 and from depth 4"
    assert auto(Exposure(5), collect=Switch.OFF) == "auto: shown from depth 5"
    assert auto(Exposure(5), collect=Switch.ON, shown=Switch.OFF) == ""


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
