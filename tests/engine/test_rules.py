"""Runs from before the rules of judging had a version: they keep theirs and say so; what is judged anew has today's."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from engine import exporting, forking, remeasuring
from engine.__main__ import main
from engine.errors import EngineError
from engine.exporting import one_file
from engine.suites import manifest
from storage.results.check_records import CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult
from storage.results.policy import RULES, Policy, StateDict, Weights
from storage.results.vocabulary import Verdict
from storage.run import liveness
from storage.run.folder import RunFolder
from storage.run.record import Record
from tests.samples import write_run

JUDGED = "judged with constructed weights only"


def old_run(home: Path, name: str = "old", *, has_weights: bool = True, **policy: Any) -> RunFolder:
    """A run whose run.json says nothing of rules, beside what `policy` says."""
    folder = write_run(home / "runs", name)
    plain = json.loads(folder.settings_file.read_text())
    plain["policy"] = {"precision": "fp32", **policy}
    if has_weights:
        plain["task_source"] += "\n\nWEIGHT = nn.Parameter(torch.ones(1))\n"
    folder.settings_file.write_text(json.dumps(plain))
    return folder


def test_a_run_of_before_says_how_its_kernels_are_judged(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(home / "runs", "new")
    for folder, told in ((old_run(home), True), (RunFolder(home / "runs" / "new"), False)):
        assert main(["show", folder.run_id]) == 0
        assert (f"kernels: {JUDGED}; the run keeps the rules" in capsys.readouterr().out) is told
        assert main(["show", folder.run_id, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["rules"], shown["judged"]) == ((1, JUDGED) if told else (RULES, ""))
        lock = liveness.hold(folder)  # so that nothing goes on
        assert main(["resume", folder.run_id]) == 3
        os.close(lock)
        assert (f"keeps the rules it began with: its kernels are {JUDGED}" in capsys.readouterr().err) is told


def test_a_fork_of_a_run_of_before_has_the_rules_of_today_and_the_rest_of_its_policy(home: Path) -> None:
    folder = old_run(home, precision="tf32", special_values="required")
    assert folder.read_settings().policy.weights is Weights.FIXED
    made = forking.fork_settings(folder, "c005").policy
    assert made == Policy("tf32", special_values=made.special_values)
    assert str(made.special_values) == "required"
    newer = write_run(home / "runs", "new")
    settings = newer.read_settings()
    newer.settings_file.unlink()
    newer.write_settings(replace(settings, policy=Policy(weights=Weights.FIXED)))
    assert forking.fork_settings(newer, "c005").policy.weights is Weights.FIXED, "a person's choice stays"


def test_two_kernels_are_timed_again_under_their_own_rules_or_where_those_differ_under_todays(home: Path) -> None:
    old_run(home, has_weights=False)
    write_run(home / "runs", "new")
    write_run(home / "runs", "other")
    for other, rules in (("old", 1), ("new", RULES)):
        task, _ = remeasuring.task_and_sources(remeasuring.request_of(("old", "c007"), (other, "5")))
        assert task.policy.rules == rules
        assert (task.policy.state_dict is StateDict.ANY) is (rules == 1)
    old_run(home, "exact", has_weights=False, precision="tf32")
    with pytest.raises(EngineError, match="different precision policy"):
        remeasuring.request_of(("exact", "c007"), ("new", "5"))


@pytest.mark.parametrize(("rules", "outcome", "told"), [
    (1, CheckOutcome.HELD, [JUDGED]),
    (2, CheckOutcome.FLAGGED, ["does not load the original's weights"]),
    (2, CheckOutcome.HELD, []),
])  # fmt: skip
def test_an_exported_kernel_says_what_its_verdict_leaves_open(
    home: Path, monkeypatch: pytest.MonkeyPatch, rules: int, outcome: CheckOutcome, told: list[str]
) -> None:
    check = CheckRecord(Group.CORRECTNESS, "state_dict", outcome, "")
    result = CheckResult(Verdict.PASSED, 1.0, proofs=(check,), rules=rules)
    loaded = exporting.read_record

    def record(folder: RunFolder) -> Record:
        found = loaded(folder)
        found.settings = replace(found.settings, task_source=f"{found.settings.task_source}\nnn.Parameter()\n")
        found.candidates |= {name: replace(one, checked=result) for name, one in found.candidates.items()}
        return found

    monkeypatch.setattr(one_file, "read_record", record)
    heading = exporting.exported(write_run(home / "runs", "run"), "c005").partition("\n\n\n")[0]
    notes = [line for line in heading.splitlines() if JUDGED in line or "does not load" in line]
    assert [part in line for part, line in zip(told, notes, strict=True)] == [True] * len(told)
    assert all(line.startswith("# ") for line in heading.splitlines())


def test_a_manifest_of_before_is_reproduced_under_the_rules_that_it_was_written_under(
    home: Path, tmp_path: Path
) -> None:
    plain = {"defined": {"name": "s", "tasks": [], "arms": [], "repeats": 1}, "made_with": {}, "missing": []}
    cell = {"task": "t", "arm": "a", "repeat": 1}
    kernel: dict[str, Any] = dict.fromkeys((field.name for field in fields(manifest.ManifestKernel)), "")
    kernel |= {"cell": cell, "sizes": {}, "kernel_class": "other", "policy": {"precision": "fp32"}, "seed": None}
    kernel |= {"strategy_options": {}} | dict.fromkeys(("speedup", "low", "high", "noise", "latency_ms"), 1.0)
    (tmp_path / "m.json").write_text(json.dumps(plain | {"kernels": [kernel]}))
    (found,) = manifest.read(tmp_path / "m.json").kernels
    assert (found.policy.rules, found.policy.weights) == (1, Weights.FIXED)
