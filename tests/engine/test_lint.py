"""`tasks --lint`: what becomes of every file of a folder, told to people and programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import examined
from engine.__main__ import main
from engine.cli import lint
from engine.cli.lint import Linted, Outcome
from engine.evaluator.tasks import Task
from engine.examined import Examined
from storage.results.examination import Examination, Standing
from tests.engine.test_supervisor import until

HEAD = "import torch\nfrom torch import nn\n\nROWS = 8\n\n\n"
TAIL = "\n\ndef get_inputs():\n    return [torch.randn(ROWS, 16)]\n\n\ndef get_init_inputs():\n    return []\n"
NORM = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x):
        return torch.relu(self.norm(x))
"""
WRITES = """try:
    open({!r}, "w").write("x")
except OSError:
    pass


"""
FORWARD = "class Model(nn.Module):\n    def forward(self, x):\n        return {}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {
        "broken": FORWARD.format("x @ self.absent"),
        "copy": FORWARD.format("x"),
        "drop": FORWARD.format("nn.functional.dropout(x, training=self.training)"),
        "norm": NORM,
        "reads": f"SCALE = float(open({str(tmp_path / 'scale')!r}).read())\n\n\n"
        + FORWARD.format("torch.relu(x) * SCALE"),
        "writes": WRITES.format(str(tmp_path / "written")) + FORWARD.format("torch.relu(x) * 2"),
    }
    (tmp_path / "scale").write_text("2")
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text + TAIL)
    (tmp_path / "bad_class.py").write_text(HEAD + NORM + TAIL)
    (tmp_path / "bad_class.toml").write_text('class = "nonsense"\n')
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    (tmp_path / "nested.py").write_text("x = " + "-" * 100_000 + "1")
    return tmp_path


def linted(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    code = main(["tasks", *words, "--lint", "--json"])
    return code, {Path(one["file"]).stem: one for one in json.loads(capsys.readouterr().out)}


def test_every_file_of_a_folder_is_told_and_a_broken_one_ends_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = linted(capsys, str(folder))
    assert code == 1
    assert {name: one["outcome"] for name, one in found.items()} == {
        "bad_class": "no task", "broken": "fails", "bytes": "no task", "copy": "nothing to do", "drop": "undecidable",
        "nested": "no task", "norm": "decided", "reads": "not examined", "writes": "decided",
    }  # fmt: skip
    assert "absent" in found["broken"]["why"]
    assert lint.IN_THE_SANDBOX in found["reads"]["why"]
    assert not (folder / "written").exists()
    assert "class 'nonsense' is unknown" in found["bad_class"]["why"]
    assert found["drop"]["remedies"][0].startswith("evaluation mode (--mode eval)") is False, "it copies its input then"
    norm = found["norm"]
    assert (norm["sizes"], 0 < norm["allowed"] < norm["idle"]) == ({"ROWS": 8}, True)
    assert {"norm.weight", "norm.running_var"} <= set(norm["varied"])
    assert list(norm["stays"]) == ["norm.num_batches_tracked"]


def test_one_file_is_examined_with_the_words_of_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drop = str(folder / "drop.py")
    code, found = linted(capsys, drop, "--random", "seeded")
    assert (code, found["drop"]["outcome"]) == (0, "decided")
    code, found = linted(capsys, str(folder / "norm.py"), "--set", "ROWS=4", "--weights", "fixed")
    assert (code, found["norm"]["sizes"], found["norm"]["varied"]) == (0, {"ROWS": 4}, {})
    code, found = linted(capsys, drop, "--set", "COLUMNS=4")
    assert (code, found["drop"]["outcome"]) == (1, "no task")
    assert main(["tasks", "absent_task", "--lint"]) == 2


def test_a_task_that_nobody_has_kept_is_examined_by_a_child_that_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(examined, "SETTLED_S", 0.0)
    drop = Task("drop", HEAD + FORWARD.format("nn.functional.dropout(x)") + TAIL, {"ROWS": 8})
    plain = Task("plain", HEAD + NORM + TAIL, {"ROWS": 8})
    until(lambda: all(examined.examined(task, "cpu") for task in (drop, plain)), "both are examined")
    refused, decided = examined.examined(drop, "cpu"), examined.examined(plain, "cpu")
    assert refused is not None
    assert refused.refusal.startswith("This task cannot be judged as given: forward draws random numbers")
    assert decided is not None
    assert (decided.is_decided, decided.refusal, "norm.weight" in decided.varied) == (True, "", True)
    assert examined._asked("no JSON", "cpu", "").why.startswith("standard input holds no task")


@pytest.mark.parametrize(
    ("outcome", "refusal"),
    [("decided", ""), ("not examined", ""), ("fails", "It fails. What mends it: another mode."),
     ("nothing to do", "Nothing to do: It fails. What mends it: another mode.")],
)  # fmt: skip
def test_what_keeps_a_run_from_starting_is_what_is_known(outcome: str, refusal: str) -> None:
    assert Examined(outcome, "It fails", ("another mode",)).refusal == refusal


def test_a_plain_listing_points_to_the_lint_and_has_no_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", str(folder)]) == 0
    assert f"engine tasks {folder} --lint" in capsys.readouterr().err
    assert main(["tasks", str(folder), "--json"]) == 2


def test_a_person_reads_it_in_a_hundred_columns() -> None:
    stays = {f"layers.{number}.index": "holds no floating-point numbers" for number in range(40)}
    found = Examination(
        Standing.DECIDED, remarks=("a call changes nothing",), varied={"fc.weight": "drawn"}, stays=stays, allowed=1e-5,
    )  # fmt: skip
    decided = Linted(Path("a.py"), Outcome.DECIDED, examination=found, smaller={"N": 64})
    refused = Linted(Path("b.py"), Outcome.UNDECIDABLE, "a long sentence " * 20, ("another mode",))
    told = "\n".join(line for one in (decided, refused) for line in lint.lines(one, 100))
    assert max(map(len, told.splitlines())) <= 100
    for part in ("layers.5.index and 34 more (holds", "N=64", "1e-05; an answer of zeros or of other inputs", "A long",
                 "- what mends it: another mode", "note: a call"):  # fmt: skip
        assert part in told, part
    assert lint.summary([decided, refused]).splitlines()[0] == "2 files: 1 decided, 1 undecidable."


def test_what_no_prompt_can_show_is_refused_before_a_run_begins(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site-packages"))
    (tmp_path / "site-packages" / "unshown.py").write_text(f"import torch\nfrom torch import nn\n\n\n{NORM}")
    (tmp_path / "tasks").mkdir()
    hidden, allowed = tmp_path / "tasks" / "hidden.py", tmp_path / "tasks" / "allowed.py"
    for path in (hidden, allowed):
        path.write_text(f"{HEAD}from unshown import Model{TAIL}")
    allowed.with_suffix(".toml").write_text('[policy]\nimports = ["unshown"]\n')
    code, found = linted(capsys, str(tmp_path / "tasks"))
    assert code == 1
    assert {name: one["outcome"] for name, one in found.items()} == {"hidden": "cannot be shown", "allowed": "decided"}
    told = Examined(found["hidden"]["outcome"], found["hidden"]["why"], tuple(found["hidden"]["remedies"]))
    assert "unshown.Model lies in the code of unshown, which no prompt can show" in told.refusal
    assert "What mends it: `python -m engine network capture" in told.refusal
    assert main(["run", str(hidden), "--model", "manual", "--until-waiting"]) == 2
    assert "no run is started: the forward of unshown.Model" in capsys.readouterr().err
    assert not list((home / "runs").glob("*"))


NESTED = """class Model(nn.Module):
    def forward(self, x, *, mask):
        return {"y": torch.relu(x) * mask, "rest": (x.sum(1), None, 3)}
"""
BY_NAME = "\n\ndef get_inputs():\n    return [torch.randn(ROWS, 16)], {'mask': torch.rand(ROWS, 16)}\n"
INIT = "\n\ndef get_init_inputs():\n    return []\n"


def test_calls_by_name_and_nested_results_are_decided_and_what_is_not_compared_is_refused_before_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nested.py").write_text(HEAD + NESTED + BY_NAME + INIT)
    alone = BY_NAME.replace("[torch.randn(ROWS, 16)], {'mask': torch.rand(ROWS, 16)}", "torch.randn(ROWS, 16)")
    (tmp_path / "alone.py").write_text(HEAD + FORWARD.format("x * 2") + alone + INIT)
    (tmp_path / "set.py").write_text(HEAD + FORWARD.format("x * 2, {1, 2}") + TAIL)
    (tmp_path / "counts.py").write_text(HEAD + FORWARD.format("torch.relu(x), int(x.sum() * 1000)") + TAIL)
    code, found = linted(capsys, str(tmp_path))
    assert code == 1
    assert {name: one["outcome"] for name, one in found.items()} == {
        "alone": "fails", "counts": "fails", "nested": "decided", "set": "fails",
    }  # fmt: skip
    assert "return the arguments of forward as a list" in found["alone"]["why"]
    assert "as a tensor, without .item(), int() or float()" in found["counts"]["why"]
    assert main(["tasks", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "alone.py: no kernel can be judged on it: get_inputs() returns a tensor: return" in listed
    assert "set.py: no kernel can be judged on it: forward() returns a set among its results" in listed
    assert "nested.py  reduction  0." in listed
    assert main(["run", str(tmp_path / "set.py"), "--model", "manual", "--until-waiting"]) == 2
    assert "forward() returns a set among its results" in capsys.readouterr().err
