"""The pure parts of a kernel's page: pairs of lines, what a metric means, the story, where errors lie, transcripts."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search.methods import words_of
from engine.search.methods.coder_judge.strategy import CoderJudge
from pages.parts import index, texts, wording
from pages.parts.kernel import (
    diff_tab,
    errors_tab,
    machine_use,
    metrics,
    profile_tab,
    prompts_tab,
    roofline,
    story,
)
from pages.parts.kernel.metrics import Judgement
from pages.parts.widgets import diff
from storage.index import queries
from storage.index.queries import CandidateRow, FailedTryRow, MetricChangeRow, SteeringMark
from storage.results import counters
from storage.results.vocabulary import Verdict
from storage.run.exposure import Exposure
from storage.run.method_words import AS_STORED, MethodWords
from storage.run.settings import Switch
from storage.run.steering.verbs import CommandKind
from tests import samples
from tests.pages.conftest import ROOT, Open

TEXTS = st.lists(st.sampled_from(["a", "b", "}", "", "int x;", "return y;"]), max_size=30).map("\n".join)


@given(TEXTS, TEXTS)
def test_pairs_hold_every_line_of_both_sources_once_and_in_order(old: str, new: str) -> None:
    found = diff.pairs(old, new)
    a, b = old.split("\n"), new.split("\n")
    assert [i for _, i, _ in found if i >= 0] == list(range(len(a)))
    assert [j for _, _, j in found if j >= 0] == list(range(len(b)))
    assert all(a[i] == b[j] for kind, i, j in found if kind == "=")
    pieces = diff.pieces(found)
    assert tuple(pair for piece in pieces for pair in piece.pairs) == found
    assert all(pair[0] == "=" for piece in pieces if piece.is_folded for pair in piece.pairs)


def test_a_line_that_took_much_of_the_time_is_not_folded_away() -> None:
    old = "\n".join(f"line {i};" for i in range(80))
    found = diff.pairs(old, old.replace("line 3;", "row 3;"))
    assert [(piece.is_folded, len(piece.pairs)) for piece in diff.pieces(found)] == [(False, 7), (True, 73)]
    shown = [piece for piece in diff.pieces(found, (frozenset(), frozenset({50}))) if not piece.is_folded]
    assert [pair[2] for piece in shown for pair in piece.pairs] == [*range(7), *range(47, 54)]


def test_a_downloaded_diff_is_one_that_patch_applies(tmp_path: Path) -> None:
    old = "\n".join(f"line {i};" for i in range(80)) + "\n"
    new = old.replace("line 3;", "row 3;\nrow 3b;").replace("line 41;\n", "").replace("line 79;", "end;")
    (tmp_path / "kernel").write_text(old)
    text = diff.unified(old, new, ("kernel", "kernel"))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=text.encode(), check=True)
    assert (tmp_path / "kernel").read_text() == new


def test_of_a_huge_source_the_first_lines_are_shown_and_the_rest_is_told() -> None:
    old = "\n".join(f"line {i}" for i in range(12_000))
    same, other = old.replace("line 7\n", "row 7\n"), old.replace("line 11000\n", "row\n")
    assert diff.left_out(old, same) == "Showing 4,000 of 12,000 lines; the rest is identical."
    assert diff.left_out(old, other).endswith("the rest differs too; download it to see all.")
    assert diff.left_out("a", "b") == ""
    assert sum(len(piece["rows"]) for piece in diff.rows(diff.cut(old), diff.cut(same))) == 4_000
    assert diff.summary("a\nb", "a\nc\nd") == "2 lines added, 1 removed"


def change(metric: str, before: float | None, now: float, unit: str = "1", launch: int = -1) -> MetricChangeRow:
    return MetricChangeRow(launch, "k" if launch >= 0 else "", metric, unit, now, before, "c001" if before else None)


@pytest.mark.parametrize(
    ("metric", "before", "now", "unit", "judgement"),
    [
        ("latency", 2.0, 1.0, "s", Judgement.BETTER), ("latency", 1.0, 2.0, "s", Judgement.WORSE),
        (counters.DRAM, 40.0, 60.0, "%", Judgement.BETTER), (counters.DRAM, 40.0, 40.4, "%", Judgement.SAME),
        (counters.REGISTERS, 96.0, 64.0, "1", Judgement.CHANGED), ("never heard of", 1.0, 9.0, "1", Judgement.CHANGED),
        (counters.LOCAL_LOADS, 0.0, 512.0, "1", Judgement.WORSE),
        (counters.stall_counter("barrier"), 4.0, 1.0, "1", Judgement.BETTER),
        (counters.stall_counter("not_selected"), 4.0, 9.0, "1", Judgement.CHANGED),
    ],
)  # fmt: skip
def test_a_change_is_judged_by_what_is_known_of_the_metric(
    metric: str, before: float, now: float, unit: str, judgement: Judgement
) -> None:
    found = metrics.weighed([replace(change(metric, 1.0, now, unit), previous=before)])
    assert [one.judgement for one in found] == [judgement]


def test_what_matters_most_comes_first_and_each_topic_is_told_once() -> None:
    changes = [
        change("voluntary context switches per call", 1.0, 90.0), change(counters.DRAM, 30.0, 60.0, "%"),
        change("memory throughput share", 0.3, 0.6), change("latency", 4.0, 1.0, "s"),
        change(counters.ACHIEVED, 40.0, 60.0, "%"), change(counters.BLOCK, 128.0, 128.0),
    ]  # fmt: skip
    found = metrics.weighed(changes)
    assert [one.change.metric for one in found][:2] == ["latency", "memory throughput share"]
    assert found[-1].judgement is Judgement.SAME
    told = metrics.telling(found)
    assert [one.sense.topic for one in told] == ["memory", "occupancy"]
    assert metrics.phrase(told[0]) == "share of peak memory bandwidth from 30.0 % to 60.0 % (better)"
    assert metrics.phrase(told[1]) == "achieved occupancy (mean of all launches) from 40 % to 60 % (better)"
    assert metrics.counted(found, 4) == "Since kernel 4: 4 better, 1 worse, of 6 metrics."


def test_each_quantity_of_memory_has_a_name_of_its_own_and_waits_have_a_unit() -> None:
    rate, share = "memory throughput", "memory throughput share"
    assert len({counters.label(name) for name in (rate, share, counters.MEMORY, counters.DRAM)}) == 4
    (bar,) = machine_use.rates({rate: 1e9, share: 0.5}, {})
    assert bar.label != counters.label(counters.MEMORY) == "memory throughput", "which is Nsight Compute's name of it"
    wait = change(counters.stall_counter("barrier"), 4.0, 1.5)
    assert metrics.with_unit(wait, wait.value) == "1.50 cycles per instruction"


def test_shares_of_different_peaks_are_told_and_judged_neither_better_nor_worse() -> None:
    share, idle = "arithmetic throughput share", "headroom"
    changes = [change(share, 0.93, 0.479), change(idle, 13.5, 42.8, "%")]
    assert {one.judgement for one in metrics.weighed(changes)} == {Judgement.WORSE}
    found = metrics.weighed([replace(one, kind="bf16", previous_kind="tf32") for one in changes])
    assert {one.judgement for one in found} == {Judgement.CHANGED}
    assert metrics.change_cells(found[0])["values"] == "93.0 % of the TF32 peak → 47.9 % of the BF16 peak"
    assert metrics.change_cells(found[1])["values"] == "13.5 % with TF32 operations → 42.8 % with BF16 operations"
    (bar,) = machine_use.rates({share: 0.479}, {share: 0.93}, ("bf16", "tf32"))
    assert (bar.before, bar.note) == (None, "of the BF16 peak; the kernel beside it: 93.0 % of the TF32 peak")
    (bar,) = machine_use.rates({share: 0.479}, {share: 0.93}, ("bf16", "bf16"))
    assert (bar.before, bar.note) == (0.93, "")


def test_without_a_whole_call_the_longest_launch_is_compared() -> None:
    changes = [change(counters.TIME, 1.0, 1.0, "s", 0), change(counters.TIME, 9.0, 8.0, "s", 1)]
    changes.append(change(counters.DRAM, 10.0, 50.0, "%", 1))
    assert {one.change.launch for one in metrics.weighed(changes)} == {1}


Look = Callable[..., tuple[CandidateRow, list[queries.AttemptRow]]]


@pytest.fixture
def rows_of(home: Path) -> Iterator[Look]:
    """A sample run's kernel of that name, and all kernels of the run."""
    opened = index.open_index()

    def look(name: str, depths: int = 6) -> tuple[CandidateRow, list[queries.AttemptRow]]:
        samples.write_run(home / "runs", "r1", depths=depths)
        opened.ingest.catch_up()
        found = queries.candidate(opened.database, "r1", name)
        assert found
        return found, queries.attempts(opened.database, "r1")

    yield look
    index.close_index()


def test_the_story_says_what_changed_what_it_gave_and_what_the_model_knew(rows_of: Look) -> None:
    candidate, attempts = rows_of("c006")
    told = " ".join(story.lines(story.gather("r1", candidate)))
    assert told.startswith("Kernel 6 changes kernel 5: unroll the inner loop (+2 −0 lines).")
    by_number = {one.number: one for one in attempts}
    assert texts.counts(by_number[5], candidate) == (2, 0), "what a diff of the two tells"
    assert texts.counts(candidate, by_number[5]) == (0, 2)
    assert texts.counts(by_number[1], candidate) is None
    assert "13 % faster than kernel 5 (1.08 to 1.19×)." in told
    assert "Profile since kernel 4: share of peak memory bandwidth from 36.0 % to 48.0 % (better)" in told
    assert told.endswith("The model had seen a profile.")


def test_the_story_of_a_failed_kernel_names_the_one_that_mended_it(rows_of: Look) -> None:
    candidate, attempts = rows_of("c002")
    told = " ".join(story.lines(story.gather("r1", candidate)))
    assert "does not compile: candidate.py:11: error" in told
    assert "Repaired in kernel 4." in told
    mender = story.mended_by(candidate, attempts)
    assert mender
    assert mender.number == 4
    first = next(a for a in attempts if a.number == 1)
    assert story.ancestor(first, attempts) is None
    assert story.mended_by(replace(candidate, candidate_id="nobody"), attempts) is None
    said = story.lines(story.Facts(replace(candidate, summary="loads by `cp.async`."), None, None))
    assert said[0].endswith(": loads by “cp.async”."), "one full stop, no backticks"


def test_a_difference_within_the_noise_is_told_as_none(rows_of: Look) -> None:
    candidate, attempts = rows_of("c006")
    parent = next(a for a in attempts if a.number == 5)
    close = replace(candidate, speedup=(parent.speedup or 1.0) * 1.03)
    assert (
        "No measurable difference from kernel 5 (0.98 to 1.08×)" in story.lines(story.Facts(close, parent, parent))[1]
    )
    slow = replace(candidate, speedup=(parent.speedup or 1.0) * 0.8)
    assert "20 % slower than kernel 5" in story.lines(story.Facts(slow, parent, parent))[1]


def test_each_kernel_stands_on_the_roofline_once_with_an_arrow_from_the_one_compared_with(rows_of: Look) -> None:
    candidate, attempts = rows_of("c006")
    axes = roofline.Axes(0, {"memory": 4e12}, {"fp32": 6e13})
    found = roofline.points("r1", candidate, attempts, axes.work, "c004")
    assert [(one.name, one.role) for one in found][:2] == [
        ("kernel 6", "this"), ("kernel 4 (nearest profiled ancestor)", "compared"),
    ]  # fmt: skip
    drawn = roofline.figure(axes, found, None)
    (arrow,) = drawn["layout"]["annotations"]
    assert arrow["ax"] < arrow["x"]
    assert "kernel 4 (nearest profiled ancestor) at 3.00 TFLOP/s" in roofline.name(found)
    assert {"10 TFLOP/s", "100 TFLOP/s"} <= set(drawn["layout"]["yaxis"]["ticktext"])
    assert {"10", "100"} <= set(drawn["layout"]["xaxis"]["ticktext"])
    best = next(one for one in attempts if one.is_best)
    other = next(n for n in queries.profiled_kernels(index.current(), "r1") if n not in ("c004", "c006"))
    chosen = roofline.points("r1", candidate, attempts, axes.work, other)
    named = f"kernel {int(other.removeprefix('c'))} (chosen to compare with{', best' * (other == best.candidate_id)})"
    assert [(one.name, one.role) for one in chosen][:2] == [("kernel 6", "this"), (named, "compared")]
    assert {one.role for one in chosen[2:]} <= {"best"}
    (arrow,) = roofline.figure(axes, chosen, None)["layout"]["annotations"]
    assert arrow["ax"] == pytest.approx(math.log10(chosen[1].intensity))
    starred = [
        t["name"] for t in roofline.figure(axes, chosen, None)["data"] if t.get("marker", {}).get("symbol") == "star"
    ]
    assert len(starred) == 1, "a star is the best kernel, as on the curve"
    assert re.match(rf"kernel {best.number} \(.*best\)", starred[0])
    itself = roofline.points("r1", replace(candidate, candidate_id=best.candidate_id), attempts, axes.work, "c004")
    assert itself[0].role == "this"
    assert roofline.figure(axes, itself[:1], None)["data"][-1]["marker"]["symbol"] == "star", (
        "also where it is looked at"
    )
    alone = roofline.figure(axes, found[:1], None)
    assert alone["layout"]["annotations"] == []


def test_the_resource_that_limits_occupancy_is_marked(rows_of: Look) -> None:
    rows_of("c006")
    db = index.current()
    here, before = (machine_use.longest(queries.metrics(db, "r1", name)) for name in ("c006", "c004"))
    blocks = machine_use.blocks(here, before)
    assert [(bar.label, bar.text) for bar in blocks if bar.is_limit] == [("by shared memory", "3 ← limits")]
    assert [round(bar.share, 2) for bar in machine_use.occupancy(here, before)] == [0.5, 0.49]
    assert machine_use.blocks({}, {}) == machine_use.occupancy({}, {}) == machine_use.rates({}, {}) == []
    threads = machine_use.rates({"threads used": 1.5, "threads available": 2.0}, {"threads used": 1.0})
    assert (threads[0].share, threads[0].before, threads[0].text) == (0.75, 0.5, "1.5 of 2")


def test_waits_stand_beside_those_of_the_ancestor() -> None:
    drawn = machine_use.stall_figure({"barrier": 0.7, "wait": 0.3}, {"barrier": 0.2, "wait": 0.8}, "kernel <4>")
    assert [trace["name"] for trace in drawn["data"]] == ["this kernel", "kernel &lt;4&gt;"]
    assert drawn["data"][1]["x"] == [20.0, 80.0]


@pytest.mark.parametrize(
    ("switch", "verdict", "planned", "said"),
    [
        (Switch.AUTO, Verdict.PASSED, Exposure(6), "for the first kernel and then from depth 5 on"),
        (Switch.AUTO, Verdict.PASSED, Exposure(1, 2), "and then after 1 depth without a gain from depth 1 on"),
        (Switch.AUTO, Verdict.PASSED, Exposure(1, 1), "collected for every kernel"),
        (Switch.OFF, Verdict.PASSED, Exposure(6), "is off in this run"),
        (Switch.ON, Verdict.PASSED, Exposure(6), "made before profiling was switched on"),
        (Switch.ON, Verdict.INCORRECT, Exposure(6), "only correct kernels are"),
        (Switch.ON, None, Exposure(6), "Not judged yet"),
    ],
)
def test_a_kernel_without_a_profile_says_why(
    rows_of: Look, switch: Switch, verdict: Verdict | None, planned: Exposure, said: str
) -> None:
    candidate, _ = rows_of("c001")
    assert said in profile_tab.why_none(replace(candidate, verdict=verdict), switch, planned, False, AS_STORED)


def test_a_kernel_without_a_profile_says_who_switched_profiles_off(rows_of: Look) -> None:
    candidate, _ = rows_of("c001")
    mark = SteeringMark(9, 0.0, 2, 1, CommandKind.COLLECT, "off", "", "")
    other = replace(mark, kind=CommandKind.HINT)
    assert [
        profile_tab.why_none(candidate, Switch.OFF, Exposure(6), False, AS_STORED, marks).partition("; ")[2]
        for marks in ([mark, other], [other])
    ] == ["a person switched it off during depth 1.", "it was started so."]


def test_a_kernel_without_a_profile_says_what_holds_for_its_own_method(rows_of: Look) -> None:
    candidate, _ = rows_of("c001")
    said = profile_tab.why_none(candidate, Switch.AUTO, None, False, words_of(CoderJudge))
    assert (
        said
        == "Not profiled. On “auto”, profiles are collected for every correct kernel; this kernel belongs to round 0."
    )
    assert "when the search method asks" in profile_tab.why_none(
        candidate, Switch.AUTO, None, False, MethodWords("walk", "walks")
    )


SOURCE = 'import torch\nA = 1\nSRC = r"""\n#include <x>\nvoid f() {\n  return 1;\n}\n"""\nB = 2\n'


def test_the_lines_that_the_compiler_names_are_found_in_the_module() -> None:
    told = (
        "candidate.py:6:3: error: bad\nx.hpp:9: error: y\n    candidate.py:900:1: required\ncuda_sources[0]:3: error: z"
    )
    assert errors_tab.named_lines(told, SOURCE) == [6, 5]
    (one,) = errors_tab.excerpts([6, 5], SOURCE, around=1)
    assert (one.first, one.marked, one.lines[0]) == (4, (5, 6), "#include <x>")
    assert errors_tab.named_lines("cuda_sources[0]:3: error", SOURCE + SOURCE) == []
    assert len(errors_tab.excerpts([1, 9], SOURCE, around=1)) == 2


def test_a_map_of_wrong_elements_is_told_in_words() -> None:
    heat = [[1.0 if j > 11 else 0.25 * (i == j) for j in range(16)] for i in range(16)]
    assert errors_tab.heat_words(heat) == (
        "76 of 256 blocks of the output have errors: all of block columns 13 to 16 of 16, 12 on the diagonal."
    )
    assert errors_tab.heat_words([[1.0, 1.0]]) == "All 2 blocks of the output have errors."
    assert errors_tab.heat_words([[0.0, 0.1], [0.0, 0.0]]) == "1 of 4 blocks of the output have errors."
    assert errors_tab.heat_words([[0.0]]) == "No block of the output has errors."


def test_the_pattern_stands_behind_the_figures_of_a_mismatch() -> None:
    figures = "5 of 9 elements are wrong: expected 1, got 2. Largest error 1; largest absolute error 1.9."
    assert errors_tab.pattern(f"{figures} Every element is zero.") == "Every element is zero."
    assert errors_tab.pattern(figures) == errors_tab.pattern("it crashed") == ""


def test_the_lines_of_a_crash_keep_their_breaks(home: Path, open_page: Open) -> None:
    crash = "during check: the process was killed by SIGSEGV\nIt was in line 9 of the file (run).\n  y = x[4]"
    folder = samples.write_run(home / "runs", "r1", depths=5)
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    wrong = next(line["event"] for line in lines if line["kind"] == "Checked" and line["event"]["result"]["message"])
    wrong["result"]["message"] = crash
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    app = open_page("candidate", run="r1", candidate=wrong["candidate_id"], tab="Errors")
    first, _, rest = crash.partition("\n")
    assert [error.value for error in app.error] == [wording.plain(first)]
    assert rest in [one.value for one in app.code]


def test_errors_that_differ_only_in_numbers_are_one_error(rows_of: Look) -> None:
    candidate, attempts = rows_of("c002", depths=7)
    found = errors_tab.alike(candidate, attempts)
    assert {a.verdict for a in found} == {Verdict.COMPILE_ERROR}
    assert errors_tab.alike_words(candidate, found).startswith(f"{len(found)} kernels of this run failed")
    moved = replace(found[1], message=found[1].message.replace(":11:", ":77:"))
    assert errors_tab.error_of(moved) == errors_tab.error_of(candidate)
    right = next(a for a in attempts if a.verdict is Verdict.PASSED)
    assert errors_tab.alike(right, attempts) == []


def test_a_word_is_found_wherever_it_stands_in_a_conversation() -> None:
    parts = [("prompt, user", "Tile the loop.\nA tile of 8"), ("reply", "no such word")]
    found = prompts_tab.word_hits(" TILE ", parts)
    assert [(hit.where, hit.word) for hit in found] == [("prompt, user", "Tile"), ("prompt, user", "tile")]
    assert prompts_tab.word_hits("", parts) == prompts_tab.word_hits("   ", parts) == []
    assert prompts_tab.word_hits("x", [("reply", "İx")])[0].word == "x"


def test_the_conversation_holds_what_led_to_a_repair_too(rows_of: Look) -> None:
    rows_of("c004")
    db = index.current()
    found = queries.conversation(db, "r1", "c004")
    roles = [(call.role, call.candidate_id, call.made_id) for call in found]
    assert roles[:4] == [
        ("diagnose", "c003", None), ("repair", "c003", None), ("repair", "c003", None), ("repair", "c003", "c004"),
    ]  # fmt: skip
    candidate = queries.candidate(db, "r1", "c004")
    assert candidate
    assert prompts_tab.relation(found[0], candidate) == "about kernel 3, its parent"
    assert prompts_tab.total(found, [], "").startswith(f"{len(found)} calls · ")
    (failed,) = queries.failed_tries(db, "r1", "c005")
    assert prompts_tab.failure(failed) == (
        "Try 1: rate limited: too many requests, HTTP 429: slow down (retried after 2.0 s)"
    )
    assert isinstance(failed, FailedTryRow)


def test_parent_base_and_best_have_a_button_each_once(rows_of: Look) -> None:
    candidate, attempts = rows_of("c006")
    others = {a.candidate_id: a for a in attempts if a.candidate_id != "c006"}
    found = diff_tab.shortcuts(candidate, others)
    assert found["parent"] == candidate.parent_id
    assert len(set(found.values())) == len(found)


def test_of_a_long_run_the_nearest_kernels_can_be_chosen_and_the_one_asked_for(rows_of: Look) -> None:
    candidate, attempts = rows_of("c006")
    long = [replace(attempts[0], number=n, candidate_id=f"k{n}", is_best=n == 900) for n in range(1, 1001)]
    here = replace(candidate, number=500, candidate_id="k500", parent_id="k3", base_id=None)
    found = diff_tab.near(here, long, "k77")
    assert {"k3", "k77", "k900", "k300", "k700"} <= set(found)
    assert len(found) == diff_tab.MOST_CHOICES + 4
    assert len(diff_tab.near(candidate, attempts, "")) == len(attempts)


def test_kernels_are_read_again_only_when_something_changed(rows_of: Look) -> None:
    rows_of("c006")
    assert index.attempts("r1") is index.attempts("r1")
    assert [a.candidate_id for a in index.attempts("r1")] == [
        a.candidate_id for a in queries.attempts(index.current(), "r1")
    ]


@pytest.mark.parametrize(
    ("name", "tab", "what"),
    [
        ("c006", "Diff", "source"), ("c006", "Source", "source"), ("c002", "Errors", "build log"),
        ("c004", "Diagnosis and patch", "diagnosis"), ("c006", "Profile", "profiler's report"),
        ("c006", "Prompts and replies", "prompt"), ("c006", "Prompts and replies", "reply"),
    ],
)  # fmt: skip
def test_a_text_that_is_gone_is_named_with_its_file(
    home: Path, open_page: Open, name: str, tab: str, what: str
) -> None:
    folder = samples.write_run(home / "runs", "r1", depths=5)
    for blob in folder.blobs.iterdir():
        blob.unlink()
    app = open_page("candidate", run="r1", candidate=name, tab=tab)
    for opened in ("raw:c006", "log:c002"):
        app.session_state[opened] = True
    app.run()
    assert not app.exception
    said = [error.value for error in app.error]
    assert any(f"The {what} is missing from the run folder" in text for text in said), said
    assert not re.search("[0-9a-f]{40}", " ".join(said))
    assert any(str(folder.blobs) in str(caption.help) for caption in app.caption)


def test_no_two_components_share_a_name() -> None:
    """Of two with one name the browser runs the script of whichever was named last, with the other one's data."""
    files = (ROOT / "pages").rglob("*.py")
    names = [name for file in files for name in re.findall(r'"(tilewright_\w+)"', file.read_text())]
    assert len(names) == len(set(names)), sorted(names)


def test_symbols_of_one_function_are_one_row_of_where_the_time_goes() -> None:
    rows = [replace(change("sampled time share", None, share), kernel=name) for name, share in
            (("gemm (1.so)", 0.6), ("malloc (libc.so)", 0.1), ("gemm (1.so)", 0.3))]  # fmt: skip
    found = metrics.by_function(rows)
    assert [one.kernel for one in found] == ["gemm (1.so)", "malloc (libc.so)"]
    assert [one.value for one in found] == pytest.approx([0.9, 0.1])


@pytest.mark.parametrize(
    ("model", "said"),
    [("some-model", "Shown to some\\-model in 1 prompt"), ("manual", "Shown to the person who answers in 1 prompt"),
     ("recorded", "Part of 1 prompt, exactly as below; recorded replies do not depend on it.")],
)  # fmt: skip
def test_a_profile_says_who_has_seen_it(model: str, said: str) -> None:
    assert profile_tab.shown_to(model, "1 prompt").startswith(said)


def test_a_profile_of_an_example_whose_replies_were_handed_in_was_shown_to_a_language_model() -> None:
    told = profile_tab.shown_to("manual", "1 prompt", is_example=True)
    assert told == f"Shown to {wording.BY_PROMPTS} in 1 prompt, exactly as below."
