"""The tuner: what a source declares, which variants are tried, the step that journals each; and the compiler's hint."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from rich.console import Console

from engine.cli import tuned
from engine.errors import ToolchainError
from engine.evaluator.build import tunables
from engine.evaluator.tasks import Task
from engine.search import loop
from engine.search.actions import Ask, Conclude, Tune
from engine.search.context import RunContext
from engine.search.human.inbox import POLL_S, Inbox, refusal
from engine.search.steps.briefing import headroom
from engine.search.steps.candidates import conclude
from engine.search.steps.compiler import show_compiler
from engine.search.steps.tune import tuned_first
from engine.shown import sweeps
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult, Tunable
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.record import Record
from storage.run.settings import Budget, DepthOutcome, Origin, Switch
from storage.run.steering import commands
from storage.run.steering.verbs import Command, CommandKind
from storage.run.tuning import AS_WRITTEN, Build, Judge, Sweep, first_wave, second_wave
from tests.engine.contexts import open_context

DECLARES = """
constexpr int kTile = 64;  // tune: 32, 64, 128
static constexpr unsigned kStages = 2u; // tune: 1,2,3,
template <int N> constexpr bool kOther = N > 2;
THREADS: tl.constexpr = 128  # tune: 64, 256
BLOCK = tl.constexpr(16)  # tune: 16, 32
class ModelNew: ...
"""


def test_named_numbers_are_read_in_both_languages_and_set_without_touching_anything_else() -> None:
    found = tunables.read(DECLARES)
    assert found.tunables == (
        Tunable("kTile", 64, (32, 64, 128)), Tunable("kStages", 2, (1, 2, 3)), Tunable("THREADS", 128, (64, 128, 256)),
        Tunable("BLOCK", 16, (16, 32)),
    )  # fmt: skip
    assert found.remarks == ()
    other = tunables.with_values(DECLARES, {"kTile": 128, "kStages": 3, "THREADS": 64, "BLOCK": 32})
    assert "kTile = 128;  // tune: 32, 64, 128" in other
    assert "kStages = 3u; // tune" in other
    assert "constexpr(32)  # tune" in other
    assert tunables.with_values(other, {one.name: one.value for one in found.tunables}) == DECLARES


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("constexpr int a = 1, b = 2;  // tune: 1, 2", "not read; write `constexpr int kTile"),
        ("int kTile = 64;  // tune: 32, 64", "not read"),
        ("constexpr int kTile = 8 * kVec;  // tune: 32, 64", "not read"),
        ("constexpr int kTile = 64;  // tune: 32 or 64", "lists '32 or 64', which is no whole number"),
        ("constexpr int kTile = 64;  // tune:", "lists '', which is no whole number"),
        ("constexpr int kTile = 64;  // tune: 64", "lists no other number"),
        (f"constexpr int kTile = 64;  // tune: {', '.join(map(str, range(20)))}", "lists 21 numbers; list 16 at most"),
        ("constexpr int kTile = 1;  // tune: 1, 2\nconstexpr int kTile = 1;  // tune: 1, 2", "declared twice"),
    ],
)
def test_a_declaration_that_cannot_be_used_is_a_remark_with_its_line(line: str, said: str) -> None:
    found = tunables.read(f"\n{line}\n")
    assert found.tunables == ()
    assert [said in remark and remark.startswith("tunable, line ") for remark in found.remarks] == [True]


def timing(speedup: float) -> TimingResult:
    return TimingResult((1.0,) * 9, (speedup,) * 9)


TWO = (Tunable("a", 2, (1, 2, 3, 4)), Tunable("b", 10, (10, 20, 30, 40)))


def test_all_combinations_are_tried_where_they_fit_and_one_number_at_a_time_where_they_do_not() -> None:
    assert len(first_wave(TWO, 15)) == 15
    few = first_wave(TWO, 6)
    assert few == [{"a": 1, "b": 10}, {"a": 2, "b": 20}, {"a": 3, "b": 10}, {"a": 2, "b": 30}]
    assert first_wave(TWO, 1) == [{"a": 1, "b": 10}]


def played(sweep: Sweep, speed: dict[tuple[int, int], float], again: float = 1.0) -> list[object]:
    """Carry out a sweep on variants of these speeds; those of speed 0 do not compile."""
    done: list[object] = []
    while (act := sweep.next(2)) is not None:
        done.append(act)
        if not isinstance(act, Build) and act.number == AS_WRITTEN:
            sweep.apply(ev.VariantTimed(1, "c", 0, False, timing(again)))
            continue
        if isinstance(act, Build):
            for number, values in act.wave:
                is_good = speed[values["a"], values["b"]] > 0
                built = CompileResult(is_good, 0.1, verdict=Verdict.PASSED if is_good else Verdict.COMPILE_ERROR)
                sweep.apply(ev.VariantCompiled(1, "c", number, values, built))
            continue
        values = sweep.variants[act.number].values
        if act.stage == "check":
            sweep.apply(ev.VariantChecked(1, "c", act.number, CheckResult(Verdict.PASSED, 0.1)))
        else:
            took = timing(speed[values["a"], values["b"]])
            sweep.apply(ev.VariantTimed(1, "c", act.number, act.is_brief, took))
    return done


def test_the_second_wave_combines_what_brought_most_and_only_the_fastest_few_are_timed_fully() -> None:
    speed = {(a, b): 1.0 + 0.2 * (a == 3) + 0.3 * (b == 30) for a in (1, 2, 3, 4) for b in (10, 20, 30, 40)}
    speed[1, 10] = 0.0
    sweep = Sweep(TWO, 6, timing(1.0))
    done = played(sweep, speed)
    assert max(len(act.wave) for act in done if isinstance(act, Build)) == 2
    assert sweep.variants[5].values == {"a": 3, "b": 30}
    assert sweep.kept is not None
    assert sweep.kept.values == {"a": 3, "b": 30}
    assert len(sweep.variants) == 6
    assert sum(isinstance(act, Judge) and act.stage == "time" and not act.is_brief for act in done) == 3 + 1


def test_nothing_is_kept_that_is_not_faster_beyond_the_noise() -> None:
    sweep = Sweep(TWO, 15, timing(1.0))
    played(sweep, {(a, b): 1.02 for a in (1, 2, 3, 4) for b in (10, 20, 30, 40)})
    assert sweep.kept is None


def test_the_kernel_as_written_is_timed_once_more_and_its_better_timing_is_the_one_to_beat() -> None:
    sweep = Sweep(TWO, 15, timing(1.0))
    played(sweep, {(a, b): 1.3 for a in (1, 2, 3, 4) for b in (10, 20, 30, 40)}, again=1.28)
    assert sweep.kept is None
    sweep = Sweep(TWO, 15, timing(1.0))
    played(sweep, {(a, b): 1.3 for a in (1, 2, 3, 4) for b in (10, 20, 30, 40)}, again=0.9)
    assert sweep.kept is not None
    sweep.again = None
    assert sweep.kept is None, "cut short before that timing"


def test_what_a_full_check_or_timing_finds_does_not_change_which_combinations_are_tried() -> None:
    sweep = Sweep(TWO, 6, timing(1.0))
    speed = {(a, b): 1.0 + 0.2 * (a == 3) + 0.3 * (b == 30) for a in (1, 2, 3, 4) for b in (10, 20, 30, 40)}
    played(sweep, speed)
    first = [replace(sweep.variants[number], checked=None, timed=None) for number in range(1, 5)]
    wave = second_wave(TWO, first, sweep.written)
    later = [replace(one, timed=timing(9.0 / one.number)) for one in first]
    assert second_wave(TWO, later, sweep.written) == wave
    wrong = [replace(one, checked=CheckResult(Verdict.INCORRECT, 0.1)) for one in first]
    assert second_wave(TWO, wrong, sweep.written) == wave


SOURCE = "T = 64  # tune: 32, 64, 128\nU = 1  # tune: 1, 2\nclass ModelNew: ...\n"
SPEEDS = {(64, 1): 1.0, (32, 1): 0.8, (128, 1): 1.6, (32, 2): 0.9, (64, 2): 1.1, (128, 2): 1.5}


FLAGS = ("look at the copy",)


@dataclass
class Scripted:
    """A toolchain of known speeds that keeps what it was asked for; `act` is called before each answer."""

    name: str = "cpu"
    asked: list[tuple[str, str]] = field(default_factory=list)
    act: object = None
    again: CheckResult | None = None
    hint: str | ToolchainError = "void fused();"

    def _asked(self, what: str, source: str) -> tuple[int, int]:
        values = tuple(one.value for one in tunables.read(source).tunables)
        self.asked.append((what, f"{values}"))
        if callable(self.act):
            self.act()
        return values[0], values[1]

    def compile_all(self, task: Task, sources: Sequence[str]) -> list[CompileResult]:
        for source in sources:
            self._asked("compile", source)
        return [CompileResult(True, 0.1) for _ in sources]

    def check(self, task: Task, source: str) -> CheckResult:
        is_wrong = self._asked("check", source) == (128, 1)
        return CheckResult(Verdict.INCORRECT if is_wrong else Verdict.PASSED, 0.1, message="off by one" * is_wrong)

    def time_briefly(self, task: Task, source: str) -> TimingResult | CheckResult:
        return timing(SPEEDS[self._asked("brief", source)])

    def compiler_source(self, task: Task) -> str:
        if isinstance(self.hint, ToolchainError):
            raise self.hint
        return self.hint

    def time(self, task: Task, source: str) -> TimingResult | CheckResult:
        values = self._asked("time", source)
        return self.again if self.again and source == SOURCE else timing(SPEEDS[values])


def begun(folder: Path, toolchain: object, **changes: object) -> RunContext:
    """A run whose first kernel is correct and timed."""
    context = open_context(folder, toolchain=toolchain, **({"tune": 5, "collect": Switch.OFF} | changes))  # type: ignore[arg-type]
    if not context.journal.entries:
        made = ev.CandidateCreated(
            0, "c001", None, None, 0, 0, 0, Origin.SYNTHESIS, context.blobs.put(SOURCE), None, 3, 0, "a kernel", FLAGS
        )  # fmt: skip
        context.emit(made)
        context.emit(ev.Compiled(1, "c001", CompileResult(True, 1.0), None))
        context.emit(ev.Checked(1, "c001", CheckResult(Verdict.PASSED, 1.0)))
        context.emit(ev.Timed(1, "c001", timing(1.0)))
    return context


def conclusion(context: RunContext) -> Conclude:
    """Take steps until the step index ends."""
    while not isinstance(action := loop.next_action(context), Conclude):
        assert isinstance(action, Tune)
        loop.take_step(context, action)
    return action


def told(context: RunContext) -> list[ev.Event]:
    """What happened, without how long the step took."""
    return [replace(one, seconds=0.0) if isinstance(one, ev.StepFinished) else one for one in context.record.events]


def test_the_best_variant_that_is_correct_becomes_a_child_with_which_the_step_index_ends(tmp_path: Path) -> None:
    toolchain = Scripted()
    context = begun(tmp_path, toolchain)
    ended = conclusion(context)
    child = context.record.candidates["c002"]
    assert (ended.outcome, ended.candidate_id) == (DepthOutcome.ACCEPTED, "c002")
    assert (child.created.parent_id, child.created.origin) == ("c001", Origin.TUNED)
    assert (child.created.flags, child.written_as) == (FLAGS, "c001")
    assert child.created.summary == "tuned: T 64 → 128, U 1 → 2"
    assert "T = 128  # tune" in context.source(child)
    assert context.record.best_id == "c002"
    assert context.record.sweeps["c001"].variants[4].failure == "off by one"
    assert [what for what, _ in toolchain.asked].count("time") == 3, (
        "the two that passed their check, and the kernel as written"
    )
    assert context.record.usage.model_calls == 0
    conclude(context, ended)
    back = Command("k1", CommandKind.ROLL_BACK, "c001", "someone", 0.0)
    assert refusal(context, back) is None, "a person may go back to the kernel as it was written"
    prompt = headroom(context.record, child)
    assert "tried 5 other sets of numbers for the tunables, as written T=64, U=1 1x: the fastest was taken" in prompt
    assert "With T=128, U=1 it gives wrong results: off by one" in prompt


def test_a_kernel_that_fails_when_it_is_timed_again_has_failed_once_and_no_variant_is_taken(tmp_path: Path) -> None:
    wrong = CheckResult(Verdict.INCORRECT, 0.1, message="off by two")
    context = begun(tmp_path, toolchain := Scripted(again=wrong))
    action = loop.next_action(context)
    assert isinstance(action, Tune)
    loop.take_step(context, action)
    lines = context.folder.journal_file.read_bytes().splitlines(keepends=True)
    again = loop.next_action(context)
    assert (context.record.candidates["c001"].failure, context.record.best_id) == ("off by two", None)
    assert list(context.record.candidates) == ["c001"]
    assert isinstance(context.record.events[-1], ev.StepFinished)
    assert context.record.events[-1].outcome == Verdict.INCORRECT
    assert isinstance(again, Ask), "the method asks for a repair"
    assert toolchain.asked[-1] == ("time", "(64, 1)"), "what cannot be kept is not checked"
    said = "as written it failed when timed again (off by two), so none was taken"
    assert said in headroom(context.record, context.record.candidates["c001"])
    sweep = context.record.sweeps["c001"]
    assert "failed when timed again: incorrect: off by two." in sweeps.form("c001", sweep).failed_again
    tuned.print_sweep(console := Console(record=True, width=200), "kernel 1", sweep)
    assert "failed when timed again: incorrect: off by two. Nothing is kept." in console.export_text()
    context.folder.journal_file.write_bytes(b"".join(lines[:-1]))
    killed = open_context(tmp_path, toolchain=toolchain, tune=5, collect=Switch.OFF)  # type: ignore[arg-type]
    loop.take_step(killed, loop.next_action(killed))  # type: ignore[arg-type]
    assert told(killed) == told(context)


def test_a_sweep_that_is_killed_after_any_event_goes_on_and_does_nothing_twice(tmp_path: Path) -> None:
    whole = begun(tmp_path / "whole", asked := Scripted())
    conclusion(whole)
    lines = whole.folder.journal_file.read_bytes().splitlines(keepends=True)
    for count in range(5, len(lines) + 1):
        folder = tmp_path / f"killed{count}"
        begun(folder, Scripted())
        again = open_context(folder, toolchain=(rest := Scripted()), tune=5, collect=Switch.OFF)  # type: ignore[arg-type]
        again.folder.journal_file.write_bytes(b"".join(lines[:count]))
        again = open_context(folder, toolchain=rest, tune=5, collect=Switch.OFF)  # type: ignore[arg-type]
        conclusion(again)
        assert told(again) == told(whole)
        builds = [one for one in rest.asked if one[0] == "compile"]
        others = [one for one in rest.asked if one[0] != "compile"]
        assert others == [one for one in asked.asked if one[0] != "compile"][-len(others) :] if others else True
        judged = [one.event for one in again.journal.entries[:count]]
        known = sum(isinstance(one, ev.VariantCompiled) for one in judged)
        assert len(builds) == 5 - known
        assert len(others) == 11 - sum(isinstance(one, ev.VariantChecked | ev.VariantTimed) for one in judged)


@pytest.mark.parametrize("verb", [CommandKind.PAUSE, CommandKind.STOP])
def test_a_pause_or_a_stop_breaks_a_sweep_off_between_variants_and_it_goes_on_there(
    verb: CommandKind, tmp_path: Path
) -> None:
    context = begun(tmp_path, toolchain := Scripted())
    inbox = Inbox(context)
    context.interrupt, context.interruptible = inbox.interrupt, inbox.interruptible

    def ask() -> None:
        if not context.folder.commands_file.exists():
            commands.send(context.folder.commands_file, verb)
            time.sleep(1.5 * POLL_S)  # the inbox looks for a stop meanwhile, and must not lose a pause by it

    toolchain.act = ask
    action = loop.next_action(context)
    assert isinstance(action, Tune)
    assert loop.attempt_step(context, action, inbox) is None
    assert [what for what, _ in toolchain.asked if what != "compile"] == []
    assert context.record.in_flight is not None
    assert loop.next_action(context) == action


def test_a_run_that_is_out_of_time_ends_its_sweep_with_what_it_has(tmp_path: Path) -> None:
    context = begun(tmp_path, Scripted(), budget=Budget(wall_s=1e-9))
    context.step_began = time.monotonic() - 1.0
    ended = conclusion(context)
    assert ended.candidate_id == "c001"
    assert context.record.sweeps["c001"].variants == {}


def test_what_the_compiler_writes_is_journaled_once_and_shown_with_the_first_kernel(tmp_path: Path) -> None:
    context = open_context(tmp_path, toolchain=Scripted(), compiler_hint=True)  # type: ignore[arg-type]
    first = loop.next_action(context)
    assert isinstance(first, Ask)
    before = first.prompt(context, first)[1].text
    show_compiler(context)
    show_compiler(context)
    assert sum(isinstance(one, ev.CompilerShown) for one in context.record.events) == 1
    assert "void fused();" in first.prompt(context, first)[1].text
    assert "own compiler" not in before


def test_a_compiler_that_is_killed_leaves_its_reason_and_the_run_goes_on_without_it(tmp_path: Path) -> None:
    toolchain = Scripted(hint=ToolchainError("a part of the evaluator was killed"))
    context = open_context(tmp_path, toolchain=toolchain, compiler_hint=True)  # type: ignore[arg-type]
    show_compiler(context)
    assert context.record.compiler == ev.CompilerShown(None, "a part of the evaluator was killed")


@pytest.mark.parametrize("changes", [{"tune": 0}, {}])
def test_without_the_setting_or_a_declaration_nothing_is_tuned(tmp_path: Path, changes: dict[str, int]) -> None:
    context = begun(tmp_path, Scripted(), **changes)
    source = "class ModelNew: ...\n" if not changes else SOURCE
    accepted = Conclude(0, DepthOutcome.ACCEPTED, "c001", None, "correct and timed")
    assert tuned_first(context.record, accepted, lambda kernel: source) == accepted


def test_a_sweep_that_a_person_rejects_is_not_asked_for_again(tmp_path: Path) -> None:
    context = begun(tmp_path, Scripted())
    record: Record = context.record
    for event in (ev.StepStarted(1, "tune", 0, "c001"), ev.StepFinished(1, "tune", 0.0, "skipped")):
        record.apply(event)
    accepted = Conclude(0, DepthOutcome.ACCEPTED, "c001", None, "correct and timed")
    assert tuned_first(record, accepted, lambda kernel: SOURCE) == accepted
