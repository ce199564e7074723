"""New run: a form made of what a strategy says of its options, and strategies of somebody's own."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine import supervisor
from engine.cli.arguments import parse
from engine.cli.subcommands import settings_of
from engine.errors import EngineError, TaskError
from engine.evaluator import fitting, tasks
from engine.evaluator.tasks import Task
from engine.evaluator.toolchain_table import GPU, HOST, Entry
from engine.evaluator.toolchain_table import TABLE as TOOLCHAINS
from engine.examined import Examined
from engine.search.methods import catalogue
from engine.search.methods.loading import TABLE
from pages.parts import number_field, wording
from pages.parts.new_run import forecast, kept, module_field
from pages.parts.steering import fork_dialog
from pages.parts.steering.dialogs import Dialog, Opened
from pages.parts.widgets import editor
from storage.index.queries import PaceRow, TokensRow
from storage.run import folder, liveness, saved_models
from storage.run.folder import RunFolder
from storage.run.method_words import AS_STORED
from storage.run.models import ModelOptions
from storage.run.saved_models import SavedModel
from storage.run.settings import Budget, RunSettings
from tests import samples
from tests.engine.search.methods.test_catalogue import MINE
from tests.engine.test_problems import problem, workload
from tests.pages.conftest import Open, words

FORM_FIELDS = (
    "selectbox", "text_input", "text_area", "number_input", "toggle", "checkbox", "multiselect", "button_group",
)  # fmt: skip
# Each brings fields of its own.
CHOICES: tuple[dict[str, Any], ...] = (
    {},
    {
        "model": "a-model",
        "preset": "at most $2",
        "knowledge:cutegen": "another base, only read",
        "own_baseline_source": "paste",
    },
    {"toolchain": "cuda", "ask:new": "all", "strategy": "best_of"},
    {"toolchain": "cuda", "language:cuda": "triton", "silence:new": "yes"},
    {"task_source": module_field.OWN_FILE},
    {"task_source": module_field.PASTED},
)


def form() -> None:
    """Every sort of option, drawn; the values are kept."""
    import streamlit as st

    from engine.search.methods.options import described
    from pages.parts.steering import options_form
    from tests.engine.search.methods.test_options import Every

    st.session_state["values"] = options_form.draw(described(Every), "test", {}, 5, "walk", [])


def cutegen() -> None:
    """The options of the default method; the values are kept."""
    import streamlit as st

    from engine.search.methods import catalogue
    from pages.parts.steering import options_form

    start = st.session_state.setdefault("start", {})
    options = catalogue.description("cutegen").options
    st.session_state["values"] = options_form.draw(options, "test", start, 5, "depth", [])


def values(app: AppTest) -> dict[str, Any]:
    assert not app.exception
    found: dict[str, Any] = app.session_state["values"]
    return found


def field(app: AppTest, label: str) -> Any:
    fields = (*app.selectbox, *app.number_input, *app.text_input, *app.checkbox, *app.get("button_group"))
    return next(one for one in fields if one.label == label)


def test_while_the_demo_is_at_work_a_run_on_its_device_is_said_to_take_longer(home: Path, open_page: Open) -> None:
    run = samples.write_run(home / "runs", "demo", depths=4, ending="running")
    settings = replace(run.read_settings(), toolchain="cpu")
    run.settings_file.unlink()
    run.write_settings(settings)
    assert "The demo is running too" not in words(open_page("new_run")), "its engine is gone"
    liveness.hold(run)
    assert "The demo is running too: both take turns on the device" in words(open_page("new_run"))
    assert forecast.beside_demo("cuda") == ""


def test_every_sort_of_option_has_its_field_and_the_defaults_are_filled_in() -> None:
    app = AppTest.from_function(form).run()
    assert values(app) == {
        "rounds": 10, "share": 0.5, "width": None, "is_greedy": False, "order": "best", "note": "x",
    }  # fmt: skip
    assert field(app, "Rounds").help == "rounds of the method"
    assert field(app, "Width").placeholder == "as many as fit"
    assert field(app, "Seed").disabled
    for label, value in {"Rounds": 3, "Width": 2, "Is greedy": True, "Order": "random", "Note": "y"}.items():
        field(app, label).set_value(value)
    field(app.run(), "Seed").set_value(7)
    assert values(app.run()) == {
        "rounds": 3, "share": 0.5, "width": 2, "is_greedy": True, "order": "random=7", "note": "y",
    }  # fmt: skip


def test_the_form_of_the_default_method() -> None:
    app = AppTest.from_function(cutegen).run()
    start = {"base_policy": "patience=2", "max_repairs": 5, "max_regenerations": 2, "expose_from_depth": None,
             "profile_schedule": "fixed"}  # fmt: skip
    assert values(app) == start
    assert field(app, "Each depth starts from").options == [
        "latest kernel; back to the best after some depths without progress",
        "always the latest correct kernel",
        "always the best kernel",
    ]
    field(app, "Depths without progress").set_value(4)
    assert values(app.run())["base_policy"] == "patience=4"
    field(app, "Each depth starts from").set_value("best")
    assert values(app.run())["base_policy"] == "best"
    assert field(app, "Depths without progress").disabled
    for choice, first in (("off", 6), ("from", 3), ("auto", None)):
        field(app, "Show profiles to the model").set_value(choice)
        assert values(app.run())["expose_from_depth"] == first
    assert field(app, "Depths without a gain").disabled
    field(app, "Profile schedule").set_value("adaptive")
    assert values(app.run())["profile_schedule"] == "adaptive=2"


def test_the_form_begins_with_the_values_of_another_run() -> None:
    app = AppTest.from_function(cutegen)
    start = {"base_policy": "patience=7", "max_repairs": 0, "max_regenerations": 1, "expose_from_depth": 2,
             "profile_schedule": "adaptive=5"}  # fmt: skip
    app.session_state["start"] = start
    assert values(app.run()) == start
    app = AppTest.from_function(cutegen)
    app.session_state["start"] = {"base_policy": "worst", "max_repairs": -1, "expose_from_depth": 9}
    told = values(app.run())
    app = AppTest.from_function(cutegen)
    app.session_state["start"] = {"profile_schedule": "adaptive"}
    assert values(app.run())["profile_schedule"] == "adaptive=2"
    assert (told["base_policy"], told["max_repairs"], told["expose_from_depth"]) == ("patience=2", 5, 6)


def test_strategies_of_ones_own_are_offered_and_the_page_imports_none(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker, name = home / "marker", "mine_for_the_page:Beam"
    (home / "mine_for_the_page.py").write_text(MINE.format(marker=str(marker), width=4))
    monkeypatch.setenv("PYTHONPATH", str(home))
    monkeypatch.setenv(catalogue.VARIABLE, f"{name},nowhere_at_all:Beam")
    app = open_page("new_run")
    assert not app.exception
    catalogue.description(name)
    catalogue.description("nowhere_at_all:Beam")
    app.run()
    assert list(app.selectbox(key="strategy").options) == [*TABLE, name]
    assert "not available: cannot be imported: No module named 'nowhere_at_all'" in words(app).replace("\\", "")
    app.selectbox(key="strategy").set_value(name).run()
    assert "Keeps several kernels" in words(app)
    assert field(app, "Width").value == 4
    assert f"No recorded replies for task square_matmul on cpu with the strategy {name}" in words(app).replace("\\", "")
    assert app.button(key="start").disabled
    assert "Maximum repairs per kernel" not in [one.label for one in app.number_input]
    assert int(marker.read_text()) != os.getpid()
    assert "mine_for_the_page" not in sys.modules


def test_a_gpu_is_asked_for_only_where_the_toolchain_uses_one(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, device in (("hosted", HOST), ("accelerated", GPU)):
        monkeypatch.setitem(TOOLCHAINS, name, Entry("nowhere:Toolchain", device, str))
    app = open_page("new_run")
    seen = []
    for name in ("hosted", "accelerated"):
        field(app, "Toolchain").set_value(name).run()
        assert not app.exception
        seen.append("GPU" in [one.label for one in app.text_input])
    assert seen == [False, True]
    assert "compiled_start" not in [one.key for one in app.toggle], "it is for kernels in Triton"
    field(app, "Language").set_value("triton").run()
    app.toggle(key="compiled_start").set_value(True)
    app.selectbox(key="model").set_value("manual").run()
    (command,) = (one.value for one in app.code if one.value.startswith("python -m engine run"))
    assert "--start compiled" in command


def test_recorded_replies_start_with_the_policy_that_keeps_to_them(open_page: Open) -> None:
    app = open_page("new_run")
    assert field(app, "Each depth starts from").value == "latest"
    app.selectbox(key="model").set_value("manual").run()
    assert field(app, "Each depth starts from").value == "patience"


def test_a_fork_offers_the_options_of_its_strategy_as_they_are_set(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "mine_for_a_fork.py").write_text(MINE.format(marker=str(home / "marker"), width=4))
    monkeypatch.setenv("PYTHONPATH", str(home))
    for run, strategy in (("mine", "mine_for_a_fork:Beam"), ("gone", "nowhere_at_all:Beam")):
        folder = samples.write_run(home / "runs", run)
        settings = replace(folder.read_settings(), strategy=strategy, strategy_options={"width": 6})
        folder.settings_file.unlink()
        folder.write_settings(settings)
    app = forking(open_page, "mine")
    assert field(app, "Width").value == 6
    assert field(app, "Profiles for the model").options == ["unchanged", "do not profile"]
    app = forking(open_page, "gone")
    assert "cannot be imported: No module named 'nowhere_at_all'" in words(app).replace("\\", "")
    assert not [one for one in app.button if one.label.startswith("Start a new run")]
    assert "mine_for_a_fork" not in sys.modules


def test_a_fork_to_another_toolchain_says_that_its_kernel_will_be_mended_or_written_anew(home: Path) -> None:
    settings = samples.write_run(home / "runs", "r1").read_settings()
    told = fork_dialog.fork_preview(3, settings, settings.toolchain, "", AS_STORED)
    assert "1 starts from it." in told
    cute = replace(settings, toolchain="cuda", language="cute")
    told = fork_dialog.fork_preview(3, cute, "cpu", "", AS_STORED)
    assert "starts from it" not in told
    assert "It is made for cuda: it will most likely not build there" in told
    assert "1 starts from the first correct one." in told
    told = fork_dialog.fork_preview(3, replace(cute, language="triton"), "cpu", "", AS_STORED)
    assert "It is in Triton, and a run on cpu takes CuTe: " in told


@pytest.mark.parametrize("ending", ["paused", "finished"])
def test_the_page_behind_a_dialog_is_told_to_stand_still_where_the_run_can_go_on(
    home: Path, open_page: Open, ending: str
) -> None:
    folder = samples.write_run(home / "runs", "r1", ending=ending)
    if ending == "paused":
        liveness.hold(folder)
    shown = words(forking(open_page, "r1"))
    assert ("The page behind stands still until this is closed." in shown) is (ending == "paused")


def forking(open_page: Open, run: str) -> AppTest:
    app = open_page("run", run=run)
    app.session_state["open_dialog"] = Opened(Dialog.TRY_AGAIN, run, "")
    app.run()
    assert not app.exception
    return app


def test_what_pytorch_may_compute_and_the_precision_go_into_the_run(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(settings: RunSettings) -> None:
        raise EngineError(f"{settings.policy.library_in_words} at {settings.policy.precision}")

    monkeypatch.setattr(supervisor, "start", tell)
    app = open_page("new_run")
    assert field(app, "Operators left to PyTorch").value == "none"
    app.button(key="start").click().run()
    assert "own kernels only at fp32" in app.error[0].value
    field(app, "Operators left to PyTorch").set_value("conv2d, matmul")
    field(app, "Precision").set_value("tf32")
    app.button(key="start").click().run()
    assert "conv2d, matmul at tf32" in app.error[0].value
    field(app, "Operators left to PyTorch").set_value("conv 2d")
    app.button(key="start").click().run()
    assert "is no operator's name" in app.error[0].value.replace("\\", "")


def test_a_folder_of_prompts_goes_into_the_run_and_one_that_cannot_be_used_is_told(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def tell(settings: RunSettings) -> None:
        raise EngineError(f"prompts {settings.prompts.name}: {dict(settings.prompts.files)}")

    monkeypatch.setattr(supervisor, "start", tell)
    pack = tmp_path / "mine"
    pack.mkdir()
    app = open_page("new_run")
    field(app, "Folder of prompt files").set_value(str(pack)).run()
    assert "No prompt files in" in app.error[0].value
    assert not any(button.key == "start" for button in app.button)
    (pack / "hint.md").write_text("MINE {{ hints }}")
    app.run()
    assert wording.plain("In place of the shipped ones: hint.md") in words(app)
    app.button(key="start").click().run()
    assert "Prompts mine: {'hint.md': 'MINE {{ hints }}'}" in app.error[0].value.replace("\\", "")


def test_the_command_beside_the_form_starts_the_same_run(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[RunSettings] = []

    def keep(settings: RunSettings) -> None:
        started.append(settings)
        raise EngineError("kept")

    monkeypatch.setattr(supervisor, "start", keep)
    app = open_page("new_run")
    app.selectbox(key="model").set_value("manual").run()
    app.pills(key="preset").set_value("quick look").run()
    field(app, "N").set_value("256")
    field(app, "Operators left to PyTorch").set_value("conv2d")
    field(app, "Tensor type").set_value("bf16")
    field(app, "Mode").set_value("eval")
    next(one for one in app.checkbox if one.label == "Forward and backward").set_value(True)
    field(app, "Each depth starts from").set_value("best")
    field(app, "Variants to tune").set_value(4)
    app.toggle(key="compiler_hint").set_value(True)
    field(app, "Maximum engine time (minutes)").set_value("5")
    app.button(key="start").click().run()
    (command,) = (one.value for one in app.code if one.value.startswith("python -m engine run"))
    told = settings_of(parse(shlex.split(command.replace("\\\n", ""))[3:]))
    (made,) = started
    assert (made.task_name, made.policy.mode) == ("square_matmul-bf16-eval-backward", "eval")
    for name in ("task_name", "sizes", "budget", "model", "toolchain", "language", "policy", "strategy",
                 "strategy_options", "knowledge", "ask_first", "prompts", "model_options", "tune",
                 "compiler_hint"):  # fmt: skip
        assert getattr(told, name) == getattr(made, name), name
    assert (made.budget.depths, made.budget.model_calls, made.budget.wall_s) == (3, 15, 300)


def test_a_limit_that_is_not_valid_is_told_beside_its_field_and_above_start_which_is_off(open_page: Open) -> None:
    app = open_page("new_run")
    for key, text, reason in (
        (
            "max_cost",
            "-5",
            "Maximum cost (US dollars): “-5” is not valid. Enter a number from 0.01 to 1,000,000,000, or",
        ),
        ("max_cost", "abc", "Maximum cost (US dollars): “abc” is not valid"),
        ("max_calls", "1.5", "Maximum model calls: “1.5” is not valid. Enter a whole number from 1 to"),
    ):
        app.text_input(key=key).set_value(text).run()
        assert [reason in one.value.replace("\\", "") for one in (*app.error, *app.warning)] == [True, True]
        assert app.button(key="start").disabled
        assert not [one for one in app.code if one.value.startswith("python -m engine run")]
        assert "the replies are recorded" not in words(app)
        app.text_input(key=key).set_value("").run()
    field(app, "Depths").set_value("").run()
    assert "Depths: an empty field is not valid. Enter a whole number from 1 to 200." in app.error[0].value.replace(
        "\\", ""
    )
    field(app, "Depths").set_value("3")
    app.text_input(key="max_cost").set_value("2.5").run()
    assert not app.button(key="start").disabled
    assert "the replies are recorded" in words(app)
    (command,) = (one.value for one in app.code if one.value.startswith("python -m engine run"))
    assert "--max-cost 2.5" in command
    read = [number_field.read(text, 1, 1e9) for text in ("1e6", "nan", "inf", "2e9", "0")]
    assert read == [1e6, None, None, None, None]


def test_a_module_that_fails_when_it_is_called_starts_no_run_and_one_that_may_is_warned_of(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "estimated", lambda *_: (True, None))
    for why, warned, is_off in (
        (f"{fitting.FAILS}NameError: slope", "This module fails when it is called: NameError: slope", True),
        ("TypeError: numpy asks for values", "Whether it works with real data is tried before", False),
        ("DataDependentOutputException: item", "", False),
    ):
        monkeypatch.setattr(supervisor, "why_unknown", lambda *_, why=why: why)
        monkeypatch.setattr(fitting, "why_unknown", lambda *_, why=why: why)
        app = open_page("new_run")
        assert [warned in one.value.replace("\\", "") for one in app.warning] == [True] * bool(warned)
        assert app.button(key="start").disabled is is_off
    monkeypatch.setattr(supervisor, "why_unknown", lambda *_: "TypeError: numpy asks for values")
    app = open_page("new_run")
    app.selectbox(key="model").set_value("manual").run()
    for found, is_open in (
        (None, True),
        (Examined("fails", "the reference failed"), False),
        (Examined("decided"), False),
    ):
        monkeypatch.setattr(supervisor, "examined", lambda *_, found=found: found)
        field(app, "N").set_value("512").run()
        assert ("It is being tried with real data now" in words(app)) is is_open, found


def test_what_an_examination_found_stands_above_start_and_a_remedy_that_is_an_option_is_one_click(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(task: Task, toolchain: str, device: str) -> Examined | None:
        if task.policy.mode == "eval" or task.policy.compare_modules == 2:
            return Examined("decided", varied={"fc.weight": "drawn"}, stays={"table": "is one"}, remarks=("a call",))
        return answers[-1]

    monkeypatch.setattr(supervisor, "estimated", lambda *_: (True, 1))
    monkeypatch.setattr(supervisor, "examined", found)
    answers: list[Examined | None] = [Examined("undecidable", "it draws", ("evaluation mode (--mode eval)", "less"))]
    app = open_page("new_run")
    assert not app.button(key="start").disabled, "a shipped task as it is was examined long ago"
    app.selectbox(key="model").set_value("manual").run()
    field(app, "N").set_value("512").run()
    said = "This task cannot be judged as given: it draws. What mends it: evaluation mode (--mode eval); less."
    assert said in app.warning[0].value.replace("\\", "")
    assert app.button(key="start").disabled
    app.button(key="mend_mode").click().run()
    assert field(app, "Mode").value == "eval"
    judged = "Kernels can be judged on this module. Its checks give these weights other values, too: fc.weight. "
    assert f"{judged}These stay as constructed: table." in told(app)
    assert not app.button(key="start").disabled
    assert "--mode eval" in commands(app)[0]
    field(app, "Mode").set_value("train")
    answers.append(Examined("undecidable", "it drifts", ("comparison module by module (--compare-modules 2), by",)))
    app.run()
    assert not [one for one in app.number_input if one.label == "Compare modules"]
    app.button(key="mend_modules").click().run()
    assert field(app, "Compare modules").value == 2
    assert "Kernels can be judged on this module." in told(app)
    assert "--compare-modules 2" in commands(app)[0]
    field(app, "Compare modules").set_value(0)
    for answer, part in ((None, "Being tried"), (Examined("not examined", "no compiler"), "no compiler")):
        answers.append(answer)
        assert part in told(app.run())
        assert not app.button(key="start").disabled


def told(app: AppTest) -> str:
    return " ".join(one.value for one in app.caption).replace("\\", "")


def test_no_command_is_shown_where_start_is_off(open_page: Open) -> None:
    app = open_page("new_run")
    assert commands(app)
    field(app, "Tensor type").set_value("bf16").run()
    assert app.button(key="start").disabled, "such a variant has no recording"
    assert not commands(app)
    app.selectbox(key="model").set_value("manual").run()
    (command,) = commands(app)
    assert "--dtype bf16" in command
    assert "Replies, which you write" in words(app)
    assert ", plus the time in which you write" in words(app)
    assert "Model calls" not in [one.value.partition("**")[2][:11] for one in app.markdown]


def commands(app: AppTest) -> list[str]:
    return [one.value for one in app.code if one.value.startswith("python -m engine run")]


def test_a_module_that_cannot_be_made_gets_no_command(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "estimated", lambda *_: (True, None))
    monkeypatch.setattr(supervisor, "unusable", lambda *_: "Model() raised ValueError")
    app = open_page("new_run")
    assert "Model() raised ValueError" in words(app).replace("\\", "")
    assert app.button(key="start").disabled
    assert not [one for one in app.code if one.value.startswith("python -m engine run")]


def test_a_size_that_is_not_valid_is_told_and_keeps_start_off(open_page: Open) -> None:
    app = open_page("new_run")
    for text in ("-5", "0", "2.7", "many", ""):
        field(app, "N").set_value(text).run()
        assert "is not valid. Enter a whole number from 1." in app.error[0].value.replace("\\", "")
        assert app.button(key="start").disabled
    field(app, "N").set_value("512").run()
    assert not app.error
    assert not app.button(key="start").disabled
    (command,) = (one.value for one in app.code if one.value.startswith("python -m engine run"))
    assert "--set N=512" in command


def test_a_width_is_offered_where_the_strategy_can_have_one(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "available_models", lambda: ["some-model"])
    app = open_page("new_run")
    assert not [one for one in app.number_input if one.key == "width"]
    app.selectbox(key="strategy").set_value("best_of").run()
    app.number_input(key="width").set_value(65).run()
    assert "65 is not valid" in app.error[0].value
    assert app.button(key="start").disabled
    app.number_input(key="width").set_value(3).run()
    (command,) = (one.value for one in app.code if one.value.startswith("python -m engine run"))
    assert "--width 3" in command
    assert "--weight" not in command
    app.number_input(key="weight").set_value(2.0).run()
    (command,) = (one.value for one in app.code if one.value.startswith("python -m engine run"))
    assert "--weight 2" in command


def test_a_run_is_estimated_from_those_before_it_within_its_limits(home: Path) -> None:
    (home / "prices.toml").write_text('["some-model"]\ninput = 2.0\noutput = 10.0\n')
    before, spent = PaceRow(2, engine_s=30, calls=2, calls_s=1), TokensRow(calls=9, input=4000, output=1000, seconds=20)
    found = forecast.put_together(before, spent, Budget(depths=9), "some-model")
    assert (found.engine_s, found.calls, found.tokens) == (300 + 20 * 20, 20, 100_000)
    assert found.cost_usd == pytest.approx(20 * (4000 * 2 + 1000 * 10) / 1e6)
    assert forecast.put_together(before, spent, Budget(depths=9, model_calls=5), "some-model").engine_s == 175
    uncounted = forecast.put_together(before, None, Budget(depths=9), "some-model", ["task"])
    assert (uncounted.engine_s, "How many tokens a call takes" in uncounted.why_no_cost) == (310, True)
    assert uncounted.basis.startswith("Estimated from 2 runs: this toolchain, the same task.")
    for runs, told in ((1, "1 run (unfinished):"), (2, "2 runs (1 of them unfinished):")):
        going = replace(before, runs=runs, unfinished=1)
        assert told in forecast.put_together(going, None, Budget(depths=9), "some-model").basis
    assert "How many calls a run makes" in forecast.put_together(None, spent, Budget(), "some-model").why_no_cost
    assert forecast.put_together(before, None, Budget(depths=9), "recorded").engine_s == 300
    unpriced = forecast.put_together(before, spent, Budget(depths=9), "another")
    assert (unpriced.cost_usd, "not in" in unpriced.why_no_cost) == (None, True)
    none_yet = forecast.put_together(None, None, Budget(), "recorded")
    assert none_yet.cost_usd == 0
    assert none_yet.basis.startswith("No run on this toolchain has finished a step so far:")


def test_runs_at_other_sizes_do_not_stand_for_this_one_without_a_word(home: Path, open_page: Open) -> None:
    at = forecast.at_other_sizes
    assert at(['{"N": 256}', '{"N": 512}'], {"N": 512}) == ""
    assert at(['{"N": 256, "M": 8}'], {"N": 512, "M": 8}) == "at N = 256: here it takes longer"
    assert at(['{"N": 256, "M": 8}'], {"N": 512, "M": 4}) == "at N = 256, M = 8: here it may take more or less"
    assert at(['{"N": 256}', '{"N": 128}'], {"N": 64}) == "at other sizes: here it takes less"
    settings = supervisor.new_settings(supervisor.DEMO_TASK, overrides={"N": 256})
    run = samples.write_run(home / "runs", "small", seed=0)
    run.settings_file.unlink()
    run.write_settings(replace(settings, run_id="small"))
    app = open_page("new_run")
    assert "at N = 256: here it takes longer" in words(app).replace("\\", "")
    field(app, "N").set_value("256").run()
    assert "the same task" in told(app)
    assert "here it takes" not in words(app)


def test_a_file_on_this_machine_is_described_and_has_a_live_model_or_a_person(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(module_field.EXAMPLE)
    app = open_page("new_run")
    field(app, "Module from").set_value(module_field.OWN_FILE).run()
    app.text_input(key="task_path").set_value(str(tmp_path / "mine.py")).run()
    assert app.selectbox(key="model").value == "manual"
    assert "recorded replies are of shipped tasks alone. With *manual*" in words(app)
    assert "syntax is fine" in words(app)
    assert "activation or elementwise, guessed from its code; the first reply decides; no sizes" in words(app)
    assert "It is saved" not in words(app)
    assert not app.button(key="start").disabled


def test_a_module_that_is_no_task_is_refused_and_one_without_a_name_is_not_taken_for_another(home: Path) -> None:
    with pytest.raises(TaskError, match="^my_own is not a KernelBench-style task: it does not define get_init_inputs"):
        supervisor.module_of(module_field.EXAMPLE.partition("def get_init")[0], "my own")
    texts = (module_field.EXAMPLE, module_field.EXAMPLE + "# another\n")
    assert len({supervisor.module_of(text, name).name for text in texts for name in ("", "swish")}) == 4
    assert wording.task(supervisor.module_of(texts[0], "").name) == "Relu (your module)"
    named = texts[0].replace("class Model", "class RowNorm(nn.Module):\n    pass\n\n\nclass Model")
    assert supervisor.module_of(named, "").title == "row norm (your module)"
    supervisor.keep_module(replace(supervisor.module_of(texts[0], ""), path=home / "elsewhere.py"))
    assert list(home.rglob("*.py")) == []


def test_a_pasted_module_stays_in_its_box_has_a_live_model_or_a_person_and_is_kept_by_the_start(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The box is a component, into which nothing can be typed here; it begins with the text that it is given."""
    typed, begins_with = [module_field.EXAMPLE], list[str]()

    def box(name: str, text: str, placeholder: str, key: str) -> str:
        begins_with.append(text)
        return typed.pop() if typed else text

    def tell(settings: RunSettings) -> None:
        raise EngineError(f"{settings.task_name} would start")

    monkeypatch.setattr(editor, "draw", box)
    monkeypatch.setattr(supervisor, "see_that_it_fits", lambda settings, task: None)
    monkeypatch.setattr(supervisor, "start", tell)
    app = open_page("new_run")
    field(app, "Module from").set_value(module_field.PASTED).run()
    field(app, "Name").set_value("square_matmul").run()
    assert app.selectbox(key="model").options == ["manual"]
    assert "recorded replies are of shipped tasks alone. With *manual* you write each reply yourself" in words(app)
    assert "syntax is fine" in words(app)
    assert not app.button(key="start").disabled
    assert [link.proto.label for link in app.get("page_link")] == ["Connect a model"]
    field(app, "Module from").set_value(module_field.SHIPPED).run()
    assert app.selectbox(key="model").value == "recorded"
    assert "recorded replies are of shipped tasks alone" not in words(app)
    saved_models.keep(SavedModel("work", ModelOptions(model="m", base_url="http://localhost:9/v1")))
    field(app, "Module from").set_value(module_field.PASTED).run()
    assert app.selectbox(key="model").options == ["work", "manual"]
    assert app.selectbox(key="model").value == "work"
    assert begins_with[-1] == module_field.EXAMPLE
    assert "activation or elementwise, guessed from its code; the first reply decides; no sizes" in words(app)
    assert field(app, "Name").value == "square_matmul"
    assert list(home.rglob("*.py")) == []
    assert not commands(app)
    assert "can be copied here once the module is kept" in words(app)
    app.button(key="start").click().run()
    assert "square_matmul_v" in app.error[0].value.replace("\\", "")
    (kept,) = (home / "modules").rglob("*.py")
    assert kept.read_text() == module_field.EXAMPLE


def test_a_module_whose_shapes_do_not_fit_is_tried_for_real_and_starts_no_run(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "torch.relu(x) @ torch.ones(64, 32)"
    wrong = module_field.EXAMPLE.replace("torch.relu(x) * 2", line)
    monkeypatch.setattr(editor, "draw", lambda *_, **__: wrong)
    app = open_page("new_run")
    field(app, "Module from").set_value(module_field.PASTED).run()
    assert not app.button(key="start").disabled, "nothing is known of it yet"
    app.button(key="start").click().run()
    said = app.error[0].value.replace("\\", "")
    assert said.startswith(f"No run is started: the reference failed: line 7 of the task (`return {line}`)")
    assert "shapes cannot be multiplied (1024x1024 and 64x32)" in said
    assert not any(folder.all_runs())


def test_a_problem_is_uploaded_as_its_two_files_together(open_page: Open, tmp_path: Path) -> None:
    there = problem(tmp_path / "norm", workload(8), workload(16))
    app = open_page("new_run")
    app.session_state["task_source"] = module_field.UPLOADED
    app.run()
    definition = ("definition.json", (there / "definition.json").read_bytes(), "application/json")
    app.file_uploader[0].upload(*definition).run()
    assert wording.plain("Upload one Python file, or definition.json and workload.jsonl") in words(app)
    workloads = ("workload.jsonl", (there / "workload.jsonl").read_bytes(), "application/jsonl")
    app.file_uploader[0].upload(*definition).upload(*workloads).run()
    assert not app.exception
    assert "2 workloads, each checked and timed" in words(app)


def test_a_file_that_is_uploaded_after_a_bad_one_takes_its_place(open_page: Open) -> None:
    app = open_page("new_run")
    app.session_state["task_source"] = module_field.UPLOADED
    app.run()
    bad = ("bad.py", b"class Model: pass", "text/x-python")
    app.file_uploader[0].upload(*bad).run()
    assert "does not define get_inputs" in app.error[0].value.replace("\\", "")
    good = ("good.py", module_field.EXAMPLE.encode(), "text/x-python")
    app.file_uploader[0].upload(*bad).upload(*good).run()
    assert not app.error
    assert wording.plain("Only good.py counts, as uploaded last; left out: bad.py.") in words(app)


def test_a_run_like_another_begins_with_its_task_sizes_model_method_and_limits(home: Path, open_page: Open) -> None:
    settings = supervisor.new_settings(
        "softmax", model="manual", strategy="coder_judge", overrides={"dim": 512}, precision="tf32",
        budget=Budget(depths=4, model_calls=9, tokens=7000, wall_s=600.0, limit_share=0.9),
    )  # fmt: skip
    RunFolder(home / "runs" / settings.run_id).write_settings(settings)
    app = open_page("new_run", like=settings.run_id)
    assert not app.exception
    assert [field(app, label).value for label in ("Model", "Strategy", "dim", "Precision")] == [
        "manual", "coder_judge", "512", "tf32",
    ]  # fmt: skip
    assert field(app, "What to optimise").value.startswith("Softmax")
    (said,) = (code.value for code in app.code if "engine run" in code.value)
    for flags in (
        "run softmax", "--model manual", "--set dim=512", "--strategy coder_judge", "--precision tf32", "--depths 4",
        "--max-calls 9", "--max-tokens 7000", "--max-minutes 10", "--stop-at 0.9",
    ):  # fmt: skip
        assert flags in said, said
    own = replace(settings, run_id="own-run", task_name="own", task_source=module_field.EXAMPLE)
    RunFolder(home / "runs" / own.run_id).write_settings(own)
    app = open_page("new_run", like=own.run_id)
    assert field(app, "Module from").value == module_field.PASTED
    assert app.session_state["pasted_text"] == module_field.EXAMPLE
    assert "syntax is fine" in words(app)
    assert "no run can be taken as a pattern" in words(open_page("new_run", like="gone")).lower()


def test_the_page_of_a_run_that_has_ended_leads_to_a_new_one_like_it(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "ended", depths=3)
    app = open_page("run", run="ended").button(key="like:ended").click().run()
    assert not app.exception
    assert app.title[0].value == "New run"
    assert "are those of [ended](run?run=ended)" in words(app)


def test_what_was_chosen_is_there_after_a_visit_to_another_page_and_not_in_a_run_like_another(
    home: Path, open_page: Open
) -> None:
    app = open_page("new_run")
    app.selectbox(key="strategy").set_value("best_of").run()
    app.text_input(key="max_calls").set_value("33").run()
    app.switch_page("models.py").run()
    app.switch_page("new_run.py").run()
    assert not app.exception
    assert (app.selectbox(key="strategy").value, app.text_input(key="max_calls").value) == ("best_of", "33")
    samples.write_run(home / "runs", "r1", depths=2)
    app.query_params["like"] = "r1"
    assert app.run().selectbox(key="strategy").value == "cutegen"


def test_an_uploaded_file_is_there_after_a_visit_to_another_page_until_it_is_removed(open_page: Open) -> None:
    app = open_page("new_run")
    app.session_state["task_source"] = module_field.UPLOADED
    app.run()
    app.file_uploader[0].upload("mine.py", module_field.EXAMPLE.encode(), "text/x-python").run()
    app.switch_page("models.py").run()
    app.switch_page("new_run.py").run()
    assert not app.exception
    assert "Uploaded before: mine.py" in words(app).replace("\\", "")
    assert "syntax is fine" in words(app)
    app.button(key="remove:module_file").click().run()
    assert "syntax is fine" not in words(app)
    assert "Uploaded before" not in words(app)


def test_no_field_of_the_form_is_forgotten_while_another_page_is_shown(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each choice brings fields of its own; together they are all that there are, so no kept key is out of date."""
    monkeypatch.setattr(supervisor, "available_models", lambda: ["recorded", "manual", "a-model"])
    monkeypatch.setattr(supervisor, "available_toolchains", lambda: {"cpu": "", "cuda": ""})
    app, seen = open_page("new_run"), set[str]()
    square = next(task.path for task in tasks.shipped() if task.name == supervisor.DEMO_TASK)
    app.session_state[f"compare_modules:{square}"] = 1
    for choice in CHOICES:
        for key, value in choice.items():
            app.session_state[key] = value
        app.run()
        assert not app.exception
        seen |= {str(field.key) for kind in FORM_FIELDS for field in app.get(kind)}
    assert {key for key in seen if not kept.is_kept(key)} == {"module_name"}  # kept as "pasted_name"
    unseen = {key for key in kept.FIELDS if key not in seen} | {
        kind for kind in kept.KINDS if not any(key.startswith(kind) for key in seen)
    }
    assert unseen == {"uploaded:"}


def test_recorded_replies_that_a_saved_model_would_leave_unused_are_one_click_away(home: Path, open_page: Open) -> None:
    saved_models.keep(SavedModel("mine", program=saved_models.Program(("cat",))))
    app = open_page("new_run")
    assert app.selectbox(key="model").value == "mine"
    assert "**mine** writes the kernels. Recorded replies of this task exist" in words(app)
    assert "recording not used" in words(app)
    app.button(key="use_recording").click().run()
    assert app.selectbox(key="model").value == "recorded"
    assert "recorded replies" in words(app)
    assert "writes the kernels" not in words(app)
    assert "--model recorded" in commands(app)[0]


def test_start_says_that_the_module_is_being_checked_and_a_file_that_does_not_exist_is_told_as_one(
    open_page: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(supervisor, "estimated", lambda *_: (True, 1))
    monkeypatch.setattr(supervisor, "why_unknown", lambda *_: "RuntimeError: shapes do not fit")
    monkeypatch.setattr(supervisor, "examined", lambda *_: None)
    app = open_page("new_run")
    app.selectbox(key="model").set_value("manual").run()
    field(app, "N").set_value("512").run()
    assert app.button(key="start").label == "Start run (module is being checked)"
    assert "It may still work" not in words(app)
    monkeypatch.setattr(supervisor, "estimated", lambda *_: (False, None))
    assert app.run().button(key="start").label == "Start run (memory is being checked)"
    monkeypatch.setattr(supervisor, "estimated", lambda *_: (True, 1))
    monkeypatch.setattr(supervisor, "examined", lambda *_: Examined("decided"))
    assert app.run().button(key="start").label == "Start run"
    field(app, "Module from").set_value(module_field.OWN_FILE).run()
    gone = tmp_path / "gone.py"
    app.text_input(key="task_path").set_value(str(gone)).run()
    shown = [one.value.replace("\\", "") for one in (*app.error, *app.warning)]
    assert shown == [f"The file {gone} does not exist", f"The module cannot be used: the file {gone} does not exist"]


def test_a_module_that_cannot_be_parsed_is_told_the_same_beside_start(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor, "draw", lambda *_, **__: "class Model(:\n")
    app = open_page("new_run")
    field(app, "Module from").set_value(module_field.PASTED).run()
    (error,), (warning,) = ([one.value.replace("\\", "") for one in shown] for shown in (app.error, app.warning))
    assert "line 1" in error
    assert warning.removeprefix("The module cannot be used: ").lower() == error.lower()


def test_an_estimate_for_a_recording_counts_its_calls() -> None:
    counts = [supervisor.recorded_calls("square_matmul", depths, "cpu") for depths in (10, 3, 0)]
    assert counts == [16, 8, 3]
    assert supervisor.recorded_calls("square_matmul", 10, "cpu", "best_of") is None
    first_minute = PaceRow(1, engine_s=50, calls=4, calls_s=8, unfinished=1)
    expected = forecast.put_together(first_minute, None, Budget(depths=10), "recorded", recorded=16)
    assert (expected.calls, expected.engine_s) == (16, 50 * 11 * 16 / 44)
    assert "A busy machine takes longer" in expected.basis
    assert expected.basis.endswith("The calls are those of the recording.")
