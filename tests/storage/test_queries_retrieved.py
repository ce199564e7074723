"""What the knowledge base had answered before a kernel, and whether the kernel follows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from storage.index import queries
from storage.index.database import Database
from storage.index.queries import RetrievalRow
from storage.knowledge.records import Advised, Bottleneck, Category, ToldRule
from storage.results.evaluation_results import TimingResult, Tunable
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import DepthOutcome, Origin
from tests.sample_results import BROKEN, BUILT, RIGHT
from tests.storage.test_queries_predictions import FIRST, made, tell, timed

WORDS = "It does this.", "Helps here.", "Hurts there."
WIDER = Advised("wider words", Category.MEMORY, *WORDS, 1.4, 0.7, 5, 4, 0, 1)
STAGES = Advised("double buffering", Category.LATENCY, *WORDS, 1.1, 0.4, 4, 1, 2, 1, True, "memory_latency_bound")


def asked(
    step: int,
    name: str = "c001",
    depth: int = 1,
    *found: Advised,
    state: str = "cache_inefficient",
    mark: str = "evidence:10",
    others: tuple[str, ...] = (),
) -> ev.Event:
    bound = Bottleneck.MEMORY if state else None
    return ev.Consulted(
        step, depth, name, state, bound, 0.9, found, mark, ("a tail",), "by rule", {"share": 9.0}, others=others
    )


def row(db: Database, root: Path, *events: ev.Event, candidate: str = "c002") -> RetrievalRow | None:
    tell(db, root, *events)
    return queries.retrieval(db, "r1", candidate)


def test_a_kernel_whose_technique_was_found_follows_it(db: Database, root: Path) -> None:
    told = row(
        db, root, *FIRST, asked(3, "c001", 1, WIDER, STAGES), *made(4, "c002", "c001", technique="Double-buffering")
    )
    assert told == RetrievalRow(
        3, 1, "cache_inefficient", "memory", 0.9, ["a tail"], "by rule", "evidence:10", "Double-buffering", 2, 1
    )
    found = queries.retrieved(db, "r1", 3)
    assert [one.technique for one in found] == ["wider words", "double buffering"]
    second = found[1]
    assert (second.category, second.expected_gain, second.confidence) == ("latency", 1.1, 0.4)
    assert (second.attempts, second.faster, second.slower, second.failed) == (4, 1, 2, 1)
    assert (second.is_negative, second.inherited_from) == (True, "memory_latency_bound")
    assert (second.about, second.helps, second.hurts) == WORDS


def test_another_technique_or_none_does_not_follow(db: Database, root: Path) -> None:
    other = [*FIRST, asked(3, "c001", 1, WIDER), *made(4, "c002", "c001", technique="SIMD")]
    unnamed = made(5, "c003", "c001")
    told = row(db, root, *other, *unnamed)
    assert told is not None
    assert (told.technique, told.followed, told.techniques) == ("SIMD", None, 1)
    none = queries.retrieval(db, "r1", "c003")
    assert none is not None
    assert (none.technique, none.followed) == ("", None)


def test_a_technique_known_from_other_states_is_told_apart(db: Database, root: Path) -> None:
    answer = asked(3, "c001", 1, WIDER, others=("double buffering",))
    told = row(db, root, *FIRST, answer, *made(4, "c002", "c001", technique="Double_buffering"))
    assert told is not None
    assert (told.followed, told.is_other) == (None, True)


def test_a_repair_follows_what_its_first_version_does(db: Database, root: Path) -> None:
    first = made(4, "c002", "c001", technique="wider words")
    told = row(
        db, root, *FIRST, asked(3, "c001", 1, WIDER), *first, *made(5, "c003", "c002", base="c001"), candidate="c003"
    )
    assert told is not None
    assert (told.number, told.technique, told.followed) == (1, "wider words", 0)


def test_only_the_last_question_of_the_same_step_index_before_the_kernel_counts(db: Database, root: Path) -> None:
    early, late = asked(3, "c001", 1, STAGES), asked(4, "c001", 1, WIDER, state="")
    after, elsewhere = asked(9, "c001", 1, STAGES), asked(10, "c001", 2, STAGES)
    told = row(db, root, *FIRST, early, late, *made(5, "c002", "c001", technique="wider words"), after, elsewhere)
    assert told is not None
    assert (told.step, told.state, told.bottleneck, told.followed) == (4, "", None, 0)
    assert queries.retrieval(db, "r1", "c001") is None


def test_a_run_that_asked_nothing_has_no_answer(db: Database, root: Path) -> None:
    assert row(db, root, *FIRST, *made(4, "c002", "c001", technique="SIMD"), *timed(5, "c002", 2.0)) is None


def test_steps_that_ask_teach_and_edit_have_what_came_of_them(db: Database, root: Path) -> None:
    def step(number: int, kind: str, *events: ev.Event) -> list[ev.Event]:
        return [ev.StepStarted(number, kind, 1, "c001"), *events, ev.StepFinished(number, kind, 0.1, "done")]

    tell(
        db, root, *FIRST, *step(3, "consult", asked(3, "c001", 1, WIDER)),
        *step(4, "consult", asked(4, "c001", 1, state="")),
        *step(5, "teach", ev.Taught(5, 1, "r1:5", "wider words help here", "blob")),
        *step(6, "optimise", *made(6, "c002", "c001", gain=1.5)),
    )  # fmt: skip
    results = [step.result for step in queries.steps(db, "r1", newest_first=False)]
    assert [(result.state, result.techniques, result.lesson, result.predicted) for result in results] == [
        ("cache_inefficient", 1, None, None), ("", 0, None, None), (None, 0, "wider words help here", None),
        (None, 0, None, 1.5),
    ]  # fmt: skip
    assert (results[-1].number, results[-1].made_number) == (1, 2)


def test_a_kernel_has_the_rules_its_writer_was_told_last_and_the_tools_the_model_called(
    db: Database, root: Path
) -> None:
    rules = [ToldRule(f"rule-{n}:1", "no `gemm`", f"words {n}", 2, 1) for n in range(3)]
    second = ev.ToolAnswered(4, 0, 1, "check", "s", "passed", "it passes", "t", 1.0)
    tools = [second, ev.ToolAnswered(4, 0, 0, "compile", "s", "compile_error", "error: no", "t", 0.5)]
    tell(
        db, root, ev.RulesTold(1, 0, (rules[0],)), *FIRST, ev.RulesTold(3, 1, (rules[1], rules[2])), *tools,
        *made(4, "c002", "c001"), ev.RulesTold(5, 1, ()), *made(5, "c003", "c002"),
    )  # fmt: skip
    told = [queries.told_rules(db, "r1", name) for name in ("c001", "c002", "c003")]
    assert told == [[rules[0]], [rules[1], rules[2]], []]
    assert [one.tool for one in queries.tool_calls(db, "r1", "c002")] == ["compile", "check"]
    assert queries.tool_calls(db, "r1", "c001") == []


def test_the_sweep_of_a_kernel_is_told_on_its_page_and_on_that_of_the_kernel_it_has_made(
    db: Database, root: Path
) -> None:
    times = {1: 2.0, 2: 1.5, 3: 3.0}
    built = [ev.VariantCompiled(3, "c001", n, {"kTile": 32 * n}, BUILT if n != 2 else BROKEN) for n in times]
    brief = [ev.VariantTimed(3, "c001", n, True, TimingResult((1.0,) * 9, (times[n],) * 9)) for n in (1, 3)]
    full = (ev.VariantChecked(3, "c001", 3, RIGHT), ev.VariantTimed(3, "c001", 3, False, brief[1].result))
    child = next(one for one in made(3, "c002", "c001") if isinstance(one, ev.CandidateCreated))
    tuned = replace(child, origin=Origin.TUNED, summary="tuned: kTile 64 → 96")
    started = ev.SweepStarted(3, 0, "c001", (Tunable("kTile", 64, (32, 64, 96)),), 3)
    tell(db, root, *FIRST, ev.StepStarted(3, "tune", 0, "c001"), started, *built, *brief, *full, run_id="going on")
    found = queries.sweep(db, "going on", "c001")
    assert found is not None
    assert (found.number, found.kept_number, found.is_over) == (1, None, False)
    tell(
        db, root, *FIRST, ev.StepStarted(3, "tune", 0, "c001"), started, *built, *brief, *full, tuned,
        ev.StepFinished(3, "tune", 9.0, "tuned"),
        ev.DepthFinished(3, 0, DepthOutcome.ACCEPTED, "c002", None, False, True, ""),
    )  # fmt: skip
    assert [one.is_accepted for one in queries.attempts(db, "r1")] == [True, True], (
        "both the kernel and its tuned version"
    )
    found = queries.sweep(db, "r1", "c002")
    assert found is not None
    assert (found.candidate_id, found.kept_number, found.is_over) == ("c001", 2, True)
    rows = queries.variants(db, "r1", "c001")
    assert [(one.number, dict(one.numbers), one.is_full, one.speedup) for one in rows] == [
        (3, {"kTile": 96}, True, 3.0), (1, {"kTile": 32}, False, 2.0), (2, {"kTile": 64}, False, None),
    ]  # fmt: skip
    assert found.failed_again is None
    again = ev.VariantChecked(3, "c001", 0, replace(RIGHT, verdict=Verdict.INCORRECT, message="off by two"))
    ended = ev.StepFinished(3, "tune", 9.0, "incorrect")
    tell(db, root, *FIRST, ev.StepStarted(3, "tune", 0, "c001"), started, *built, again, ended, run_id="failed again")
    found = queries.sweep(db, "failed again", "c001")
    assert found is not None
    assert (found.failed_again, found.kept_number) == ("off by two", None)


def test_the_last_ranking_of_each_step_index_is_told(db: Database, root: Path) -> None:
    few = ev.Ranked(3, 1, ("c002", "c003"), ("c002", "c003"), (), 3, None, None, "few")
    used = replace(few, step=5, depth=2, scores=(0.5, 0.7), kernels=20, correlation=0.6, arrival=0.1, why="it ranks")
    tell(db, root, *FIRST, few, used)
    assert [(one.depth, one.is_used, one.correlation) for one in queries.rankings(db, "r1")] == [
        (1, False, None), (2, True, 0.6),
    ]  # fmt: skip
