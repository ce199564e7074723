"""The page of the models: a connection is tried with a real call to a real server; figures by model."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from engine import supervisor
from pages.parts import index
from pages.parts.models import by_model
from pages.parts.status import outcome
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries import GroupBy
from tests import samples
from tests.chat_server import fails, says, serving
from tests.pages.conftest import Open, words


def test_a_connection_is_tried_with_one_small_call(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "prices.toml").write_text('["small"]\ninput = 1000.0\noutput = 1000.0\n')
    monkeypatch.setenv("MY_KEY", "secret-key")
    with serving(says("re", "ady"), fails(401, "no such key")) as server:
        app = open_page("models")
        assert app.button(key="try_model").disabled is False
        fields = {one.label: one for one in app.text_input}
        fields["Address"].set_value(server.address)
        fields["Model"].set_value("small")
        fields["Variable that holds the key"].set_value("MY_KEY")
        app.button(key="try_model").click().run()
        assert "replied “ready”" in words(app)
        assert "cost $0.018" in words(app).replace("\\", "")
        app.button(key="try_model").click().run()
        assert "No reply." in words(app)
        assert "no such key" in words(app)
        assert "secret-key" not in words(app)
        assert f"OPENAI_BASE_URL={server.address}" in app.code[0].value
        next(one for one in app.text_input if one.label == "Address").set_value("not an address")
        app.button(key="try_model").click().run()
        said = app.error[0].value.replace("\\", "")
        assert said == "The address (base_url) must look like http://localhost:8000/v1."
        next(one for one in app.text_input if one.label == "Model").set_value("").run()
        assert app.button(key="try_model").disabled
        assert "Test* is off: name the model first." in words(app)
    assert server.keys == ["secret-key"] * 2
    assert len(str(server.requests[0])) < 400


def test_figures_by_model_are_those_of_its_runs(home: Path) -> None:
    samples.write_run(home / "runs", "one", seed=0, created_at=time.time())
    samples.write_run(home / "runs", "two", seed=1, created_at=time.time())
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        (found,) = queries.model_figures(db)
        runs = [run for name in ("one", "two") if (run := queries.run(db, name))]
    assert found.runs == 2
    assert found.calls == sum(run.model_calls for run in runs)
    assert found.tokens == sum(run.tokens for run in runs)
    best = max(runs, key=lambda run: run.best_speedup or 0)
    assert (found.best_speedup, found.best_noise) == (best.best_speedup, best.best_noise)
    assert 0 < found.passed < found.judged
    assert found.passed <= found.compiled < found.built
    assert 0 < found.gains <= found.passed


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
    assert found.gains == 0
    assert by_model.cells(found)["best"]["tone"] == "strong"  # type: ignore[index]
    assert outcome.headline(db, run).endswith("not faster than eager PyTorch beyond the noise")
    assert "The best kernel is not faster than eager PyTorch" in words(shown)
    assert "beyond the noise) on " in supervisor.exported(folder, run.best_candidate_id).partition("\n")[0]
