"""What `show --json`, `suite show --json` and `network rank --json` print holds to the schemas under docs/json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import engine.__main__
from engine.shown import runs, schemas
from storage.networks.records import Verdict
from storage.results.hardware_limit import HardwareLimit
from storage.run import events as ev
from storage.run.folder import RunFolder
from tests import sample_networks, sample_suites
from tests.engine.contexts import open_context
from tests.samples import write_run

DOCUMENT = schemas.FOLDER.parent / "json.md"
# What these printed before they had a version: programs read it.
BEFORE = {
    "show": "run name tags note archived task state reason class toolchain model depth depths best speedup "
    "speedup_interval second_baseline baselines model_calls tokens cost_usd engine_s damage rules judged strategy "
    "strategy_options prompts prompt_pack knowledge tune compiler_hint start width weight deployment sweeps attempts "
    "finished_depths",
    "network_rank": "network eager_ms compiled_ms alternative ceiling regions",
    "suite_show": "name title state reason cells finished counts spent repeats cells_of",
}


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert engine.__main__.main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def held(name: str, value: Any) -> Any:
    """The value, which holds to the shipped schema of that name."""
    jsonschema.validate(value, json.loads((schemas.FOLDER / f"{name}.schema.json").read_text()))
    assert value["version"] == 1
    assert set(BEFORE[name].split()) <= set(value)
    return value


@pytest.mark.parametrize("name", schemas.FORMS)
def test_a_shipped_schema_is_that_of_the_form(name: str) -> None:
    shipped = (schemas.FOLDER / f"{name}.schema.json").read_text()
    assert shipped == schemas.text(name), "write them anew: python -m engine.shown.schemas"


@pytest.mark.parametrize("name", schemas.FORMS)
def test_a_value_of_another_version_or_with_less_in_it_does_not_hold_to_a_schema(name: str) -> None:
    schema = json.loads(schemas.text(name))
    form = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    assert form["properties"]["version"] == {"enum": [1]} or form["properties"]["version"]["enum"] == [1]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1}, schema)


@pytest.mark.parametrize("ending", ["finished", "new", "waiting", "stopped"])
def test_a_run_tells_its_best_its_last_failures_what_to_try_and_what_is_left(
    home: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    folder = write_run(home / "runs", ending=ending)
    told = held("show", printed(capsys, "show", folder.run_id))
    failed = [row["candidate"] for row in told["attempts"] if row["verdict"] not in (None, "passed")]
    assert [row["candidate"] for row in told["last_failures"]] == failed[-3:]
    assert all(row["failure"] for row in told["last_failures"])
    assert told["left"][0]["limit"] == "depths"
    assert told["left"][0]["left"] == told["depths"] - told["depth"]
    assert folder.run_id in told["next"]
    assert (told["to_try"] is None) is (told["best"] is None)
    if told["best"]:
        assert told["to_try"]["techniques"]


def test_a_run_whose_kernel_beat_the_measured_limit_tells_no_limit(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    measured = HardwareLimit("d", 100.0, 1000.0, 100_000_000, 0)
    told = []
    for limit in (measured, measured.raised_to(0.99), measured.raised_to(0.5)):
        context.emit(ev.LimitMeasured(limit))
        told.append(runs.form(context.folder).limit_ms)
    assert told == [1.0, pytest.approx(0.99), None]


def test_what_a_run_tells_to_do_next_is_a_command_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(home / "runs", ending="stopped")
    told = printed(capsys, "show", folder.run_id)
    assert told["next"] == f"It was stopped: `python -m engine resume {folder.run_id}` goes on where it stopped."


def test_a_suite_tells_its_best_cell_what_failed_and_what_a_runner_would_do(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = sample_suites.write_suite(home, tasks=2, arms=2, repeats=1, iterations=40)
    told = held("suite_show", printed(capsys, "suite", "show", suite.name))
    assert told["best"]["speedup"] == max(cell["speedup"] or 0 for cell in told["cells_of"])
    assert len(told["to_try"]) == len([cell for cell in told["cells_of"] if cell["state"] != "finished"])
    assert suite.name in told["next"]


def test_a_network_tells_which_regions_are_worth_a_kernel_and_what_to_do_for_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sample_networks.network()
    sample_networks.write_network(found)
    told = held("network_rank", printed(capsys, "network", "rank", found.name))
    worth = [row["region"] for row in told["regions"] if row["is_worth_it"]]
    assert told["to_try"] == worth
    assert told["next"].endswith(
        f"`python -m engine network optimise {found.name}` searches kernels for {', '.join(worth)}."
    )
    assert "network rank tiny --limits" in told["next"], "some have no limit yet"


def test_a_network_whose_kernels_were_put_back_tells_which_were_kept_and_why_others_were_not(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = sample_networks.network()
    sample_networks.write_proof(sample_networks.write_network(found), sample_networks.Left.WHOLE)
    told = held("network_rank", printed(capsys, "network", "rank", found.name))
    kept = [region for region, (verdict, _, _) in sample_networks.TRIALS.items() if verdict is Verdict.KEPT]
    assert told["best"] == kept
    assert {row["region"] for row in told["last_failures"]} == set(sample_networks.TRIALS) - set(kept)
    assert all(row["runs"] for row in told["regions"] if row["region"] in sample_networks.TRIALS)


def test_every_field_of_a_form_is_described() -> None:
    text = DOCUMENT.read_text()
    for name in schemas.FORMS:
        schema = json.loads(schemas.text(name))
        fields = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
        assert [field for field in fields if f"`{field}`" not in text] == []
        assert f"(json/{name}.schema.json)" in text


def test_a_run_that_cannot_be_read_is_an_error_and_no_form(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder: RunFolder = write_run(home / "runs")
    folder.settings_file.write_text("{")

    assert engine.__main__.main(["show", folder.run_id, "--json"]) == 2
    assert capsys.readouterr().out == ""
