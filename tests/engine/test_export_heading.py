"""What stands at the head of an exported file: conditions, baselines, a plain word on a kernel that is slower."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import supervisor
from engine.exporting import exported, in_program
from engine.exporting.heading import ALONE, judged_dtype, judged_with
from storage.results.evaluation_results import TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy
from storage.run import events as ev
from storage.run.journal import Journal
from tests.engine.swish_story import FIRST
from tests.real_pair import real_pair


def head(home: Path, *added: ev.Event) -> list[str]:
    folder = real_pair(home)
    book = Journal(folder.journal_file)
    for event in (ev.LimitMeasured(HardwareLimit("a processor, 2 threads", 10.0, 10.0, 1, 1)), *added):
        book.append(event)
    book.close()
    return exported(folder, "c001").partition("\n\n\n")[0].splitlines()


def timed(kernel_ms: float, others: str) -> ev.Timed:
    evidence = {"others before": others, "threads": "2"}
    return ev.Timed(3, "c001", TimingResult((kernel_ms,) * 7, (2.0,) * 7, evidence=evidence))


def test_the_head_tells_the_conditions_and_each_baseline(home: Path) -> None:
    compiled = ev.BaselineMeasured("torch.compile", TimingResult((4.0,) * 7, (2.0,) * 7))
    lines = head(home, timed(1.0, "3% of the processors"), compiled, ev.BaselineMeasured("mine.py", None, "it\nfails"))
    assert "Judged with float32 tensors at batch_size=4, dim=1024; fp32, toolchain cpu." in lines[1]
    assert (
        "eager 2 ms beside it by the pairs' median ratio, torch.compile 0.5x eager, mine.py not timed (it fails)."
        in lines[2]
    )
    assert "the machine was quiet (others used 3 % of the processors before; 2 threads)." in lines[3]
    assert lines[4].startswith("# Exported on a machine with PyTorch 2.")
    assert f"# {ALONE}" in lines
    assert not any("slower" in line for line in lines)


def test_a_kernel_that_is_slower_is_not_recommended_for_speed(home: Path) -> None:
    compiled = ev.BaselineMeasured("torch.compile", TimingResult((1.0,) * 7, (2.0,) * 7))
    lines = head(home, timed(4.0, "90% of the processors"), compiled)
    assert lines[1] == (
        "# This kernel is slower than eager PyTorch: 0.5x (95 % interval 0.5 to 0.5x). Do not use it for speed."
    )
    assert lines[2].startswith("# This kernel is slower than torch.compile: 0.25x")
    assert any("the machine was busy (others used 90 %" in line for line in lines)


@pytest.mark.parametrize(("change", "dtype"), [
    ("", "float32"),
    ("import numpy", ""),
    ("import transformers", ""),
    ("torch.set_default_dtype(torch.float64)", ""),
    ("y = torch.ones(2).to(torch.int8)", ""),
])  # fmt: skip
def test_the_dtype_is_told_only_where_the_text_of_the_task_leaves_one(change: str, dtype: str) -> None:
    settings = supervisor.new_settings("swish", model="manual")
    changed = replace(settings, task_source=f"{settings.task_source}\n{change}\n")
    assert judged_dtype(changed) == dtype
    assert judged_with(changed).startswith("float32 tensors at " if dtype else "the tensors of its task at ")
    assert judged_dtype(replace(changed, policy=Policy(dtype="bf16"))) == "bfloat16"


@pytest.mark.judging
def test_a_kernel_is_measured_in_one_process_with_eager_or_it_is_told_why_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_program, "LIMIT_S", 400.0)  # it may have to precompile headers
    settings = supervisor.new_settings("swish", model="manual", overrides={"batch_size": 4, "dim": 1024})
    assert "x (95 % interval " in in_program.measured(FIRST, settings)
    broken = FIRST.replace("return extension.swish(x)", "raise OSError('no such thing')")
    assert in_program.measured(broken, settings) == (
        "It was not measured in one process at export: OSError: no such thing."
    )
    assert in_program.measured(FIRST, replace(settings, toolchain="cuda")) == ""
