"""What stands behind a verdict, as pages ask for it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from storage.index import queries
from storage.index.database import Database, index_file, open_database
from storage.index.ingest import Ingest
from storage.results.check_records import RE_MEASURED, CheckOutcome, CheckRecord, Group
from storage.results.evaluation_results import CheckResult, CompileResult, TimingResult
from storage.results.flags import to_look_at
from storage.results.hardware_limit import HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from tests.sample_checks import LOST_STRUCTURE, REFUSED
from tests.samples import forget_proofs, sample_script, sample_settings, write_run
from tests.storage.growth import created, grow
from tests.storage.index_dump import dump, rebuilt
from tests.storage.test_queries_predictions import FIRST, tell

HELD = CheckRecord(Group.ISOLATION, "network", CheckOutcome.HELD, "closed")
ABSENT = CheckRecord(Group.ISOLATION, "network", CheckOutcome.ABSENT, "no namespaces here")
FLAGGED = CheckRecord(Group.TIMING, "two clocks", CheckOutcome.FLAGGED, "90 µs apart", 90.0, 40.0)


def compiled(*proofs: CheckRecord) -> ev.Compiled:
    return ev.Compiled(2, "c001", CompileResult(True, 1.0, proofs=proofs), None)


def checked(*proofs: CheckRecord, verdict: Verdict = Verdict.PASSED) -> ev.Checked:
    return ev.Checked(3, "c001", CheckResult(verdict, 1.0, proofs=proofs))


def timed(*proofs: CheckRecord) -> ev.Timed:
    return ev.Timed(4, "c001", TimingResult((1.0,), (2.0,), proofs=proofs))


def seen(db: Database) -> list[tuple[str, CheckOutcome, list[str]]]:
    return [(row.check, row.standing, list(row.stages)) for row in queries.check_records(db, "sample", "c001")]


def test_every_check_of_every_result_is_told(sample: Database) -> None:
    told: dict[str, set[str]] = {}
    for entry in sample_script(sample_settings("sample")).entries:
        if isinstance(event := entry.event, ev.Compiled | ev.Checked | ev.Timed):
            told.setdefault(event.candidate_id, set()).update(one.check for one in event.result.proofs)
    assert sum(map(len, told.values())) > 100
    for name, checks in told.items():
        assert {row.check for row in queries.check_records(sample, "sample", name)} >= checks


def test_a_check_made_in_several_stages_is_one_row_that_names_them(db: Database, root: Path) -> None:
    grow(db, root, created(1, "c001"), compiled(HELD), checked(HELD), timed(HELD, FLAGGED))
    assert seen(db) == [
        ("network", CheckOutcome.HELD, ["compile", "check", "time"]),
        ("two clocks", CheckOutcome.FLAGGED, ["time"]),
    ]
    row = queries.check_records(db, "sample", "c001")[1]
    assert (row.group, row.detail, row.value, row.limit) == (Group.TIMING, "90 µs apart", 90.0, 40.0)


def test_a_check_stands_where_it_stood_worst(db: Database, root: Path) -> None:
    grow(db, root, created(1, "c001"), compiled(ABSENT), checked(HELD))
    assert seen(db) == [("network", CheckOutcome.ABSENT, ["compile", "check"])]
    grow(db, root, timed(CheckRecord(Group.ISOLATION, "network", CheckOutcome.BROKEN, "it spoke")))
    assert seen(db) == [("network", CheckOutcome.BROKEN, ["compile", "check", "time"])]
    assert queries.check_records(db, "sample", "c001")[0].detail == "it spoke"


def test_the_last_word_of_a_stage_counts(db: Database, root: Path) -> None:
    grow(db, root, created(1, "c001"), compiled(ABSENT), compiled(HELD))
    assert seen(db) == [("network", CheckOutcome.HELD, ["compile"])]


def test_a_failed_timing_does_not_hide_what_the_check_had_shown(db: Database, root: Path) -> None:
    trial = CheckRecord(Group.CORRECTNESS, "trial: wide", CheckOutcome.HELD, "", 1e-7, 1e-5)
    broken = CheckRecord(Group.TIMING, "timed outputs", CheckOutcome.BROKEN, "call 17 is wrong")
    grow(db, root, created(1, "c001"), checked(HELD, trial), checked(HELD, broken, verdict=Verdict.INCORRECT))
    assert [check for check, _, _ in seen(db)] == ["network", "trial: wide", "timed outputs"]


def test_the_worst_of_a_group_comes_first(db: Database, root: Path) -> None:
    held = CheckRecord(Group.TIMING, "fresh contents", CheckOutcome.HELD)
    broken = CheckRecord(Group.TIMING, "timed outputs", CheckOutcome.BROKEN)
    grow(db, root, created(1, "c001"), timed(held, FLAGGED, broken, HELD))
    assert [check for check, _, _ in seen(db)] == ["network", "timed outputs", "two clocks", "fresh contents"]


def test_two_findings_of_one_check_are_both_shown(db: Database, root: Path) -> None:
    both = [CheckRecord(Group.SCREENING, "imports", CheckOutcome.FLAGGED, name) for name in ("ctypes", "socket")]
    grow(db, root, created(1, "c001"), compiled(*both))
    assert [row.detail for row in queries.check_records(db, "sample", "c001")] == ["ctypes", "socket"]
    assert queries.outcome_counts(db, "sample")["c001"].looks == 2


def test_a_flag_on_the_edit_itself_is_a_flagged_check(sample: Database) -> None:
    flagged = [e.event for e in sample_script(sample_settings("sample")).entries if getattr(e.event, "flags", ())]
    assert flagged
    for event in flagged:
        assert isinstance(event, ev.CandidateCreated)
        found = [
            row for row in queries.check_records(sample, "sample", event.candidate_id) if row.check == "intent kept"
        ]
        assert [(row.group, row.standing, row.detail, row.stages) for row in found] == [
            (Group.SCREENING, CheckOutcome.FLAGGED, LOST_STRUCTURE, ("write",))
        ]
        assert queries.outcome_counts(sample, "sample")[event.candidate_id].looks == 1


def test_what_a_judge_says_of_a_kernel_is_a_flagged_check_and_its_last_word_counts(db: Database, root: Path) -> None:
    def said(step: int, *flags: str) -> ev.ReviewWritten:
        return ev.ReviewWritten(step, 0, "judge", 0, "c001", "b", "a verdict", flags=flags)

    grow(db, root, created(1, "c001"), said(2, "it drops a row", "it calls a library"))
    found = [(row.check, row.standing, row.detail) for row in queries.check_records(db, "sample", "c001")]
    assert found == [
        ("soft verification", CheckOutcome.FLAGGED, "it calls a library"),
        ("soft verification", CheckOutcome.FLAGGED, "it drops a row"),
    ]
    assert queries.outcome_counts(db, "sample")["c001"].looks == 2
    grow(db, root, said(3))
    assert queries.check_records(db, "sample", "c001") == []


def test_the_counts_are_those_of_the_panel(sample: Database) -> None:
    counts = queries.outcome_counts(sample, "sample")
    assert {count.broken > 0 for count in counts.values()} == {True, False}
    for attempt in queries.attempts(sample, "sample"):
        shown = queries.check_records(sample, "sample", attempt.candidate_id)
        count = counts.get(attempt.candidate_id, queries.OutcomeCount(attempt.candidate_id, 0, 0))
        broken = sum(row.standing is CheckOutcome.BROKEN for row in shown)
        assert (count.looks, count.broken) == (to_look_at(shown), broken)


def test_a_refusal_has_its_reason(sample: Database) -> None:
    refused = [a for a in queries.attempts(sample, "sample") if a.verdict is Verdict.REFUSED]
    assert refused
    assert refused[0].message.startswith("no library fall-back: line 31: forward calls torch.nn.functional.scaled_dot")
    first = queries.check_records(sample, "sample", refused[0].candidate_id)[0]
    assert (first.standing, first.detail) == (CheckOutcome.BROKEN, REFUSED[0].detail)


def test_a_result_of_an_older_engine_has_no_checks(db: Database, root: Path) -> None:
    folder = write_run(root, depths=2)
    forget_proofs(folder)
    Ingest(db, root).catch_up()
    passed = [a.candidate_id for a in queries.attempts(db, "sample") if a.verdict is Verdict.PASSED]
    assert queries.problems(db) == []
    assert queries.check_records(db, "sample", passed[0]) == []


def test_an_index_made_from_nothing_has_the_same_checks(home: Path, root: Path) -> None:
    write_run(root, depths=8)
    with open_database(index_file(home)) as db:
        Ingest(db, root).catch_up()
        grown = dump(db)
        shown = queries.outcome_counts(db, "sample")
    index_file(home).unlink()
    assert rebuilt(home, root) == grown
    shutil.copytree(root, home / "copy" / "runs")
    assert rebuilt(home / "copy", home / "copy" / "runs")["kernels"] == grown["kernels"] != []
    with open_database(index_file(home)) as db:
        assert queries.outcome_counts(db, "sample") == shown


@pytest.mark.parametrize(
    ("standing", "second", "looks"),
    [(CheckOutcome.HELD, 17.8, 1), (CheckOutcome.HELD, 38.1, 0), (CheckOutcome.FLAGGED, 38.1, 0)],
)
def test_two_timings_that_an_older_engine_let_pass_count_alike_in_every_view(
    db: Database, root: Path, standing: CheckOutcome, second: float, looks: int
) -> None:
    both = f"first 38.2x (38.1 to 38.2) at 0.211 ms, then {second}x (16.6 to 38.3) at 0.457 ms"
    twice = CheckRecord(Group.TIMING, "re-measured", standing, f"because 38.2x is above 10x: {both}; confirmed")
    grow(db, root, created(1, "c001"), timed(twice))
    (shown,) = queries.check_records(db, "sample", "c001")
    assert (shown.standing is CheckOutcome.FLAGGED) is (looks > 0 or standing is CheckOutcome.FLAGGED)
    assert to_look_at([shown]) == looks
    counts = queries.outcome_counts(db, "sample")
    assert (counts["c001"].looks if counts else 0) == looks


@pytest.mark.parametrize(
    ("bytes_moved", "looks", "why"), [(10**6, 0, ""), (10**7, 1, "faster than the limit of 1 ms and ")]
)
def test_two_that_agree_and_do_not_meet_are_a_note_in_older_runs_too_but_beyond_the_hardware(
    db: Database, root: Path, bytes_moved: int, looks: int, why: str
) -> None:
    both = "first 13.3x (13.2 to 13.5) at 0.39 ms, then 14.3x (13.8 to 14.6) at 0.3 ms"
    detail = f"because 13.3x is above 10x: {both}; not confirmed, the lower one is kept"
    flagged = CheckRecord(Group.TIMING, "re-measured", CheckOutcome.FLAGGED, detail)
    limit = HardwareLimit("some machine", 10.0, 100.0, bytes_moved, 0)
    grow(db, root, ev.LimitMeasured(limit), created(1, "c001"), timed(flagged))
    (shown,) = queries.check_records(db, "sample", "c001")
    assert shown.detail.endswith(f"; confirmed, but {why}their intervals do not meet")
    assert to_look_at([shown]) == looks
    assert [count.looks for count in queries.outcome_counts(db, "sample").values()] == [1] * looks


def trial(name: str, left_out: str = "") -> CheckRecord:
    standing = CheckOutcome.ABSENT if left_out else CheckOutcome.HELD
    return CheckRecord(Group.CORRECTNESS, f"trial {name}", standing, f"left out: {left_out}" if left_out else "seed 7")


def test_trials_that_an_older_engine_left_out_and_counted_do_not_count(db: Database, root: Path) -> None:
    slow, ill = "the candidate is slow", "the reference itself is far off its float64 answer there"
    contract = CheckRecord(Group.CORRECTNESS, "output contract", CheckOutcome.HELD, "(4, 4) float32, in 5 trials")
    held = CheckRecord(Group.CORRECTNESS, "results held", CheckOutcome.HELD, "the same after all trials")
    made = [trial("own 1"), trial("wide")]
    grow(db, root, created(1, "c001"), checked(*made, trial("huge", slow), trial("tiny", slow), contract, held))
    details = {row.check: row.detail for row in queries.check_records(db, "sample", "c001")}
    out_of_time = "2 were left out, the time for checks was used up"
    assert details["output contract"] == f"(4, 4) float32, in the 2 trials that were run; {out_of_time}"
    assert details["results held"] == "the same after the last trial"
    assert details["trial huge"] == "left out: the time for checks was used up"
    grow(db, root, checked(trial("own 1"), trial("huge", slow), trial("tiny", slow), trial("wide", ill), contract))
    details = {row.check: row.detail for row in queries.check_records(db, "sample", "c001")}
    told = f"in the one trial that was run; {out_of_time} and 1 was left out, {ill}"
    assert details["output contract"] == f"(4, 4) float32, {told}"
    grow(db, root, checked(*made, contract, held))
    details = {row.check: row.detail for row in queries.check_records(db, "sample", "c001")}
    assert details["output contract"].endswith(", in 5 trials")
    assert details["results held"].endswith("after all trials")


def test_a_limit_that_is_measured_again_clears_a_kernel_that_was_beyond_it_in_lists_too(
    db: Database, root: Path
) -> None:
    limit = HardwareLimit("a processor", 10.0, 100.0, 20_000_000, 0)  # 2 ms
    detail = "because 1 ms is below the hardware limit of 2 ms: first 2x (1.9 to 2.1) at 1 ms, then 2x (1.9 to 2.1) at "
    detail += "1 ms; confirmed, but faster than the limit of 2 ms"
    proof = CheckRecord(Group.TIMING, RE_MEASURED, CheckOutcome.FLAGGED, detail)
    beyond = [*FIRST[:-1], ev.Timed(2, "c001", TimingResult((1.0,) * 9, (2.0,) * 9, proofs=(proof,)))]
    again = replace(limit, bandwidth_gb_s=40.0)  # 0.5 ms
    for run_id, later, looks in (("r1", [], 1), ("r2", [ev.LimitMeasured(again)], 0)):
        tell(db, root, ev.LimitMeasured(limit), *beyond, *later, run_id=run_id)
        run = queries.run(db, run_id)
        assert run is not None
        assert run.best_looks == looks == to_look_at(queries.check_records(db, run_id, "c001"))
