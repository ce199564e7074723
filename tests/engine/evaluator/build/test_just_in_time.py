"""What is kept of a compile step: choices that are used again, errors with the candidate's lines, plain files alone."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.evaluator.build import just_in_time
from engine.evaluator.build.just_in_time import Choice, JustInTime
from engine.evaluator.processes import first_calls
from engine.evaluator.processes.evaluation_request import FirstCalls
from storage import codec
from tests.engine.evaluator.languages.test_contract import TRITON

INFINITE = [float("inf")] * 3


def tuner(n: int) -> Any:
    """As Triton's autotuner stands when it is about to measure a configuration."""
    return SimpleNamespace(
        base_fn=SimpleNamespace(__name__="double"), keys=["n"], arg_names=["x", "n"], nargs={"x": None, "n": n}
    )


def test_what_was_chosen_in_the_compile_step_is_taken_later_without_a_measurement() -> None:
    took = {"TILE: 64": 2.0, "TILE: 128": 1.0, "TILE: 256": float("inf")}
    first = JustInTime(is_tuning=True)
    for config in took:
        first.bench(tuner(7), lambda _tuner, config: [took[config]] * 3, (), config, {})
    choices = just_in_time.read_choices(json.loads(json.dumps(first.as_plain()["choices"])))
    assert [(one.kernel, one.key, one.config) for one in choices] == [("double", "(7)", "TILE: 128")]
    assert str(choices[0]).startswith(
        "autotune of double for (7): 3 configurations tried in the compile step; 1 of them"
    )
    later = JustInTime(is_tuning=False, choices=choices)
    for n in (7, 8):  # what the compile step did not see takes the kernel's first choice
        found = [later.bench(tuner(n), None, (), config, {}) for config in took]
        assert found == [INFINITE, [0.0] * 3, INFINITE]


def test_what_a_worker_tells_of_its_choices_may_be_anything() -> None:
    for told in (None, [1], [{"kernel": "k"}], {"a": 1}, [{"kernel": 1, "key": 2, "config": 3, "tried": [{}]}]):
        with pytest.raises(ValueError, match="malformed"):
            just_in_time.read_choices(told)


def test_an_error_of_tritons_compiler_names_the_line_of_the_file_and_who_called() -> None:
    kind = type("CompilationError", (Exception,), {"__module__": "triton.compiler.errors"})

    def raised(line: int, function: str, said: str) -> Exception:
        error: Exception = kind(said)
        vars(error).update(src=f"def {function}(x):\n  ...", node=ast.Name("x", lineno=line), error_message=said)
        return error

    outer, inner = raised(2, "double", ""), raised(3, "double", "shapes differ")
    outer.__cause__ = inner
    told = just_in_time.explained(outer, TRITON)
    assert told == (
        "candidate.py:9: error: shapes differ\n"
        "    tl.store(x + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)\n"
        "    called from candidate.py:8"
    ), told
    assert just_in_time.explained(ValueError("no"), TRITON) == ""


def test_only_plain_files_are_kept_of_the_candidates_folder_and_their_groups_name_where_they_lie(
    tmp_path: Path,
) -> None:
    compiled, secret = tmp_path / "compiled", tmp_path / "secret"
    (compiled / "ABC").mkdir(parents=True)
    secret.write_text("secret")
    (compiled / "ABC" / "link").symlink_to(secret)
    (compiled / "ABC" / "double.cubin").write_text("code")
    (compiled / "ABC" / "__grp__double.json").write_text(
        json.dumps({"child_paths": {"double.cubin": "/gone/double.cubin"}})
    )
    (compiled / "away").symlink_to(tmp_path)
    choices = codec.to_plain([Choice("double", "(7)", "TILE: 64")])
    kept = first_calls._put(compiled, tmp_path / "kept" / "key", FirstCalls(None), choices).kept
    assert kept is not None
    assert sorted(path.name for path in (kept / "cache").rglob("*")) == ["ABC", "__grp__double.json", "double.cubin"]
    assert first_calls._found(kept) == FirstCalls(kept, is_cached=True)
    just_in_time._move_groups(kept / "cache")
    named = json.loads((kept / "cache" / "ABC" / "__grp__double.json").read_text())["child_paths"]
    assert named == {"double.cubin": str(kept / "cache" / "ABC" / "double.cubin")}
