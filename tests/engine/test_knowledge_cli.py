"""What runs have learned, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

import engine.__main__
from storage.knowledge import files
from storage.knowledge.records import Outcome
from tests.storage.knowledge_rows import attempt, change, state, technique


class Said(Protocol):
    """Runs a verb of `knowledge`; what it prints, or what is wrong where another code is expected."""

    def __call__(self, *words: str, code: int = 0) -> str: ...


KNOWN = change("start", states=(state("bound"),), techniques=(technique("tile"), technique("fuse")))
ROWS = [
    attempt(1, state="bound", predicted_gain=1.2, over_eager=4.2, over_best=2.1),
    attempt(2, Outcome.SLOWER, state="bound", device="H200"),
    *(attempt(number, Outcome.NOT_COMPILED, technique="fuse", state="bound") for number in range(3, 15)),
]


@pytest.fixture(autouse=True)
def known(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    files.append_revision(KNOWN)
    files.append_evidence(ROWS)


@pytest.fixture
def knowledge(capsys: pytest.CaptureFixture[str]) -> Said:
    def said(*words: str, code: int = 0) -> str:
        assert engine.__main__.main(["knowledge", *words]) == code
        told = capsys.readouterr()
        return told.err if code else told.out

    return said


def test_states_and_techniques_are_listed_with_their_figures(knowledge: Said) -> None:
    found = json.loads(knowledge("list", "--json"))
    assert found.keys() == {"states", "techniques"}
    techniques = {row["name"]: row for row in found["techniques"]}
    states = {row["name"]: row for row in found["states"]}
    assert len(techniques) == len(files.load().techniques)
    assert techniques["fuse"]["figures"]["not_compiled"] == 12
    assert techniques["fuse"]["figures"]["is_negative"]
    assert (states["bound"]["attempts"], states["bound"]["known_techniques"]) == (14, ["fuse", "tile"])
    told = knowledge("list")
    assert "bottleneck" in told
    assert "tile" in told
    in_state = json.loads(knowledge("list", "--state", "bound", "--device", "H200", "--json"))["techniques"]
    assert {row["name"]: row["figures"]["attempts"] for row in in_state} == {"tile": 1, "fuse": 0}
    assert "bottleneck" not in knowledge("list", "--state", "bound")
    assert "nothing is known as 'x'" in knowledge("list", "--state", "x", code=2)


def test_a_technique_is_shown_with_every_place_and_its_last_attempts(knowledge: Said) -> None:
    told = knowledge("show", "fuse")
    assert "the last 10 of 12 attempts" in told
    assert "does not compile" in told
    found = json.loads(knowledge("show", "tile", "--json"))
    assert len(found["attempts"]) == found["figures"]["attempts"] == 2
    assert [one["runs"] for one in found["attempts"]] == [["run"], ["run"]]
    assert {name: one["attempts"] for name, one in found["places"].items()} == {
        "in bound": 2,
        "on H200": 1,
        "on Xeon": 1,
    }
    assert [one["over_best"] for one in found["attempts"]] == [2.1, None]
    shown = knowledge("show", "tile")
    assert "over eager" in shown
    assert shown.split("1.2x")[1].split()[:3] == ["1.5x", "4.2x", "2.1x"]
    assert "bottleneck: memory" in knowledge("show", "bound")
    assert [row["name"] for row in json.loads(knowledge("show", "bound", "--json"))["techniques"]] == ["fuse", "tile"]
    assert "knowledge list" in knowledge("show", "none", code=2)


def test_techniques_that_attempts_name_and_nobody_defined_are_told(knowledge: Said) -> None:
    assert "defined nowhere" not in knowledge("list")
    files.append_evidence([attempt(90, technique="my own trick")])
    assert "1 more in attempts, defined nowhere: my own trick" in knowledge("list")
    assert "named by attempts" in knowledge("show", "my own trick")
    found = json.loads(knowledge("show", "my own trick", "--json"))
    assert (found["technique"], found["figures"]["attempts"]) == (None, 1)
    assert "nothing is known" in knowledge("disable", "my own trick", code=2)


def test_changes_are_made_listed_and_taken_back(knowledge: Said) -> None:
    knowledge("disable", "fuse", "--why", "never compiles here")
    assert "disabled" in knowledge("show", "fuse")
    assert "fuse" not in files.load().techniques_of("bound")
    made = json.loads(knowledge("revisions", "--json"))[-1]
    assert (made["why"], made["counts"]) == ("never compiles here", True)
    assert made["revision_id"] in knowledge("revert", made["revision_id"])
    assert "reverted" in knowledge("revisions")
    assert "fuse" in files.load().techniques_of("bound")
    assert "reverted already" in knowledge("revert", made["revision_id"], code=2)
    knowledge("edit", "tile", "--set", "hurts=when small", "--set", "classes=matmul,loss")
    assert files.load().techniques["tile"].hurts == "when small"
    assert files.load().techniques["tile"].classes == ("matmul", "loss")
    assert "use one of" in knowledge("edit", "tile", "--set", "color=red", code=2)
    knowledge("disable", "tile")
    knowledge("enable", "tile")
    assert not files.load().techniques["tile"].is_disabled


def test_it_is_carried_to_another_home_in_one_file(
    knowledge: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "all.jsonl")
    assert "14 rows of attempts" in knowledge("export", file, "--origin", "team a")
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "other"))
    assert "Imported 14 rows of attempts, 0 rows of failures and 1 revisions of team a." in knowledge("import", file)
    assert {row.origin for row in files.load().rows} == {"team a"}
    knowledge("edit", "tile", "--set", "about=mine")
    assert "technique tile" in knowledge("import", file, code=2)
    assert "Kept mine of the technique tile" in knowledge("import", file, "--prefer", "mine")
    assert files.load().techniques["tile"].about == "mine"


def test_damage_is_told(knowledge: Said) -> None:
    with open(files.folder() / files.EVIDENCE, "a") as out:
        out.write("nonsense\n")
    assert "1 line under" in knowledge("list")
