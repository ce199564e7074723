"""Results of other systems become runs: every source a candidate, their figures kept apart, and a way to go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import EngineError
from engine.importing import import_kernels, read_kernels
from engine.search.methods.cutegen.strategy import CuteGen
from storage.run import events as ev
from storage.run.settings import Budget, DepthOutcome, Origin, StepKind
from tests.engine.contexts import context_with_tools as context_at
from tests.engine.story import Step, brief, state_of
from tests.engine.test_steering import events_of

KERNEL = "class ModelNew:\n    step = {}\n"


def write_nodes(folder: Path) -> Path:
    folder.mkdir()
    for depth in range(3):
        node = {
            "uuid": f"{depth}_1", "ref": "class Model: ...", "ref_time": {"mean": 2.0, "std": 0.1}, "depth": depth,
            "src": KERNEL.format(depth), "prev_src": "", "error_type": "PASS", "time": {"mean": 1.0 / (depth + 1)},
            "history": [{"src": KERNEL.format("bad"), "error_type": "COMPILE", "msg": "no"}] if depth == 1 else [],
        }  # fmt: skip
        (folder / f"node_{depth}.json").write_text(json.dumps(node))
    (folder / "usage.json").write_text('{"tokens": 1}')
    return folder


def write_sources(folder: Path) -> Path:
    folder.mkdir()
    for step in (1, 2, 10):
        (folder / f"step_{step}.py").write_text(KERNEL.format(step))
    (folder / "step_2.json").write_text('{"compiled": true, "correctness": true, "runtime": 0.5}')
    (folder / "notes.py").write_text("x = 1\n")
    return folder


def test_saved_nodes_keep_their_depths_their_tries_and_what_was_recorded(tmp_path: Path) -> None:
    kernels = read_kernels(write_nodes(tmp_path / "nodes"))
    assert [(k.depth, k.is_final, k.status) for k in kernels] == [
        (0, True, "PASS"), (1, False, "COMPILE"), (1, True, "PASS"), (2, True, "PASS"),
    ]  # fmt: skip
    assert (kernels[2].latency_ms, kernels[2].baseline_latency_ms) == (0.5, 2.0)


def test_source_files_are_steps_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    kernels = read_kernels(write_sources(tmp_path / "sources"))
    assert [k.file for k in kernels] == ["step_1.py", "step_2.py", "step_10.py"]
    assert (kernels[1].status, kernels[1].latency_ms) == ("correct", 0.5)


def test_a_folder_of_something_else_or_of_two_results_is_refused(tmp_path: Path) -> None:
    nodes = write_nodes(tmp_path / "nodes")
    (nodes / "node_2b.json").write_text((nodes / "node_2.json").read_text())
    with pytest.raises(EngineError, match="more than one result"):
        read_kernels(nodes)
    (tmp_path / "empty").mkdir()
    with pytest.raises(EngineError, match="has no kernels to import"):
        read_kernels(tmp_path / "empty")
    with pytest.raises(EngineError, match="not a folder"):
        read_kernels(tmp_path / "nowhere")


def test_an_imported_run_keeps_foreign_figures_apart_and_judges_the_last_kernel_first(tmp_path: Path) -> None:
    context = context_at(tmp_path, budget=Budget(depths=5))
    import_kernels(context, read_kernels(write_nodes(tmp_path / "nodes")), is_judged=False)
    record = context.record
    assert [(a.created.depth, a.created.parent_id, a.created.origin) for a in record.candidates.values()] == [
        (0, None, Origin.IMPORTED), (1, "c001", Origin.IMPORTED), (1, "c002", Origin.IMPORTED),
        (2, "c003", Origin.IMPORTED),
    ]  # fmt: skip
    assert [d.outcome for d in record.concluded] == [DepthOutcome.IMPORTED] * 2
    assert all(a.timed is None and a.verdict is None for a in record.candidates.values())
    assert (record.best_id, state_of(record).line) == (None, [])
    assert len(events_of(context, ev.Imported)) == 4
    context.emit(ev.EngineStarted(1, True))
    assert brief(CuteGen().next(context_at(tmp_path).record)) == Step(StepKind.COMPILE, 2, "c004")
