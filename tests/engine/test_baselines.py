"""What a user would run instead of a kernel, beside eager: when a run times it, and what a run says of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from engine.cli import given
from engine.errors import BaselineUnavailable, EngineError
from engine.evaluator import tasks
from engine.evaluator.machine.devices import Device
from engine.evaluator.request import Evaluator
from engine.evaluator.tasks import Task
from engine.evaluator.toolchains import local
from engine.evaluator.toolchains.cuda import CudaToolchain
from engine.search.actions import Conclude, Evaluate, Finish
from engine.search.context import RunContext
from engine.search.steps.evaluate import time_candidate, timed_again_first
from storage.results import baselines
from storage.results.baselines import OwnBaseline
from storage.results.evaluation_results import BUILT, CORRECT, TIMED_AGAIN, CheckResult, TimingResult
from storage.results.hardware_limit import HardwareLimit
from storage.results.policy import Policy
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import DepthOutcome, RunState, StepKind
from storage.run.steering.command_arguments import AskFirst
from tests.engine.contexts import SOURCE, add_candidate, open_context


class Compiler:
    """A toolchain that only times baselines: the first so often without success, then each this much over eager."""

    def __init__(self, *failures: str, **speedups: float) -> None:
        self.failures, self.speedups = list(failures), speedups
        self.asked: list[str] = []

    def baseline(self, task: Task, how: str, source: str) -> TimingResult:
        self.asked.append(how or source)
        if self.failures:
            raise BaselineUnavailable(self.failures.pop(0))
        return TimingResult((1.0,) * 9, (self.speedups.get(how.replace("-", "_") or "own", 2.0),) * 9)


def test_a_baseline_that_failed_is_tried_once_more_by_each_later_engine(tmp_path: Path) -> None:
    toolchain, told = Compiler("no compiler", "no compiler"), list[int]()
    for _ in range(4):  # engines, of which each times two kernels
        context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain))
        for _ in range(2):
            time_candidate(context, context.candidate(add_candidate(context, speedup=2.0)))
        told.append(sum(isinstance(event, ev.BaselineMeasured) for event in context.record.events))
        context.journal.close()
    assert told == [1, 1, 2, 2]
    assert context.record.baseline is not None
    assert context.record.baseline.result is not None


def test_all_that_are_asked_for_and_a_persons_own_are_timed_and_the_fastest_leads(tmp_path: Path) -> None:
    toolchain = Compiler(compile=1.2, max_autotune=1.9, own=1.5)
    own = OwnBaseline("mine.py", "class ModelNew: ...")
    policy = Policy(baselines=("compile", "max-autotune"))
    context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain), policy=policy, own_baseline=own)
    time_candidate(context, context.candidate(add_candidate(context, speedup=2.0)))
    assert toolchain.asked == ["compile", "max-autotune", own.source]
    assert list(context.record.baselines) == ["torch.compile", "torch.compile max-autotune", "mine.py"]
    assert context.record.baseline is not None
    assert context.record.baseline.name == "torch.compile max-autotune"


def test_where_none_is_asked_for_none_is_timed(tmp_path: Path) -> None:
    toolchain = Compiler()
    context = open_context(tmp_path, toolchain=cast(Evaluator, toolchain), policy=Policy(baselines=(baselines.NONE,)))
    time_candidate(context, context.candidate(add_candidate(context, speedup=2.0)))
    assert toolchain.asked == []
    assert context.record.baseline is None


@pytest.mark.parametrize(
    ("asked", "toolchain", "words"),
    [
        (("fastest",), "cpu", "choose of compile, max-autotune, cuda-graph, scaled-mm, none"),
        (("cuda-graph",), "cpu", "needs a GPU"),
        (("none", "compile"), "cuda", "none stands alone"),
        (("compile", "cuda-graph"), "cuda", ""),
    ],
)
def test_baselines_that_cannot_be_had_are_told(asked: tuple[str, ...], toolchain: str, words: str) -> None:
    fault = baselines.fault(asked, toolchain)
    assert words in fault
    assert bool(words) == bool(fault)


def test_a_gpu_is_asked_for_scaled_products_where_a_text_may_multiply_fp8_matrices_itself() -> None:
    text = "y = a.to(torch.float32) @ w.float()  # of float8_e4m3fn"
    for source, toolchain, asked, expected in (
        (text, "cuda", (), [*baselines.USUAL["cuda"], "scaled-mm"]),
        (text, "cpu", (), ["compile"]),
        (text, "cuda", ("compile",), ["compile"]),
        (text, "cpu", ("scaled-mm",), ["scaled-mm"]),
        ("y = torch._scaled_mm(a, w, s, t)  # of float8_e4m3fn", "cuda", (), list(baselines.USUAL["cuda"])),
        ("y = a @ w", "cuda", (), list(baselines.USUAL["cuda"])),
        ("y = x.to(torch.float8_e4m3fn)", "cuda", (), list(baselines.USUAL["cuda"])),
    ):
        assert list(baselines.of_run(asked, toolchain, source)) == expected, source


def test_why_a_scaled_product_has_no_timing_is_said_in_its_own_words() -> None:
    def told(how: str, verdict: Verdict, message: str) -> str:
        return local._why_not(how, CheckResult(verdict, 1.0, message=message))

    none = f"RuntimeError in a timed call:\nRuntimeError: {baselines.NO_SCALED_PRODUCT}"
    assert told("scaled-mm", Verdict.RUNTIME_ERROR, none) == baselines.NO_SCALED_PRODUCT
    assert told("scaled-mm", Verdict.INCORRECT, "off by 1e-3") == (
        "not comparable, it is further off than the task allows: off by 1e-3"
    )
    assert told("compile", Verdict.INCORRECT, "off by 1e-3") == "off by 1e-3"


def test_a_gpu_that_multiplies_nothing_in_fp8_is_named_with_what_it_has(tmp_path: Path) -> None:
    with CudaToolchain(scratch=tmp_path) as toolchain:
        toolchain.use(Device(0, "NVIDIA A100", "1", "", "8.0", 40960))
        with pytest.raises(BaselineUnavailable, match=r"capability 8\.9, and NVIDIA A100 has 8\.0"):
            toolchain.baseline(tasks.find("swish").task("cpu", {}), "scaled-mm")


def test_a_persons_own_baseline_is_a_class_of_that_name_or_an_export(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from torch import nn\n\nclass Baseline(nn.Module):\n    pass\n")
    assert given.own_baseline(str(file)).source.endswith("\n\nModelNew = Baseline\n")
    file.write_text("class ModelNew:\n    pass\n")
    assert given.own_baseline(str(file)) == OwnBaseline("mine.py", "class ModelNew:\n    pass\n")
    file.write_text("# class Baseline is to come\n")
    with pytest.raises(EngineError, match=r"mine\.py defines no class Baseline: write one"):
        given.own_baseline(str(file))


def busy(speedup: float) -> TimingResult:
    return TimingResult((1.0,) * 9, (speedup,) * 9, untrusted="the machine is busy")


def test_a_kernel_whose_timing_decides_nothing_is_no_best_and_is_timed_again_when_it_is_quiet(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    first, second = add_candidate(context, speedup=1.5), add_candidate(context, speedup=1.2)
    context.emit(ev.Timed(3, second, busy(9.0)))
    record = context.record
    assert (record.best_id, record.candidates[second].standing) == (first, None)
    going_on = Conclude(2, DepthOutcome.GIVEN_UP, None, first, "no kernel")
    assert timed_again_first(record, going_on) is going_on, "the machine is still busy"
    third = add_candidate(context, speedup=1.6)
    context.emit(ev.Timed(5, third, TimingResult((1.0,) * 9, (1.6,) * 9)))
    again = timed_again_first(record, going_on)
    assert again is going_on, "it has been timed twice"
    context.emit(
        ev.CandidateCreated(
            6, "c004", first, first, 3, 0, 0, record.candidates[second].created.origin, "", None, 1, 0, ""
        )
    )
    context.emit(ev.Compiled(6, "c004", BUILT, None))
    context.emit(ev.Checked(6, "c004", CORRECT))
    context.emit(ev.Timed(6, "c004", busy(9.0)))
    assert timed_again_first(record, going_on) is going_on
    context.emit(ev.Timed(6, third, TimingResult((1.0,) * 9, (1.6,) * 9)))
    assert timed_again_first(record, going_on) == Evaluate(StepKind.TIME, 3, "c004")
    context.emit(ev.DepthFinished(6, 3, DepthOutcome.ACCEPTED, "c004", first, False, False, ""))
    end = Finish(RunState.FINISHED, "all depths are done")
    assert timed_again_first(record, end) == Evaluate(StepKind.TIME, 3, "c004"), "at its own step index"
    context.emit(ev.Timed(7, "c004", TimingResult((1.0,) * 9, (4.0,) * 9)))
    assert timed_again_first(record, end) is end
    assert record.best_id == "c004"
    context.journal.close()


def test_a_busy_machine_is_asked_no_more_than_twice_for_one_kernel(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    kernel = add_candidate(context, speedup=1.5)
    context.emit(ev.Timed(3, kernel, busy(9.0)))
    end = Finish(RunState.FINISHED, "all depths are done")
    assert context.record.candidates[kernel].timings == 2
    assert timed_again_first(context.record, end) is end
    context.journal.close()


def test_where_each_step_waits_for_a_yes_no_kernel_is_timed_again_unasked(tmp_path: Path) -> None:
    context = open_context(tmp_path, ask_first=AskFirst.parse("all no 1"))
    kernel = add_candidate(context)
    context.emit(ev.Compiled(1, kernel, BUILT, None))
    context.emit(ev.Checked(1, kernel, CORRECT))
    context.emit(ev.Timed(1, kernel, busy(9.0)))
    end = Finish(RunState.FINISHED, "all depths are done")
    assert timed_again_first(context.record, end) is end
    context.journal.close()


def test_a_twin_of_a_kernel_whose_timing_decides_nothing_is_timed_itself(tmp_path: Path) -> None:
    class Quiet(Compiler):
        def time(self, task: Task, source: str) -> TimingResult:
            return TimingResult((1.0,) * 9, (3.0,) * 9)

    context = open_context(tmp_path, toolchain=cast(Evaluator, Quiet()))
    first = add_candidate(context, speedup=1.5)
    context.emit(ev.Timed(2, first, busy(9.0)))
    twin = add_candidate(context)
    context.emit(ev.Compiled(3, twin, BUILT, None))
    context.emit(ev.Checked(3, twin, CORRECT))
    time_candidate(context, replace(context.candidate(twin)))
    assert context.record.best_id == twin
    assert context.record.candidates[twin].standing is not None
    context.journal.close()


@dataclass
class Sessions:
    """A toolchain whose timings are given: (kernel, eager) in milliseconds, or (…, why it decides nothing)."""

    given: list[tuple[str, float, float, str]]
    name: str = "cpu"
    fingerprint: str = "f"
    baselines: list[tuple[float, float]] = field(default_factory=list)

    def baseline_again(self, task: Task, how: str, source: str = "") -> TimingResult:
        took_ms, eager_ms = self.baselines.pop(0)
        return TimingResult((took_ms,) * 9, (eager_ms,) * 9)

    def time_again(self, task: Task, source: str) -> TimingResult:
        kernel, took_ms, eager_ms, untrusted = self.given.pop(0)
        assert kernel in source
        return TimingResult((took_ms,) * 9, (eager_ms,) * 9, untrusted=untrusted)

    def limit(self, task: Task) -> HardwareLimit:
        return HardwareLimit("d", 1e9, 1e9, 1, 1)


def timed_at_the_end(context: RunContext) -> list[str]:
    """The kernels that are timed once more before a run ends, in order."""
    asked, end = [], Finish(RunState.FINISHED, "all depths are done")
    while isinstance(action := timed_again_first(context.record, end), Evaluate):
        asked.append(action.about)
        assert action.index == context.candidate(action.about).created.depth, "no step index begins with it"
        time_candidate(context, context.candidate(action.about))
    assert action is end
    return asked


def with_drift(home: Path, *given: tuple[str, float, float, str]) -> RunContext:
    """A run whose best kernel has the higher latency: eager took 7.33 ms beside it, and 5.21 ms beside the other."""
    context = open_context(home, toolchain=cast(Evaluator, Sessions(list(given))))
    for name, took_ms, eager_ms in (("first", 4.0, 5.2), ("ninth", 3.25, 7.33), ("tenth", 3.1, 5.21)):
        timed(context, f"{SOURCE}# {name}\n", took_ms, eager_ms)
    return context


def timed(context: RunContext, source: str, took_ms: float, eager_ms: float) -> None:
    kernel = add_candidate(context, source)
    context.emit(ev.Compiled(1, kernel, BUILT, None))
    context.emit(ev.Checked(1, kernel, CORRECT))
    context.emit(ev.Timed(1, kernel, TimingResult((took_ms,) * 9, (eager_ms,) * 9)))
    depth = context.record.step_index
    context.emit(ev.DepthFinished(1, depth, DepthOutcome.ACCEPTED, kernel, None, False, False, ""))


def test_two_kernels_of_which_it_is_in_doubt_which_is_best_are_timed_in_turns_before_the_run_ends(
    tmp_path: Path,
) -> None:
    context = with_drift(tmp_path, ("ninth", 3.24, 5.2, ""), ("tenth", 3.1, 5.2, ""))
    spent = context.record.candidates["c002"].spent
    assert context.record.best_id == "c002"
    assert timed_again_first(context.record, stopped := Finish(RunState.STOPPED, "stopped by a person")) is stopped
    assert timed_at_the_end(context) == ["c002", "c003"]
    assert context.record.best_id == "c003"
    results = [context.record.candidates[name].trusted for name in ("c002", "c003")]
    assert [result and result.evidence[TIMED_AGAIN] for result in results] == ["kernel 3", "kernel 2"]
    assert context.record.candidates["c002"].spent is spent
    assert Record.of(context.folder.read_settings(), context.journal.entries).best_id == "c003"
    context.journal.close()


def test_doubts_about_the_best_kernel_end_and_a_bad_timing_leaves_its_figures(tmp_path: Path) -> None:
    drifting = [("ninth", 3.25, 7.33, ""), ("tenth", 3.1, 5.21, "")]
    context = with_drift(tmp_path, ("ninth", 9.0, 9.0, "the machine is busy"), drifting[1], *drifting)
    assert timed_at_the_end(context) == ["c002", "c003", "c002", "c003"]
    assert (context.record.best_id, context.record.candidates["c002"].timings) == ("c002", 3)
    best = context.record.best
    assert best is not None
    assert best.standing is not None
    assert best.standing.latency_ms == 3.25
    context.journal.close()


def test_kernels_whose_latencies_agree_with_their_speedups_are_not_timed_once_more(tmp_path: Path) -> None:
    context = open_context(tmp_path)
    for took_ms, eager_ms in ((2.0, 4.0), (1.99, 3.97), (2.5, 3.0)):  # of the first two eager moved, within the noise
        timed(context, f"{SOURCE}# {took_ms}\n", took_ms, eager_ms)
    assert timed_at_the_end(context) == []
    context.journal.close()


@pytest.mark.parametrize(("toolchain", "turns"), [("cuda", ["c001"]), ("cpu", [])])
def test_the_best_kernel_takes_turns_with_an_alternative_beside_which_eager_took_another_time(
    tmp_path: Path, toolchain: str, turns: list[str]
) -> None:
    again = Sessions([("one", 9.0, 45.0, "")], toolchain, baselines=[(16.0, 46.0)])
    policy = Policy(baselines=(baselines.Instead.GRAPH,))
    context = open_context(tmp_path, toolchain=cast(Evaluator, again), policy=policy)
    timed(context, f"{SOURCE}# one\n", 9.0, 48.0)
    context.emit(ev.BaselineMeasured("CUDA graph", TimingResult((16.0,) * 9, (22.0,) * 9)))
    before = context.record.baseline
    assert before is not None
    assert before.result is not None
    assert before.result.speedup == pytest.approx(48 / 16 if turns else 22 / 16)
    assert timed_at_the_end(context) == turns
    if turns:
        told = context.record.baselines["CUDA graph"].result
        best = context.record.best
        assert told is not None
        assert told.speedup == pytest.approx(46 / 16)
        assert best is not None
        assert best.trusted is not None
        assert best.trusted.evidence[TIMED_AGAIN] == "CUDA graph"
    context.journal.close()
