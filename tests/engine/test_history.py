"""What a prompt tells of a run's past: journals of every course, and the lines that come of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.evaluator.toolchains.cpu import CpuToolchain
from engine.search.actions import Ask, NewCandidate
from engine.search.context import RunContext
from engine.search.patching.edits import MAX_KERNEL
from engine.search.prompting import Passage, Ranked, compose
from engine.search.steps.candidates import create_candidate
from engine.search.steps.history import BEFORE, LEFT, LINE, PRESENT, REPAIRS, attempts, history, shortened
from storage.results.evaluation_results import CheckResult, CompileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.journal import read
from storage.run.record import Record
from storage.run.settings import DepthOutcome, Origin, StepKind
from storage.run.steering.command_arguments import as_file_reply
from storage.run.steering.verbs import CommandKind
from tests.engine.contexts import SOURCE, add_candidate, open_context
from tests.engine.story import Step, Story, resolved, take

FIX, OPTIMISE = Origin.REPAIR, Origin.OPTIMISATION


def lines(story: Story, base: str | None) -> list[str]:
    return str(history(story.record, base, "depth")).split("\n")


def test_each_step_of_the_line_is_told_with_its_change_its_gain_and_its_verdict() -> None:
    story = Story().candidate("c001", summary="one pass").does_not_compile("c001")
    story.candidate("c002", FIX, "c001", "end the statement").passes("c002", 1.0).settles("c002")
    story.candidate("c003", OPTIMISE, "c002", "vector loads").passes("c003", 1.5).settles("c003")
    story.candidate("c004", OPTIMISE, "c003", "streaming stores").passes("c004", 0.9).settles("c004")
    story.candidate("c005", OPTIMISE, "c004", "unroll by four").passes("c005", 0.91).settles("c005")
    assert lines(story, "c005") == [
        LINE,
        "- depth 0, kernel 2: 1x: one pass; repaired: end the statement",
        "- depth 1, kernel 3 (the best so far): 1x → 1.5x, faster: vector loads",
        "- depth 2, kernel 4: 1.5x → 0.9x, slower: streaming stores",
        "- depth 3, kernel 5 (the base): 0.9x → 0.91x, within noise (±5%): unroll by four",
    ]


def test_a_detour_that_the_base_does_not_go_through_is_named_as_left() -> None:
    story = Story().accepts("c001", 1.0).accepts("c002", 1.4, "c001").accepts("c003", 1.2, "c002")
    told = lines(story, "c002")
    assert told[2:] == [
        "- depth 1, kernel 2 (the base, the best so far): 1x → 1.4x, faster: c002",
        LEFT,
        "- depth 2, kernel 3 from kernel 2: 1.4x → 1.2x, slower: c003",
    ]


def test_after_a_roll_back_the_branch_that_was_left_is_named_with_its_kernels() -> None:
    story = Story().accepts("c001", 1.0).accepts("c002", 0.8, "c001").accepts("c003", 2.0, "c001")
    story.accepts("c004", 1.9, "c003").steers(CommandKind.ROLL_BACK, "c001").accepts("c005", 1.1, "c001")
    assert lines(story, "c005") == [
        LINE,
        "- depth 0, kernel 1: 1x: c001",
        "- depth 4, kernel 5 (the base): 1x → 1.1x, faster: c005",
        "Left when a person went back to kernel 1, so not in the base:",
        "- depth 1, kernel 2 from kernel 1: 1x → 0.8x, slower: c002",
        "- depth 2, kernel 3 (the best so far) from kernel 1: 1x → 2x, faster: c003",
        "- depth 3, kernel 4 from kernel 3: 2x → 1.9x, within noise (±5%): c004",
    ]


def test_from_a_pinned_kernel_later_steps_are_left_and_a_kernel_made_after_it_is_on_the_line() -> None:
    story = Story().accepts("c001", 1.0).accepts("c002", 1.5, "c001").steers(CommandKind.PIN, "c001")
    assert lines(story, "c001")[2:] == [
        LEFT,
        "- depth 1, kernel 2 (the best so far) from kernel 1: 1x → 1.5x, faster: c002",
    ]
    story.accepts("c003", 1.2, "c001")
    assert [line.partition(":")[0] for line in lines(story, "c003") if line.startswith("-")] == [
        "- depth 0, kernel 1",
        "- depth 2, kernel 3 (the base)",
        "- depth 1, kernel 2 (the best so far) from kernel 1",
    ]


def test_kernels_brought_along_say_so_and_what_was_not_measured_here_has_no_figure() -> None:
    story = Story().candidate("c001", Origin.FORKED, None, "kernel 4 of swish-1").passes("c001", 1.3).settles("c001")
    assert lines(story, "c001")[1] == "- depth 0, kernel 1 (the base, the best so far): 1.3x: kernel 4 of swish-1"
    story = Story().candidate("c001", Origin.IMPORTED, None, "imported from a.py")
    not_ours = ev.DepthFinished(1, 0, DepthOutcome.IMPORTED, "c001", None, False, False, "imported, not measured here")
    story.tell(not_ours).candidate("c002", OPTIMISE, "c001", "tiles").passes("c002", 2.0).settles("c002")
    assert lines(story, "c002")[1:] == [
        "- depth 0, kernel 1: imported, not measured here: imported from a.py",
        "- depth 1, kernel 2 (the base, the best so far): 2x: tiles",
    ]


def test_what_failed_in_this_step_is_told_with_its_last_error_and_later_as_left() -> None:
    story = Story().accepts("c001", 1.0).candidate("c002", OPTIMISE, "c001", "matrix instructions")
    story.does_not_compile("c002").candidate("c003", FIX, "c002", "other shape").does_not_compile("c003")
    story.candidate("c004", FIX, "c003", "yet another").compiles("c004")
    wrong = CheckResult(Verdict.INCORRECT, 1.0, message="3 of 8 elements are wrong: first at (0, 1). All in row 0.")
    story.tell(ev.Checked(story.step, "c004", wrong)).fails_to_patch(StepKind.REPAIR, "c004")
    failure = (
        "gives wrong results: matrix instructions; repair tried 2 times, last: yet another "
        "[3 of 8 elements are wrong: first at (0, 1)]"
    )
    story.fails_to_patch(StepKind.OPTIMISE, "c001")
    unusable = "- the last reply could not be used: it holds no whole file"
    assert lines(story, "c001")[2:] == [PRESENT, f"- kernel 4: {failure}", unusable]
    story.candidate("c005", OPTIMISE, "c001", "swizzle").does_not_compile("c005")
    again = lines(story, "c001")
    assert again[2:] == [PRESENT, f"- kernel 4: {failure}", "- kernel 5: does not compile: swizzle [error: no]"]
    story.settles("c005", DepthOutcome.GIVEN_UP)
    assert lines(story, "c001")[2:] == [
        LEFT,
        f"- depth 1, kernel 4 from kernel 1: {failure}",
        "- depth 1, kernel 5 from kernel 1: does not compile: swizzle [error: no]",
    ]


def test_a_reply_that_could_not_be_used_says_why() -> None:
    story = Story().accepts("c001", 1.0)
    tried = ev.PatchTried(
        9, 3, "c001", "rewrite", False, 0, "Edit 1: its old_code stands nowhere.\nold_code was:", None
    )
    for event, said in (
        (tried, "Edit 1: its old_code stands nowhere."),
        (ev.ModelCalled(9, 0, "optimise", 1, "c001", "m", "p", "r", 1, 1, 0, 0, 0.0, 1.0, "length"), "cut off"),
    ):
        story.tell(ev.StepStarted(9, "optimise", 1, "c001")).tell(event)
        story.tell(ev.StepFinished(9, "optimise", 1.0, "patch_failed"))
        assert said in lines(story, "c001")[-1]
        assert len(lines(story, "c001")) == 4


def test_a_step_that_is_done_again_keeps_what_it_left_unfinished() -> None:
    story = Story().accepts("c001", 1.0).candidate("c002", OPTIMISE, "c001", "tiles").compiles("c002")
    story.steers(CommandKind.RETRY, "m")
    assert lines(story, "c001")[2:] == [PRESENT, "- kernel 2: left before it was timed: tiles"]


def test_a_first_kernel_is_asked_for_again_with_what_failed_before(tmp_path: Path) -> None:
    context = open_context(tmp_path, toolchain=CpuToolchain())
    asks = resolved(context, Step("synthesise", 0))
    assert isinstance(asks, Ask)
    before = asks.prompt(context, asks)[1].text
    name = add_candidate(context)
    refused = CompileResult(
        False, 1.0, "a note\ncandidate.py:3: error: no such layout\n", verdict=Verdict.COMPILE_ERROR
    )
    context.emit(ev.Compiled(1, name, refused, None))
    after = asks.prompt(context, asks)[1].text
    failed = "- kernel 1: does not compile: c001 [candidate.py:3: error: no such layout]"
    assert (PRESENT in before, f"{PRESENT}\n{failed}\n" in after) == (False, True)
    later = Story().candidate("c001").does_not_compile("c001").settles("c001", DepthOutcome.GIVEN_UP)
    assert lines(later, None) == [BEFORE, "- depth 0, kernel 1: does not compile: c001 [error: no]"]


def test_a_first_kernel_that_is_too_long_is_asked_for_again_with_its_length(tmp_path: Path) -> None:
    long = as_file_reply(SOURCE + "# " + "x" * MAX_KERNEL + "\n")
    context = open_context(tmp_path, [("synthesise", None, long)], CpuToolchain())
    asks = resolved(context, Step("synthesise", 0))
    assert isinstance(asks, Ask)
    take(context, Step("synthesise", 0))
    told = asks.prompt(context, asks)[1].text
    assert "used: The kernel has 200,059 characters, and at most 200,000 are taken." in told
    assert not context.record.candidates


def repaired(home: Path, count: int, diagnosis: str = "cause {}") -> RunContext:
    """A run whose second kernel has been repaired so many times and still fails, each failure diagnosed."""
    context = open_context(home, toolchain=CpuToolchain())
    source, base = SOURCE, add_candidate(context, speedup=1.0)
    name, made = base, NewCandidate(OPTIMISE, base, 0, "", "")
    for number in range(count + 1):
        context.step, source = 10 + number, source.replace("pass", f"pass  # edit {number}\n    pass", 1)
        create_candidate(context, source, name, made, f"change {number}")
        name, made = f"c{number + 2:03d}", NewCandidate(FIX, base, 0, "", "", number + 1)
        failed = CompileResult(False, 1.0, f"error: number {number}", verdict=Verdict.COMPILE_ERROR)
        context.emit(ev.Compiled(context.step, name, failed, None))
        context.emit(ev.DiagnosisWritten(context.step, name, context.blobs.put(diagnosis.format(number))))
    return context


def prompt(context: RunContext, kind: str, about: str) -> str:
    ask = resolved(context, Step(kind, context.record.step_index, about))
    assert isinstance(ask, Ask)
    return ask.prompt(context, ask)[1].text


def test_a_fourth_repair_is_asked_for_with_the_three_before_it_and_the_reference(tmp_path: Path) -> None:
    context = repaired(tmp_path, 3)
    text = prompt(context, "repair", "c005")
    told = [f"Repair {n + 1}: kernel {n + 2} does not compile [error: number {n}]" for n in range(3)]
    places = [text.index(one) for n in range(3) for one in (told[n], f"cause {n}\n", f"+    pass  # edit {n + 1}\n")]
    assert places == sorted(places)
    assert text.index(REPAIRS) < places[0]
    assert "makes to kernel 1, which is correct: change 0\n" in text
    assert context.task.source.strip() in text
    assert text.count("cause 3") == 1
    diagnosed = prompt(context, "diagnose", "c005")
    assert all(one in diagnosed for one in told)
    assert "+    pass  # edit 0\n" in diagnosed
    assert "cause 3" not in diagnosed
    first = prompt(context, "repair", "c002")
    assert REPAIRS not in first
    assert "The last change (change 0), as a unified diff:" in prompt(context, "diagnose", "c002")


def test_a_prompt_is_the_same_from_the_journal_alone(tmp_path: Path) -> None:
    context = repaired(tmp_path, 2)
    before = [prompt(context, kind, "c004") for kind in ("repair", "diagnose", "optimise")]
    context.record = Record.of(context.record.settings, list(read(context.folder.journal_file)))
    assert [prompt(context, kind, "c004") for kind in ("repair", "diagnose", "optimise")] == before


def test_a_patch_that_could_not_be_applied_is_told_when_it_is_asked_for_again(tmp_path: Path) -> None:
    context = repaired(tmp_path, 0)
    context.emit(ev.StepStarted(20, "repair", 1, "c002"))
    context.emit(ev.PatchTried(20, 0, "c002", "edits", False, 1, "Edit 1 overlaps edit 2.", None))
    assert "Edit 1 overlaps" not in prompt(context, "repair", "c002")
    context.emit(ev.StepFinished(20, "repair", 1.0, "patch_failed"))
    assert "The last edits of the kernel as it stands could not be used: Edit 1 overlaps edit 2." in prompt(
        context, "repair", "c002"
    )
    assert [one.kernels for one in attempts(context.record)] == [["c001"], ["c002"]]


def test_long_repairs_keep_what_failed_and_the_newest_edits_and_lose_the_oldest_edits_first(tmp_path: Path) -> None:
    text = prompt(repaired(tmp_path, 5, "cause {}\n" + "and a long reason for it\n" * 100), "repair", "c007")
    kept = [n for n in range(1, 6) if f"+    pass  # edit {n}\n" in text]
    found = [n for n in range(5) if f"\ncause {n}\n" in text.partition("What failed:")[0]]
    assert all(f"[error: number {n}]" in text for n in range(5))
    assert kept == [5]
    assert found == list(range(5 - len(found), 5))
    assert 0 < len(found) < 5
    left_out = (5 - len(kept)) + (5 - len(found))
    assert f"[{left_out} of 16 entries left out here" in text
    assert "lines left out here]" in text


def test_a_long_history_keeps_base_best_failures_and_large_steps_and_counts_the_rest() -> None:
    story = Story().accepts("c001", 1.0).accepts("c002", 4.0, "c001").steers(CommandKind.ROLL_BACK, "c001")
    words = "a change that is told in as many words as a model has room for in one line of a list, or nearly as many"
    name = "c001"
    for number in range(3, 63):
        parent, name = name, f"c{number:03d}"
        speedup = 1.6 if number > 10 else 1.0
        story.candidate(name, OPTIMISE, parent, f"{words} {number}").passes(name, speedup).settles(name)
    story.candidate("c063", OPTIMISE, name, words).does_not_compile("c063")
    told = history(story.record, name, "depth")
    text = str(told)
    assert len(text) <= told.budget + 80
    kept = [
        int(line.partition("kernel ")[2].split()[0].strip(":")) for line in text.split("\n") if "kernel " in line[:20]
    ]
    newest = [number for number in kept if number not in (2, 11, 62, 63)]
    assert {2, 11, 62, 63} <= set(kept)
    assert newest == list(range(62 - len(newest), 62))
    assert text.endswith(f"[{63 - len(kept)} of 63 entries left out here, those that tell least]")


PASSAGES = tuple(Passage("one" if n < 5 else "two", f"line {n}", (float(n % 7), n)) for n in range(10))


@pytest.mark.parametrize("allowed", [0, 10, 25, 40, 83, 1000])
def test_a_cut_takes_what_is_worth_least_wherever_it_stands(allowed: int) -> None:
    told = Ranked(PASSAGES, 500).within(allowed)
    kept = [one for one in PASSAGES if one.text in told.split("\n")]
    best = sorted(PASSAGES, key=lambda one: one.worth, reverse=True)[: len(kept)]
    assert sorted(kept, key=lambda one: one.worth, reverse=True) == best
    assert [line for line in told.split("\n") if line.startswith("line")] == [one.text for one in kept]
    assert ("one" in told.split("\n"), "two" in told.split("\n")) == tuple(
        any(p.heading == name for p in kept) for name in ("one", "two")
    )
    assert (len(kept) == 10) is ("left out" not in told)
    assert len(kept) == 10 or f"[{10 - len(kept)} of 10 entries" in told


def test_a_window_that_is_too_small_cuts_the_history_by_worth() -> None:
    values: dict[str, Any] = dict.fromkeys(("task", "guide", "failure", "diagnosis", "listing", "rules", "hint"), "x")
    long = tuple(Passage(p.heading, p.text + "\n" + "and so on " * 10, p.worth) for p in PASSAGES)
    values |= {"patch_format": "f", "repairs": Ranked(long, 5000)}
    whole = compose("cutegen/repair.md", None, **values).text
    cut = compose("cutegen/repair.md", len(whole) - 300, **values).text
    assert len(cut) <= len(whole) - 300
    assert ["line 6\n" in cut, "line 0\n" in cut, "line 7\n" in cut, "line 1\n" in cut] == [True, False, False, False]


def test_a_text_is_shortened_at_a_line_and_says_by_how_much() -> None:
    assert shortened("one\ntwo\nthree", 8) == "one\ntwo\n[1 of 3 lines left out here]"
    assert shortened("one\ntwo", 8) == "one\ntwo"
    assert shortened("a line longer than that", 8) == "a line longer than that"
