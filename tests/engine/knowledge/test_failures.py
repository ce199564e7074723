"""Failure rules: how failures are told alike, what a run adds, what a writer is told, and how a rule fades."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from engine.evaluator.request import Evaluator
from engine.knowledge import failures
from engine.search.actions import Ask
from engine.search.methods.cutegen.strategy import CuteGen
from engine.search.steps.ask import ask_model
from storage.knowledge import changes, files
from storage.knowledge import failures as rules
from storage.knowledge.failures import FailureRule, RuleStatus
from storage.knowledge.records import FailureCase, RuleWords
from storage.results.evaluation_results import CheckResult, CompileResult, Mismatch
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import DepthOutcome, Origin
from tests.engine.contexts import SOURCE, open_context
from tests.engine.story import Story
from tests.guard.engine_side import NoToolchain

GEMM = "no matching function for call to `gemm()`"
LAST_COLUMNS = tuple((*(0.0,) * 15, 1.0) for _ in range(16))
EVERYWHERE = ((1.0,) * 16,) * 16


def case(number: int, signature: str = GEMM, **fields: object) -> FailureCase:
    plain: dict[str, object] = {"run_id": f"r{number}", "candidate_id": "c001", "at": 1.0 * number, "language": "cute"}
    return FailureCase(**(plain | {"toolchain": "cpu", "signature": signature} | fields))  # type: ignore[arg-type]


MENDED = case(2, "", candidate_id="c002", mends=GEMM, words="B as (N, K) for cute::gemm")
TWICE = [case(1), case(2), MENDED]


def rule_of(cases: list[FailureCase], *said: RuleWords) -> FailureRule:
    (found,) = rules.rules(rules.tally(cases), {one.rule: one for one in said})
    return found


@pytest.mark.parametrize(
    ("message", "general"),
    [
        (
            "/tmp/x/candidate.cpp:41:17: error: no matching function for call to \u2018gemm(cute::Tensor<float*, "
            "Layout<int, 4> >&, cute::Tensor<float*>&)\u2019",
            GEMM,
        ),
        ("candidate.py:9: error: \u2018foo\u2019 was not declared in this scope; did you mean \u2018fob\u2019?",
         "`foo` was not declared in this scope"),
        ('k.cu(12): error: no instance of function template "cute::gemm" matches the argument list',
         "no instance of function template `cute::gemm` matches the argument list"),
        ("k.cu(12): error #20: identifier \"x4\" is undefined", "identifier `x4` is undefined"),
        ("error: can't pass \"a\" through the stub's pointer", "can't pass `a` through the stub's pointer"),
        ('error: no operator "=" matches these operands: "int', "no operator `=` matches these operands: int"),
        ("expected shape (4096, 17), got (17, 4096) at 0x7f3a", "expected shape (), got () at N"),
    ],
)  # fmt: skip
def test_a_message_is_told_without_what_belongs_to_one_kernel(message: str, general: str) -> None:
    assert failures.general(message) == general


@pytest.mark.parametrize(
    ("heat", "trial", "signature"),
    [
        (EVERYWHERE, "own 1", ""),
        (LAST_COLUMNS, "own 2", "wrong output in the last columns"),
        (EVERYWHERE, "huge", "wrong output for inputs of huge"),
    ],
)
def test_a_wrong_result_has_a_signature_where_its_place_or_its_inputs_tell_something(
    heat: tuple[tuple[float, ...], ...], trial: str, signature: str
) -> None:
    wrong = Mismatch((0, 0), 1.0, 0.0, 1, 256, 1.0, 1.0, (16, 16), heat, trial)
    story = Story().candidate("c001").compiles("c001")
    story.tell(ev.Checked(1, "c001", CheckResult(Verdict.INCORRECT, 1.0, message="wrong output", mismatch=wrong)))
    assert failures.signature(story.record.candidates["c001"]) == signature


def test_a_run_adds_its_failures_their_mends_and_what_their_writers_were_told() -> None:
    told = rules.to_tell([rule_of(TWICE)], "cute", "cpu", ())
    story = Story(language="cute").tell(ev.RulesTold(1, 0, told)).candidate("c001")
    _fails(story, "c001")
    _fails(story.candidate("c002", Origin.REPAIR, "c001"), "c002")
    story.candidate("c003", Origin.REPAIR, "c002", "Pass B as (N, K)").compiles("c003").checks("c003")
    assert failures.cases(story.record, 5.0) == [], "its step index is not concluded"
    story.tell(ev.DepthFinished(3, 0, DepthOutcome.ACCEPTED, "c003", None, False, False, ""))
    first, again, mended = failures.cases(story.record, 5.0)
    assert (first.signature, first.is_repeat, first.told) == (GEMM, False, (told[0].name,))
    assert (again.signature, again.is_repeat, again.told) == (GEMM, True, ())
    assert (mended.signature, mended.mends, mended.words) == ("", GEMM, "Pass B as (N, K)")


def _fails(story: Story, name: str) -> None:
    said = "candidate.cpp:4:2: error: no matching function for call to 'gemm(int, int)'"
    story.tell(ev.Compiled(story.step, name, CompileResult(False, 1.0, said, verdict=Verdict.COMPILE_ERROR), None))


def test_a_rule_arises_where_two_kernels_failed_alike_and_one_was_mended() -> None:
    assert rule_of([case(1), MENDED]).status is RuleStatus.WAITING
    assert rule_of([case(1), case(2)]).status is RuleStatus.WAITING
    assert rule_of([case(1), case(1, candidate_id="c002", is_repeat=True), MENDED]).status is RuleStatus.WAITING
    found = rule_of(TWICE)
    assert (found.status, found.words, found.kernels, found.runs) == (RuleStatus.ACTIVE, MENDED.words, 2, 2)


def test_a_rule_fades_where_telling_it_does_not_help_and_begins_anew_in_other_words() -> None:
    name = rule_of(TWICE).name
    helped, not_helped = case(3, "", told=(name,)), [case(number, told=(name,)) for number in (4, 5)]
    assert (
        rule_of([*TWICE, helped]).confidence > rule_of(TWICE).confidence > rule_of([*TWICE, not_helped[0]]).confidence
    )
    faded = rule_of([*TWICE, helped, *not_helped])
    assert (faded.status, faded.told, faded.recurred) == (RuleStatus.FADED, 3, 2)
    said = RuleWords(faded.rule_id, "give gemm B as (N, K)")
    worded = rule_of([*TWICE, helped, *not_helped], said)
    assert (worded.status, worded.told, worded.words) == (RuleStatus.ACTIVE, 0, said.words)
    assert rule_of(TWICE, replace(said, is_disabled=True)).status is RuleStatus.OFF


def test_a_writer_is_told_few_rules_of_its_language_those_told_before_first() -> None:
    many = [one for n in range(8) for one in (case(n, f"error {n}"), case(n + 1, f"error {n}", candidate_id="c009"))]
    mends = [case(n, "", candidate_id="c008", mends=f"error {n}", words=f"mend {n}") for n in range(8)]
    found = rules.rules(rules.tally([*many, *mends]), {})
    first = rules.to_tell(found, "cute", "cpu", ())
    assert len(first) == rules.MOST_TOLD
    names = [one.name for one in first]
    assert [one.name for one in rules.to_tell(found, "cute", "cpu", names[::-1])] == names[::-1]
    assert rules.to_tell(found, "cuda", "cpu", ()) == rules.to_tell(found, "cute", "cuda", ()) == ()


def test_the_rules_told_are_journaled_once_and_stand_in_the_prompt(tmp_path: Path) -> None:
    """A person's words are told from the next kernel on; with no base nothing is told and the prompt is as it was."""
    files.append_cases(TWICE, tmp_path / "knowledge")
    prompts = dict[str, str]()
    for choice in ("off", "on"):
        reply = [("synthesise", None, f"```python\n{SOURCE}```")] * 2
        context = open_context(tmp_path / choice, reply, knowledge=choice, language="cute")
        context.knowledge, context.strategy, context.step = tmp_path / "knowledge", CuteGen(), 1
        context.toolchain = cast(Evaluator, NoToolchain("cpu"))
        ask = cast(Ask, context.strategy.again(context.record, "synthesise", None))
        ask_model(context, ask)
        ask_model(context, ask)
        prompts[choice] = ask.prompt(context, ask)[0].text
        assert len(context.record.failure_rules) == (choice == "on")
    added = prompts["on"].removeprefix(prompts["off"])
    assert added.strip().endswith(f"- {GEMM} (2 kernels of 2 runs): {MENDED.words}")
    base = files.load(tmp_path / "knowledge")
    files.append_revision(
        changes.edited(base, base.rules()[0].rule_id, {"words": "B is (N, K)"}), tmp_path / "knowledge"
    )
    context.step = 2
    ask_model(context, ask)
    assert [one.words for told in context.record.failure_rules for one in told.rules] == [MENDED.words, "B is (N, K)"]
