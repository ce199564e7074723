"""What runs were told, what they tried then, and what they added to the knowledge base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from storage.index import queries
from storage.index.database import Database
from storage.index.queries import learning
from storage.index.queries.learning import LearningRun
from storage.knowledge import browsing, files
from storage.knowledge.browsing import EvidenceFilter
from storage.knowledge.records import Bottleneck, Evidence, FailureCase, Outcome, Revision
from storage.results.evaluation_results import CheckResult, CompileResult
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import Origin, RunState
from tests.storage.test_queries_predictions import FIRST, made, tell, timed
from tests.storage.test_queries_retrieved import STAGES, WIDER, asked


def test_an_answer_says_what_was_offered_and_what_was_tried_until_the_next_one(db: Database, root: Path) -> None:
    evidence = Evidence("r1", "c002", "Wider_words", Outcome.FASTER, 10.0, gain=1.2)
    files.append_evidence([evidence], root.parent / "knowledge")
    tell(
        db, root, *FIRST,
        asked(3, "c001", 1, WIDER, STAGES), *made(4, "c002", "c001", technique="Wider words"),
        asked(6, "c001", 2, STAGES, state=""), *made(7, "c003", "c001", technique="SIMD"),
    )  # fmt: skip
    later, first = learning.answers(db, files.load(), "r1")
    assert (first.offered, first.negative) == (["wider words", "double buffering"], ["double buffering"])
    assert (first.number, first.state, first.bottleneck) == (1, "cache_inefficient", Bottleneck.MEMORY)
    assert (first.tried, first.outcomes) == (["Wider_words"], ["faster"])
    assert first.is_offered("Wider_words")
    assert (later.state, later.bottleneck) == ("", None)
    assert (later.tried, later.outcomes) == (["SIMD"], [""])
    assert not later.is_offered("SIMD")
    assert learning.answers(db, files.load(), "r1", limit=1) == [later]
    assert learning.answers(db, files.load(), "r1", limit=1, offset=1) == [first]
    assert (learning.count_answers(db, "r1"), learning.count_answers(db, "another")) == (2, 0)


def test_every_run_that_asked_or_added_something_is_listed_once(db: Database, root: Path) -> None:
    rows = [Evidence("gone", f"c{n}", "SIMD", outcome, 5e9) for n, outcome in enumerate([Outcome.FASTER, Outcome.SAME])]
    files.append_evidence(rows, root.parent / "knowledge")
    files.append_revision(Revision("r1:4", 5e9, "r1", "why"), root.parent / "knowledge")
    taught = [ev.Taught(step, 1, f"r1:{step}", "why", "0" * 64) for step in (4, 5)]
    tell(db, root, *FIRST, asked(3, "c001", 1, WIDER), *taught)
    gone, here = learning.learning_runs(db, files.load())
    assert gone == LearningRun("gone", 0, 2, 1, 0, 0, 5e9)
    assert (here.run_id, here.asked, here.attempts, here.changes, here.elsewhere) == ("r1", 1, 0, 1, 1)


def test_a_run_without_a_base_has_no_answers_though_its_kernels_have_states(db: Database, root: Path) -> None:
    tell(db, root, *FIRST, asked(3, mark=""), *made(4, "c002", "c001", technique="SIMD"))
    assert learning.learning_runs(db, files.load()) == []
    tell(db, root, *FIRST, asked(3, mark=""), asked(4), run_id="r2")
    (run,) = learning.learning_runs(db, files.load())
    assert (run.run_id, run.asked) == ("r2", 1)
    assert (learning.count_answers(db, "r1"), learning.count_answers(db, "r2")) == (0, 1)
    assert (learning.answers(db, files.load(), "r1"), len(learning.answers(db, files.load(), "r2"))) == ([], 1)
    before = queries.retrieval(db, "r1", "c002")
    assert before is not None
    assert (before.state, before.mark) == ("cache_inefficient", "")


def test_what_was_known_from_other_states_is_neither_offered_in_full_nor_unknown(db: Database, root: Path) -> None:
    tell(db, root, *FIRST, asked(3, "c001", 1, WIDER, others=("SIMD",)), *made(4, "c002", "c001", technique="simd"))
    (answer,) = learning.answers(db, files.load(), "r1")
    assert (answer.is_offered("simd"), answer.is_other("simd"), answer.is_other("wider words")) == (False, True, False)


def test_a_change_that_two_runs_made_is_one_attempt_of_both(db: Database, root: Path) -> None:
    told = Evidence(
        "r1", "c002", "SIMD", Outcome.FASTER, 5e9, device="NVIDIA H200", parent_hash="a", child_hash="b", gain=1.2
    )
    files.append_evidence([told, replace(told, run_id="gone", gain=1.3)], root.parent / "knowledge")
    tell(db, root, *FIRST, asked(3, "c001", 1, WIDER), *made(4, "c002", "c001", technique="SIMD"))
    base = files.load()
    assert [(run.run_id, run.attempts, run.faster) for run in learning.learning_runs(db, base)] == [
        ("gone", 1, 1),
        ("r1", 1, 1),
    ]
    assert (browsing.sums(base).attempts, browsing.sums(base).runs) == (1, 2)
    for run_id in ("r1", "gone"):
        assert [row.technique for row in browsing.attempts(base, EvidenceFilter(run_id=run_id))] == ["SIMD"]
    assert browsing.count(base, EvidenceFilter(run_id="r2")) == 0
    (answer,) = learning.answers(db, base, "r1")
    assert (answer.tried, answer.outcomes) == (["SIMD"], ["faster"])


def test_changes_that_named_no_technique_are_counted_in_runs_that_could_have_taught(db: Database, root: Path) -> None:
    told = [
        *FIRST, *made(3, "c002", "c001"), *timed(4, "c002", 2.0), *made(5, "c003", "c002", technique="SIMD"),
        *timed(6, "c003", 2.1), *made(7, "c004", "c003"), *timed(8, "c004", 2.2), *made(9, "c005", "c004"),
    ]  # fmt: skip
    tell(db, root, *told)
    tell(db, root, *FIRST, run_id="r2")
    tell(db, root, *told, run_id="r3", replay_of="r1")
    assert learning.unnamed(db, files.load()) == (2, 1), "not the first kernel, the named one, the one not judged"
    files.append_evidence([Evidence("r1", "c002", "tiling", Outcome.FASTER, 5e9)], root.parent / "knowledge")
    assert learning.unnamed(db, files.load()) == (1, 1), "a judge named it"


def test_wrong_results_of_which_no_failure_tells_are_counted_and_those_of_them_that_were_mended(
    db: Database, root: Path
) -> None:
    wrong = (
        ev.Compiled(4, "c002", CompileResult(True, 1.0), None),
        ev.Checked(4, "c002", CheckResult(Verdict.INCORRECT, 1.0)),
    )
    fixed = ev.CandidateCreated(5, "c003", "c002", "c001", 1, 0, 1, Origin.REPAIR, "b", None, 1, 0, "mended")
    told = [*FIRST, *made(3, "c002", "c001"), *wrong, fixed, *timed(6, "c003", 1.1)]
    tell(db, root, *told, ev.RunEnded(RunState.FINISHED, "done", "c003"))
    tell(db, root, *told, run_id="r2")
    assert learning.without_rule(db, files.load()) == (1, 1), "the other run still goes on"
    case = FailureCase("r1", "c002", 5e9, "cute", "cpu", "wrong output in the last rows", message="m")
    files.append_cases([case], root.parent / "knowledge")
    assert learning.without_rule(db, files.load()) == (0, 0)
