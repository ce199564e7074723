"""The page of the models: a connection is tried with a real call to a real server; figures by model."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from engine import connecting, supervisor
from pages.parts import access, index, wording
from pages.parts.models import by_model, calibration
from pages.parts.status import outcome
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries import GroupBy
from storage.run import saved_models
from storage.run.models import ModelOptions
from storage.run.saved_models import KeyPlace, SavedModel
from tests import samples
from tests.chat_server import fails, says, serving
from tests.pages.conftest import Open, words

BEYOND = "this server listens beyond this machine and asks for no login"
KEY = "sk-planted-40c1d7e2"


def fill(app: AppTest, **values: str) -> None:
    fields = {one.label: one for one in app.text_input}
    for label, value in values.items():
        fields[label.replace("_", " ")].set_value(value)
    app.run()


def test_a_connection_is_tried_with_one_small_call(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "prices.toml").write_text('["small"]\ninput = 1000.0\noutput = 1000.0\n')
    monkeypatch.setenv("MY_KEY", "secret-key")
    with serving(says("re", "ady"), fails(401, "no such key")) as server:
        app = open_page("models")
        assert app.button(key="try_model").disabled is False
        fill(app, Address=server.address, Model="small", Or_the_variable_that_holds_it="MY_KEY")
        app.button(key="try_model").click().run()
        assert "replied “ready”" in words(app)
        assert "cost $0.018" in words(app).replace("\\", "")
        fill(app, Key=KEY)
        app.button(key="try_model").click().run()
        assert "No reply." in words(app)
        assert "no such key" in words(app)
        fill(app, Address="not an address")
        assert app.button(key="try_model").disabled
        assert "the address (base_url) must look like http://localhost:8000/v1" in words(app).replace("\\", "")
        fill(app, Model="")
        assert "Test* and *Save* are off: name the model first." in words(app)
        assert "secret-key" not in words(app) + (text := told(app))
        assert KEY not in text.replace(f"value='{KEY}'", "")
    assert server.keys == ["secret-key", KEY]
    assert len(str(server.requests[0])) < 400


def test_a_model_that_answers_another_word_can_be_used_and_has_no_tick(home: Path, open_page: Open) -> None:
    with serving(says("hello there")) as server:
        app = open_page("models")
        fill(app, Address=server.address, Model="small")
        app.button(key="try_model").click().run()
    assert not app.success
    (warning,) = (warning.value.replace("\\", "") for warning in app.warning)
    assert "That is not the word it was asked for, “ready”: it may not follow instructions." in warning
    assert "Runs can use it all the same." in warning


def told(app: AppTest) -> str:
    return " ".join(str(one) for one in app.main)


def test_a_model_is_saved_with_its_key_tried_offered_and_removed(home: Path, open_page: Open) -> None:
    with serving(says("ready")) as server:
        app = open_page("models")
        fill(app, Address=server.address, Model="small")
        fill(app, Name="work", Key=KEY, Options="window=64000")
        app.button(key="save_model").click().run()
        assert not app.error
        assert "**work** · endpoint · small at" in words(app)
        assert "key in a file that only this user may read" in words(app)
        assert not [one for one in app.text_input if one.value == KEY]
        app.button(key="try:work").click().run()
        assert "replied “ready”" in words(app)
    assert server.keys == [KEY]
    assert supervisor.available_models() == ["work", "recorded", "manual"]
    (entry,) = saved_models.read()
    assert entry.endpoint is not None
    assert (entry.endpoint.window, entry.key) == (64000, KeyPlace.FILE)
    holders = [file for file in home.rglob("*") if file.is_file() and KEY in file.read_text(errors="replace")]
    assert holders == [home / "keys" / "work"]
    app.button(key="remove:work").click().run()
    assert "**work**" not in words(app)
    assert saved_models.read() == ()
    assert list((home / "keys").iterdir()) == []


def test_a_model_without_a_name_of_its_own_is_called_as_at_its_endpoint(home: Path, open_page: Open) -> None:
    app = open_page("models")
    fill(app, Model="org/small:1")
    app.button(key="save_model").click().run()
    (entry,) = saved_models.read()
    assert entry.name == "org-small-1"
    assert entry.endpoint is not None
    assert entry.endpoint.model == "org/small:1"


def test_a_program_is_saved_from_its_profile_and_says_that_it_was_not_tried(home: Path, open_page: Open) -> None:
    app = open_page("models")
    app.button_group(key="where").set_value("a program").run()
    assert "were not tried against the real program" in words(app)
    assert "write its command first" in words(app)
    app.selectbox[0].set_value("llm").run()
    fill(app, Command="sh -c 'echo ready'", Time_limit_in_s="9")
    app.button(key="try_model").click().run()
    assert "replied “ready”" in words(app)
    app.button(key="save_model").click().run()
    (entry,) = saved_models.read()
    assert entry.program is not None
    assert (entry.name, entry.program.command, entry.program.timeout_s) == ("llm", ("sh", "-c", "echo ready"), 9.0)


def test_a_program_is_called_as_its_file_and_a_test_needs_no_name(home: Path, open_page: Open) -> None:
    app = open_page("models")
    app.button_group(key="where").set_value("a program").run()
    fill(app, Command="sh -c 'echo ready'", Name="my model")
    assert (app.button(key="try_model").disabled, app.button(key="save_model").disabled) == (False, True)
    assert "*Save* is off: 'my model' cannot name a model" in words(app).replace("\\", "")
    app.button(key="try_model").click().run()
    assert "replied “ready”" in words(app)
    (home / "__").write_text("")
    fill(app, Command=f"{home}/__", Name="")
    assert "*Save* is off: give it a name to save it." in words(app)
    fill(app, Command="python3 /opt/My_model.py --quiet")
    app.button(key="save_model").click().run()
    assert [entry.name for entry in saved_models.read()] == ["My_model"]


def test_a_program_is_saved_as_an_agent_with_its_evaluations(home: Path, open_page: Open) -> None:
    app = open_page("models")
    app.button_group(key="where").set_value("a program").run()
    fill(app, Command="sh -c 'echo ready'", Name="mine")
    next(group for group in app.button_group if group.label == "What it does").set_value("works as an agent").run()
    app.number_input[0].set_value(5).run()
    app.button(key="try_model").click().run()
    assert "replied “ready”" in words(app)
    app.button(key="save_model").click().run()
    (entry,) = saved_models.read()
    assert (entry.kind, entry.program and entry.program.evaluations) == (saved_models.ModelKind.AGENT, 5)
    assert "'echo ready' · 5 evaluations a call" in words(app)


@pytest.mark.parametrize(
    ("variable", "address", "said"),
    [
        ("1", "127.0.0.1", "this server is read-only"),
        ("", "0.0.0.0", BEYOND),
        ("", "", BEYOND),
    ],
)
def test_nothing_is_saved_on_a_server_that_anybody_can_reach(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, variable: str, address: str, said: str
) -> None:
    saved_models.keep(SavedModel("work", ModelOptions(model="m", base_url="http://localhost:9/v1")))
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", variable)
    monkeypatch.setattr(streamlit, "get_option", {"server.address": address}.get)
    app = open_page("models")
    keys = ("try_model", "save_model", "try:work")
    assert [app.button(key=key).disabled for key in keys] == [True] * 3
    assert f"*Test* and *Save* are off: {said}" in words(app).replace("\\", "")


def test_a_login_makes_saving_possible_on_any_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlit, "get_option", {"server.address": "0.0.0.0"}.get)
    assert access.why_nothing_is_saved()
    monkeypatch.setattr(access, "is_login_configured", lambda: True)
    assert access.why_nothing_is_saved() == ""


def test_a_key_is_refused_where_programs_could_read_it(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_hidden_by", lambda: (None, "this system has neither namespaces nor Landlock"))
    app = open_page("models")
    fill(app, Model="org/small:1", Key=KEY)
    app.button(key="save_model").click().run()
    assert "No key is saved here, since kernels and programs could read it" in app.error[0].value
    assert saved_models.read() == ()
    assert not (home / "keys").exists()


def test_figures_by_model_are_those_of_its_runs(home: Path) -> None:
    samples.write_run(home / "runs", "one", seed=0, created_at=time.time())
    samples.write_run(home / "runs", "two", seed=1, created_at=time.time())
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        (found,) = queries.model_figures(db)
        runs = [run for name in ("one", "two") if (run := queries.run(db, name))]
    assert found.runs == 2
    assert found.calls == sum(run.model_calls for run in runs)
    assert found.tokens == sum(run.tokens or 0 for run in runs)
    best = max(runs, key=lambda run: run.best_speedup or 0)
    assert (found.best_speedup, found.best_noise) == (best.best_speedup, best.best_noise)
    assert 0 < found.passed < found.judged
    assert found.passed <= found.compiled < found.built
    assert 0 < found.wins <= found.passed
    of_person = by_model.cells(replace(found, model="manual", call_s=0.0, calls_s=0.0))
    for name in ("call_s", "win_s"):
        assert by_model.cells(found)[name] != wording.NONE == of_person[name]


def test_a_best_speedup_whose_interval_includes_one_is_no_gain_anywhere(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "noisy", seed=0, created_at=time.time())
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for timed in (line["event"]["result"] for line in lines if line["kind"] == "Timed"):
        factors = [(0.9, 1.2, 1.3)[i % 3] for i in range(len(timed["baseline_ms"]))]
        timed["candidate_ms"] = [ms / factor for ms, factor in zip(timed["baseline_ms"], factors, strict=True)]
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown, db = open_page("run", run="noisy"), index.current()
    (found,), run = queries.model_figures(db), queries.run(db, "noisy")
    (group,) = queries.groups(db, GroupBy.MODEL)
    assert run
    assert (found.best_low, found.best_high) == (group.best_low, group.best_high) == (run.best_low, run.best_high)
    assert (found.best_low or 0) < 1 < (found.best_speedup or 0)
    assert found.wins == 0
    assert by_model.cells(found)["best"]["tone"] == "strong"  # type: ignore[index]
    assert outcome.headline(db, run).endswith("not measurably faster than eager PyTorch")
    assert "The best kernel is not measurably faster than eager PyTorch" in words(shown)
    samples.write_run(home / "runs", "faster", seed=1)
    both = {"noisy": shown, "faster": open_page("run", run="faster")}
    kinds = {key: app.button(f"continue:{key}").proto.type for key, app in both.items()}
    assert kinds == {"noisy": "primary", "faster": "secondary"}, "what to do first: search on"
    assert "beyond the noise) on " in supervisor.exported(folder, run.best_candidate_id).partition("\n")[0]


def test_every_column_says_what_it_is_when_it_is_pointed_at() -> None:
    for columns in (by_model.COLUMNS, calibration.COLUMNS):
        assert [column.label for column in columns if not column.help] == []
