"""The Trust tab: one sentence, four groups, two pictures, in every state that a kernel's checks can be in."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from engine import examples
from pages.parts import index, wording
from pages.parts.kernel import kernel_header, trust_charts, trust_tab
from pages.parts.kernel.trust_charts import Measured
from pages.parts.overview import runs_table
from pages.parts.report.report_run import run_report
from pages.parts.run import key_figures
from pages.parts.status import alternatives, outcome, settings_list
from pages.parts.widgets import table
from storage import codec
from storage.index import queries
from storage.results import observed
from storage.results.check_records import CheckOutcome, CheckRecord, Group, StagedCheck
from storage.results.flags import counted, flags, in_words
from storage.results.observed import ObservedKernel, ObservedOperator
from storage.results.vocabulary import Verdict
from storage.run import labels
from storage.run.folder import RunFolder
from storage.run.settings import RunState
from tests import samples
from tests.engine.test_rules import old_run
from tests.pages.conftest import Open, everything, words
from tests.sample_results import RAN


def check(check: str, standing: CheckOutcome = CheckOutcome.HELD, group: Group = Group.CORRECTNESS) -> StagedCheck:
    return StagedCheck(group, check, standing, "", stages=("check",))


HELD, FLAGGED = check("same again"), check("fresh inputs", CheckOutcome.FLAGGED, Group.TIMING)
NOTED = check("noise", CheckOutcome.FLAGGED, Group.TIMING)
ABSENT = check("network", CheckOutcome.ABSENT, Group.ISOLATION)
BROKEN = check("no library fall-back", CheckOutcome.BROKEN, Group.SCREENING)


@pytest.mark.parametrize(
    ("verdict", "is_timed", "check_records", "tone", "sentence"),
    [
        (Verdict.PASSED, True, [HELD, HELD, ABSENT], "green", "Correct: 2 checks passed, 1 not done."),
        (Verdict.PASSED, True, [HELD, NOTED], "green", "Correct: 1 check passed, 1 noted."),
        (
            Verdict.PASSED,
            True,
            [HELD, FLAGGED],
            "orange",
            "Correct: 1 check passed, 1 to look at. Look at “fresh inputs”:",
        ),
        (Verdict.PASSED, False, [HELD], "green", "Correct, not timed yet: 1 check passed."),
        (Verdict.PASSED, True, [HELD, BROKEN], "red", "Correct, although “no library fall-back” failed."),
        (Verdict.REFUSED, False, [BROKEN], "red", "Refused by screening: “no library fall-back” failed."),
        (Verdict.REFUSED, False, [HELD], "red", "Refused. 1 check passed."),
        (Verdict.INCORRECT, False, [HELD, check("wide", CheckOutcome.BROKEN)], "red", "Failed, wrong result: “wide”"),
        (Verdict.TIMEOUT, False, [HELD], "red", "Failed, timed out. 1 check passed."),
        (Verdict.COMPILE_ERROR, False, [HELD], "red", "Does not compile: neither checked nor timed."),
        (None, False, [HELD], "blue", "Not judged yet: 1 check passed so far."),
        (None, False, [], "blue", "Not judged yet."),
        (Verdict.PASSED, True, [], "gray", "Correct. Individual checks were not recorded"),
        (Verdict.REFUSED, False, [], "red", "Refused. Individual checks were not recorded"),
    ],
)
def test_one_sentence_says_how_far_a_kernel_can_be_trusted(
    verdict: Verdict | None, is_timed: bool, check_records: list[StagedCheck], tone: str, sentence: str
) -> None:
    found = trust_tab.overall(verdict, is_timed, check_records)
    assert found.tone == tone
    assert f"{found.sentence} {found.rest}".startswith(sentence)


def test_a_kernel_of_a_run_of_before_says_by_which_rules_it_was_judged(home: Path, open_page: Open) -> None:
    old_run(home, "r1")
    old_run(home, "r3", has_weights=False)
    samples.write_run(home / "runs", "r2")
    judged = "An older version started this run, and its rules stay in force: kernels are judged with constructed "
    judged += "weights only."
    for run, told in (("r1", True), ("r2", False), ("r3", False)):
        opened = open_page("candidate", run=run, candidate="c001", tab="Trust"), open_page("run", run=run)
        assert [judged in words(app).replace("\\", "") for app in opened] == [told, told]
        assert (judged in run_report(index.current(), run)) is told
        assert (("Kernels", "judged with constructed weights only") in settings_list.of(run)) is told


def test_checks_are_counted_by_how_they_stand() -> None:
    assert counted([HELD, HELD, FLAGGED, BROKEN, ABSENT]) == ("2 checks passed, 1 to look at, 1 failed, 1 not done")
    assert counted([FLAGGED]) == "1 check to look at"
    assert counted([NOTED, NOTED]) == "2 checks noted"
    assert counted([]) == "no checks"


def test_what_could_be_hidden_after_a_call_is_no_question_where_the_device_explains_the_call() -> None:
    later = check("nothing finishes later", CheckOutcome.FLAGGED, Group.TIMING)
    explained = check("device time", CheckOutcome.HELD, Group.TIMING)
    apart = check("device time", CheckOutcome.FLAGGED, Group.TIMING)
    assert [flag.is_look for flag in flags([later])] == [True]
    assert [flag.is_look for flag in flags([later, explained])] == [False]
    assert [flag.check for flag in flags([NOTED, later, apart]) if flag.is_look] == [
        "nothing finishes later",
        "device time",
    ]


def test_every_standing_group_and_verdict_has_its_words() -> None:
    assert set(wording.GROUP_NAME) == set(wording.GROUP_ABOUT) == set(Group)
    assert set(wording.VERDICT_NAME) == set(wording.VERDICT_TONE) == set(Verdict)
    words = [in_words(row, flags([row])) for row in (HELD, FLAGGED, NOTED, BROKEN, ABSENT)]
    assert words == list(wording.CHECK_TONE)
    assert len(set(wording.CHECK_TONE.values())) == len(words)


def test_a_check_of_several_stages_says_where_it_did_not_hold() -> None:
    flagged = StagedCheck(Group.ISOLATION, "network", CheckOutcome.FLAGGED, "open", stages=("compile", "check"))
    assert note_of(flagged).startswith("while building and checking. Read what was found")
    held = StagedCheck(Group.ISOLATION, "network", CheckOutcome.HELD, "closed", stages=("compile", "check"))
    assert note_of(held) == ""


def note_of(row: StagedCheck) -> str:
    cell = trust_tab.cells(row, flags([row]))["detail"]
    assert isinstance(cell, dict)
    return str(cell["note"])


def test_a_kernel_refused_while_it_ran_is_not_said_to_have_never_run(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    refused: dict[str, object] = {
        "verdict": "refused",
        "message": "spoke without being asked",
        "proofs": [],
        "mismatch": None,
    }
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "Checked":
            line["event"]["result"] |= refused
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines if line["kind"] != "Timed"))
    shown = trust_of(open_page, "c001")
    assert "Refused" in shown
    assert "the kernel did not run" not in shown


@pytest.mark.parametrize("error", [0.0, 1e-300, 1e-9, 1e-6, 1e-5, 3.0, 1e300, math.inf, math.nan])
def test_any_error_has_its_place_in_the_picture(error: float) -> None:
    found = [Measured("wide", error, 1e-6, is_wrong=not error <= 1e-6), Measured("own", 2e-7, 1e-6, is_wrong=False)]
    drawn = trust_charts.errors(found)
    json.loads(json.dumps(drawn), parse_constant=lambda name: pytest.fail(f"{name} cannot be sent to a browser"))
    low, high = (10**edge for edge in drawn["layout"]["xaxis"]["range"])
    (place, own), ticks = drawn["data"][0]["x"], drawn["layout"]["xaxis"]["tickvals"]
    assert low <= place <= high
    assert low < own < 1 < high
    assert (place > 1) is (not error <= 1e-6)
    assert 2 <= len(ticks) <= 9


def test_the_picture_falls_back_to_the_error_nearest_its_tolerance_of_an_older_result() -> None:
    limits = StagedCheck(Group.CORRECTNESS, "own 1", CheckOutcome.HELD, "", 1e-7, 1e-5)
    assert [one.name for one in trust_charts.measured([limits, HELD], None)] == ["own 1"]
    assert trust_charts.measured([HELD], None) == []


def test_the_error_that_is_told_is_the_one_nearest_its_tolerance_and_pairs_are_those_that_decide(
    home: Path, open_page: Open
) -> None:
    samples.write_run(home / "runs", "r1", depths=2)
    open_page("run", run="r1")
    evaluation = queries.evaluation(index.current(), "r1", "c001")
    assert evaluation is not None
    told = dict(trust_tab.correctness(evaluation) + trust_tab.timing(evaluation))
    assert told.keys() >= {"error nearest its tolerance", "its tolerance", "pairs that tell it"}
    (alone,) = trust_charts.measured([HELD], evaluation)
    assert (alone.name, alone.error) == ("error nearest its tolerance", evaluation.max_error)


def first_of(folder: RunFolder, kind: str, field: str, value: object) -> str:
    lines = map(json.loads, folder.journal_file.read_text().splitlines())
    found = next(e for e in (x["event"] for x in lines if x["kind"] == kind) if e.get("result", e)[field] == value)
    return str(found["candidate_id"])


def trust_of(open_page: Open, candidate: str) -> str:
    app = open_page("candidate", run="r1", candidate=candidate, tab="Trust")
    assert not app.exception
    return words(app)


@pytest.mark.parametrize(
    ("kind", "field", "value", "said"),
    [
        ("Checked", "verdict", "passed", "checks passed"),
        ("Checked", "verdict", "incorrect", "Failed, wrong result"),
        ("Compiled", "verdict", "compile_error", "Does not compile"),
        ("Compiled", "verdict", "refused", "Refused by screening"),
    ],
)
def test_the_tab_has_four_groups_whatever_became_of_the_kernel(
    home: Path, open_page: Open, kind: str, field: str, value: str, said: str
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=9)
    shown = trust_of(open_page, first_of(folder, kind, field, value))
    assert said in shown
    assert [name for name in wording.GROUP_NAME.values() if f"## {name}" not in shown] == []
    assert ("Not timed" in shown) is (value != "passed")
    assert ("the kernel did not run" in shown) is (kind == "Compiled")


def test_a_result_of_an_older_engine_says_that_its_checks_were_not_recorded(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    samples.forget_proofs(folder)
    assert "Individual checks were not recorded" in trust_of(open_page, "c001").replace("\\", "")


def test_every_moment_of_a_run_has_its_tab(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=1)
    lines = folder.journal_file.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    expected = {
        "CandidateCreated": "Not judged yet.",
        "Compiled": "Not judged yet: ",
        "Checked": "Correct, not timed yet: ",
        "Timed": "Correct: ",
    }
    for kind, said in expected.items():
        folder.journal_file.write_bytes(b"".join(lines[: kinds.index(kind) + 1]))
        assert said in trust_of(open_page, "c001").replace("\\", ""), kind


def test_a_flag_leads_to_the_tab(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=2)
    app = open_page("candidate", run="r1", candidate="c004")
    assert "Accepted" not in words(app)
    assert "1 to look at" in app.button(key="flagged").label
    app.button(key="flagged").click().run()
    assert not app.exception
    assert "Look at “intent kept”" in words(app).replace("\\", "")
    assert "flagged" not in [b.key for b in open_page("candidate", run="r1", candidate="c001").button]


def figures_of(run_id: str, name: str) -> dict[str, str]:
    """The figures of a kernel's header by name."""
    db = index.current()
    candidate = queries.candidate(db, run_id, name)
    assert candidate
    evaluation, baseline = queries.evaluation(db, run_id, name), queries.baseline(db, run_id)
    vague = kernel_header.numbers(replace(candidate, noise=0.55), evaluation, baseline, None)
    assert next(figure for figure in vague if figure.label == "Latency").note == "of the timing that was kept"
    found = kernel_header.numbers(candidate, evaluation, baseline, queries.limit(db, run_id))
    return {figure.label: figure.value for figure in found}


def test_the_speed_over_torch_compile_stands_beside_the_one_over_eager(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=1)
    app = open_page("candidate", run="r1", candidate="c001", tab="Trust")
    assert not app.exception
    shown = figures_of("r1", "c001")
    assert list(shown)[:2] == ["Speed-up", "Over the best alternative"]
    assert shown["Over the best alternative"] == "0.47×"
    assert "no figure over" not in words(app)


def test_an_alternative_is_rounded_alike_in_chart_and_table_and_stands_beside_the_eager_of_its_session(
    home: Path, open_page: Open
) -> None:
    samples.write_run(home / "runs", "r1", depths=1)
    open_page("run", run="r1")
    baseline = queries.baseline(index.current(), "r1")
    assert baseline is not None
    compiled = replace(baseline, speedup=0.6743, noise=0.2, latency_ms=3.5)
    _, row = alternatives.lines([compiled], index.attempts("r1")[0])
    cells = dict(zip((column.key for column in alternatives.COLUMNS), row, strict=True))
    assert cells["eager"].startswith("0.67×")
    assert alternatives.label([compiled]) == "torch.compile 0.67×"
    assert (cells["latency"], cells["beside"]) == ("3.50 ms", "2.36 ms")


def test_a_baseline_that_could_not_be_had_says_why(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "r1", depths=1, seed=2)
    app = open_page("candidate", run="r1", candidate="c001", tab="Trust")
    assert not app.exception
    assert "Over" not in " ".join(figures_of("r1", "c001"))
    kernel = index.attempts("r1")[0]
    rows = list(alternatives.lines(queries.baselines(index.current(), "r1"), kernel))
    assert rows[1][-1] == "could not be timed: its answers differ: 3 of 1024 values are wrong"
    assert "### Alternatives" in words(app)


def test_a_kernel_timed_beside_other_programs_says_how_busy_they_kept_the_machine(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write_run(home / "runs", "r1", depths=2)
    open_page("run", run="r1")
    evaluation = queries.evaluation(index.current(), "r1", "c001")
    assert evaluation is not None
    evaluation = replace(evaluation, timing_evidence={"others before": "62% of the processors"})
    busy = outcome.doubt(evaluation, 0.02, "kernel 1")
    assert busy is not None
    assert busy.sentence.startswith(
        "The machine was busy while kernel 1 was timed: other programs used 62 % of its processors"
    )
    quiet = replace(evaluation, timing_evidence={"others before": "3% of the processors"})
    assert outcome.doubt(quiet, 0.02, "kernel 1") is outcome.doubt(None, None, "kernel 1") is None
    wide = outcome.doubt(quiet, 0.21, "kernel 1")
    assert wide is not None
    assert (wide.short, wide.sentence[:35]) == ("noisy timing", "The timing of kernel 1 was noisy: a")
    fastest = queries.baseline(index.current(), "r1")
    assert fastest is not None
    unsure = outcome.doubt(quiet, 0.02, "kernel 1", replace(fastest, name="max-autotune", noise=0.5))
    assert unsure is not None
    assert unsure.sentence.startswith("The timing of max-autotune was noisy: over it kernel 1 may come out otherwise")
    others = [replace(index.attempts("r1")[0], speedup=speedup, latency_ms=10.0) for speedup in (2.2, 4.0)]
    slow = outcome.doubt(replace(quiet, speedup=4.0, latency_ms=10.0), 0.02, "kernel 2", None, others)
    assert slow is not None
    assert slow.sentence == (
        "By the pairs' median ratios eager PyTorch took 40.0 ms beside kernel 2 and 22.0 ms beside kernel 1: a "
        "slow or busy processor held it up "
        "here. Over the lesser time it is 2.20× as fast."
    )
    assert outcome.doubt(replace(quiet, speedup=2.2, latency_ms=10.0), 0.02, "kernel 2", None, others) is None
    kernel = replace(quiet, speedup=5.2, latency_ms=9.0, noise=0.02)
    graph = replace(fastest, name="CUDA graph", latency_ms=18.0, is_on_gpu=True)
    assert outcome.doubt(kernel, 0.02, "kernel 1", replace(graph, speedup=2.6)) is None
    assert outcome.doubt(kernel, 0.02, "kernel 1", replace(graph, speedup=1.3, is_on_gpu=False)) is None
    here = outcome.doubt(kernel, 0.02, "kernel 1", replace(graph, speedup=1.3))
    there = outcome.doubt(kernel, 0.02, "kernel 1", replace(graph, speedup=5.2))
    assert here is not None
    assert there is not None
    assert here.sentence == (
        "By the pairs' median ratios eager PyTorch took 46.8 ms beside kernel 1 and 23.4 ms beside CUDA graph: a "
        "slow or busy processor held it up "
        "here. So the two are compared by their own latencies, 9.00 ms and 18.0 ms, which give a lower ratio than "
        "their speed-ups over it."
    )
    assert there.sentence.endswith(
        "The two are compared by their speed-ups over it, which give a lower ratio than their latencies."
    )
    assert "The machine was busy" not in words(open_page("candidate", run="r1", candidate="c001"))
    monkeypatch.setattr(queries, "evaluation", lambda *_: evaluation)
    assert "The machine was busy while kernel 1 was timed" in words(open_page("candidate", run="r1", candidate="c001"))
    assert "The machine was busy while the best kernel was timed" in words(open_page("run", run="r1"))
    run = queries.run(index.current(), "r1")
    assert run is not None
    for state in (RunState.RUNNING, RunState.FINISHED):  # the figure at the head of a run, also while it is at work
        shown = key_figures._best(run, state)
        assert "busy machine" in shown["note"]
        assert "The machine was busy while the best kernel was timed" in shown["title"]


def test_what_ran_in_pytorch_is_a_table_and_no_raw_fact(home: Path, open_page: Open) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=9)
    shown = trust_of(open_page, first_of(folder, "Checked", "verdict", "passed"))
    assert "### PyTorch operators in forward" in shown
    assert "Where the time went" in shown
    assert "0.043" not in shown
    assert "operators in forward" not in trust_of(open_page, first_of(folder, "Compiled", "verdict", "compile_error"))


def test_an_operators_row_says_what_it_did_how_often_and_for_how_long() -> None:
    cells = trust_tab.operator_cells(ObservedOperator("aten::mm", "computes", 1.0, 4096.0, 0.875))
    assert cells["does"] == table.pill("computes", "red")
    assert (cells["calls"], cells["elements"], cells["share"]) == ("1", "4,096", "87.5 %")
    unknown = trust_tab.operator_cells(ObservedOperator("aten::_foreach_mul", "computes", 2.0, None, None))
    assert (unknown["elements"], unknown["share"]) == ("lists of tensors", wording.NONE)
    untimed = [ObservedOperator("aten::conv2d", "computes", 4.0, 6e6, None)]
    assert trust_tab.own_share(untimed).endswith("how much of the time is not known.")
    assert "took 94 % of the GPU's time. What its operators took on the host" in trust_tab.own_share(untimed, 0.94)


def test_a_kernels_row_says_whose_it_is_and_what_it_took() -> None:
    name = "void at::native::vectorized_elementwise_kernel<4, Fill>(int, Fill)"
    cells = trust_tab.kernel_cells(ObservedKernel(name, "PyTorch", "aten::fill_", 1.0, 2.5, 0.125))
    assert cells["name"] == table.text("vectorized_elementwise_kernel<4, Fill>", "strong")
    assert cells["origin"] == table.pill("PyTorch: aten::fill_", "orange")
    assert (cells["launches"], cells["microseconds"], cells["share"]) == ("1", "2.5", "12.5 %")
    foreign = trust_tab.kernel_cells(ObservedKernel("sgemm", "foreign", "", 1.0, 2.5, 0.9))
    assert foreign["origin"] == table.pill("foreign", "red")


@pytest.mark.parametrize("evidence", [{}, *({observed.KEY: text} for text in ("[[1]]", "nonsense", '[["a", "b"]]'))])
def test_observations_that_cannot_be_read_are_none(evidence: dict[str, str]) -> None:
    assert observed.of(evidence) is None
    assert observed.of({observed.KEY: observed.to_text(RAN)}) == list(RAN)


def test_a_best_kernel_that_is_to_be_looked_at_says_so_beside_its_speedup_and_trust_has_the_runs_note(
    home: Path, open_page: Open
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    labels.change(folder, lambda now: replace(now, note="Tiles above the diagonal are not multiplied."))
    app = open_page("run", run="r1")
    run = queries.run(index.current(), "r1")
    assert run is not None
    best = run.best_candidate_id or ""
    count, advice = outcome.to_look_at(index.current(), "r1", best)
    looks = [one for one in flags(queries.check_records(index.current(), "r1", best)) if one.is_look]
    assert count == 1
    assert advice == f"{looks[0].check}: {looks[0].advice}"
    shown = key_figures._best(run, RunState.FINISHED)
    assert shown["flag"] == "⚑ 1 to look at"
    assert run.best_looks == 1
    in_row, without = (str(runs_table._best(replace(run, best_looks=looks))) for looks in (run.best_looks, 0))
    assert "⚑" in in_row
    assert "To look at: 1 finding of the best kernel could change its verdict." in in_row
    assert "⚑" not in without
    marked = runs_table._best(run, labels.Mark("c004", labels.MarkKind.HACK))
    assert isinstance(marked, dict)
    assert [badge["text"] for badge in marked["badges"]] == ["⚑", "hack"]
    assert shown["title"].endswith(advice)
    sent = everything(app)
    assert sent.count(f"could change the verdict: open Trust. {advice}") == 1, "in the Result box"
    told = "**Note on this run:** Tiles above the diagonal are not multiplied."
    assert told in words(open_page("candidate", run="r1", candidate=best, tab="Trust")).replace("\\", "")
    calm = next(
        a.candidate_id for a in index.attempts("r1") if not outcome.to_look_at(index.current(), "r1", a.candidate_id)[0]
    )
    assert told not in words(open_page("candidate", run="r1", candidate=calm, tab="Trust")).replace("\\", "")


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_great_speed_up_says_on_its_run_and_its_kernel_which_test_decided(
    home: Path, open_page: Open, is_confirmed: bool
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=2)
    both = "first 13.7x (13.7 to 13.7) at 0.03 ms, then 13.8x (13.7 to 13.8) at 0.03 ms"
    again = CheckRecord(
        Group.TIMING, "re-measured", CheckOutcome.HELD if is_confirmed else CheckOutcome.FLAGGED,
        f"because 13.7x is above 10x: {both}; confirmed",
    )  # fmt: skip
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "Timed":
            line["event"]["result"]["proofs"] = [codec.to_plain(again)]
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    on_run = words(open_page("run", run="r1")).replace("\\", "")
    run = queries.run(index.current(), "r1")
    assert run is not None
    on_kernel = words(open_page("candidate", run="r1", candidate=run.best_candidate_id or "")).replace("\\", "")
    opening = "13.7× is above 10×, so the kernel was timed again in fresh processes: 13.7×, then 13.8×. The two agree"
    for said in (on_run, on_kernel):
        assert opening in said
        assert ("agree and neither was spoilt by noise or a busy machine: confirmed." in said) is is_confirmed


def test_only_the_trials_that_were_run_count_as_passed_and_the_others_have_one_reason(
    home: Path, open_page: Open
) -> None:
    (run,) = examples.open_examples(["softmax-20261125-072455-5580"])
    page = {"run": run.run_id, "candidate": "c009"}
    out = "10 were left out, the time for checks was used up"
    trust = everything(open_page("candidate", **page, tab="Trust")).replace("\\", "")
    for check in ("float32", "bit by bit"):
        assert f"{check}, in the 4 trials that were run; {out}" in trust
    assert "trials left out" in trust
    assert "candidate is slow" not in trust
    errors = words(open_page("candidate", **page, tab="Errors")).replace("\\", "")
    assert f"agrees with the reference in the 4 trials that were run; {out}." in errors
    assert "candidate is slow" not in run_report(index.current(), run.run_id)


def test_a_speed_up_known_as_a_range_alone_is_told_alike_wherever_it_is_shown(home: Path, open_page: Open) -> None:
    (run,) = examples.open_examples(["layer_norm-20261129-172153-20cb"])
    app = open_page("candidate", run=run.run_id, candidate="c001", tab="Trust")
    kernel, trust = words(app).replace("\\", ""), everything(app).replace("\\", "")
    on_run = words(open_page("run", run=run.run_id)).replace("\\", "")
    apart = "38.2×, then 17.8×. Their intervals meet, but the two are 2.1 times apart, so neither confirms the other"
    for said in (kernel, on_run):
        assert f"{apart} and it is to look at; the lower one is kept, with all of its interval, 16.6 to 38.3×." in said
    assert "2 to look at" in trust, "and how long a call takes beside its kernels"
    assert "measure again on a quiet machine before you rely on the speed-up" in trust
    row = queries.run(index.current(), run.run_id)
    assert row is not None
    assert row.best_looks == 2
    assert "the pairs of this timing alone tell the speed-up within 9.1 %" in trust
    assert "speed-up known within" not in trust
    assert "; their intervals meet" in trust
    assert "0.33 to 14.0×" not in trust
    assert "16.6 to 38.3× as fast as eager PyTorch and 0.65 to 1.52× as fast as the best alternative" in on_run
