"""New run: what its kernels are told over beside eager, chosen and given."""

from __future__ import annotations

import shlex

from streamlit.testing.v1 import AppTest

from engine.cli.arguments import parse
from engine.cli.subcommands import settings_of
from engine.run_settings import new_settings
from pages.parts import wording
from pages.parts.new_run.baselines_form import PASTED, UPLOADED
from pages.parts.status import settings_list
from storage.results.baselines import OwnBaseline
from tests.pages.conftest import Open, words

OWN = "from torch import nn\n\nclass Baseline(nn.Module):\n    pass\n"


def command(app: AppTest) -> list[str]:
    shown = next(code.value for code in app.code if code.value.startswith("python -m engine run"))
    return shlex.split(shown.replace("\\\n", " "))


def test_usual_baselines_are_chosen_and_none_that_needs_a_gpu_is_offered_on_a_processor(open_page: Open) -> None:
    app = open_page("new_run")
    (field,) = app.multiselect
    assert (field.options, field.value) == (["torch.compile", "torch.compile max-autotune"], ["compile"])
    assert "--baselines" not in command(app)
    field.set_value(["max-autotune", "compile"]).run()
    given = command(app)
    assert given[given.index("--baselines") + 1] == "compile,max-autotune"
    assert settings_of(parse(given[3:])).policy.baselines == ("compile", "max-autotune")
    app.multiselect[0].set_value([]).run()
    given = command(app)
    assert given[given.index("--baselines") + 1] == "none"


def test_a_file_of_ones_own_stands_in_the_command_and_a_wrong_one_is_told_and_keeps_the_run_from_starting(
    open_page: Open,
) -> None:
    app = open_page("new_run")
    app.session_state["own_baseline_source"] = UPLOADED
    app.run()
    app.file_uploader[0].upload("mine.py", b"x = 1", "text/x-python").run()
    said = wording.sentence("mine.py defines no class Baseline: write one")
    assert any(said.rstrip(".") in error.value for error in app.error)
    assert app.button(key="start").disabled
    app.file_uploader[0].upload("mine.py", OWN.encode(), "text/x-python").run()
    assert not app.error
    given = command(app)
    assert given[given.index("--baseline") + 1] == "mine.py"


def test_a_pasted_baseline_has_an_example_until_it_is_written(open_page: Open) -> None:
    app = open_page("new_run")
    app.session_state["own_baseline_source"] = PASTED
    app.run()
    assert not app.exception
    assert "--baseline" not in command(app)
    assert "A file with a class Baseline" in words(app)


def test_a_runs_settings_name_the_baselines_that_were_chosen_and_ones_own() -> None:
    usual = dict(settings_list.rows(new_settings("softmax", model="manual")))
    assert not {"Baselines", "Baseline of one's own"} & set(usual)
    own = OwnBaseline("mine.py", OWN)
    chosen = new_settings("softmax", model="manual", baselines="compile,max-autotune", own_baseline=own)
    told = dict(settings_list.rows(chosen))
    assert told["Baselines"] == "eager PyTorch, torch.compile, torch.compile max-autotune"
    assert told["Baseline of one's own"] == "mine.py"
    alone = dict(settings_list.rows(new_settings("softmax", model="manual", baselines="none")))
    assert alone["Baselines"] == "eager PyTorch"
