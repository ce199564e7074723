"""Comparing runs, without a browser: groups, warnings, summaries, and the page with none, one and several runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine import remeasuring, supervisor
from engine.search.methods.options import Value
from pages import report
from pages.parts import index, wording
from pages.parts.compare import compare_chart, compare_kernels, compare_table, compared_runs
from pages.parts.compare.compare_chart import Exposure, exposure_of
from pages.parts.compare.compared_runs import Axis, Compared, gather
from pages.parts.report import report_comparison
from pages.parts.status import settings_list
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.results import relative
from storage.run import labels, liveness, remeasurements
from storage.run.folder import RunFolder, find_run
from storage.run.remeasurements import RemeasureProgress, RemeasureState, Round
from storage.run.settings import Prompts
from storage.suites.statistics import geometric_mean
from tests.pages.conftest import Open, everything, words
from tests.samples import write_run


def exposed_from(folder: RunFolder, depth: int | None) -> None:
    """Let the model of a synthetic run see its first profile at this depth."""
    lines = [json.loads(line) for line in folder.journal_file.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "DepthFinished":
            line["event"]["is_profile_exposed"] = depth is not None and line["event"]["depth"] >= depth
    folder.journal_file.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> list[Compared]:
    home = tmp_path_factory.mktemp("home")
    for name, seed, depth in (("early", 0, 1), ("late", 3, 5), ("later", 6, 6), ("other", 1, None)):
        exposed_from(write_run(home / "runs", name, seed=seed, created_at=1.75e9 + seed), depth)
    with pytest.MonkeyPatch.context() as patch, open_database(index_file(home)) as db:
        patch.setenv("TILEWRIGHT_HOME", str(home))
        Ingest(db, home / "runs").catch_up()
        return gather(db, ["early", "late", "gone", "later", "other"])


@pytest.fixture
def runs(gathered: list[Compared]) -> list[Compared]:
    """Records cannot change; the list is the test's own."""
    return list(gathered)


def test_runs_keep_the_order_chosen_and_get_letters_dashes_and_symbols_of_their_own(runs: list[Compared]) -> None:
    assert [(run.letter, run.run.run_id) for run in runs] == [
        ("A", "early"), ("B", "late"), ("C", "later"), ("D", "other"),
    ]  # fmt: skip
    looks = [(replace(runs[0], place=k).colour, replace(runs[0], place=k).dash) for k in range(12)]
    assert len(set(looks)) == 12


@pytest.mark.parametrize("axis", list(Axis))
def test_the_best_so_far_never_falls_on_any_axis_and_points_lead_to_kernels(runs: list[Compared], axis: Axis) -> None:
    figure = compare_chart.curve_figure(runs, axis, is_log=True, has_kernels=True)
    lines = [trace for trace in figure["data"] if trace.get("line", {}).get("shape") == "hv"]
    assert len(lines) == len(runs)
    for line in lines:
        assert line["x"] == sorted(line["x"])
        assert line["y"] == sorted(line["y"])
        assert all("#c" in target for target in line["customdata"])
    kernels = [trace for trace in figure["data"] if trace["name"].startswith("kernels of")]
    assert sum(len(trace["x"]) for trace in kernels) == sum(len(run.timed) for run in runs)


def test_an_unknown_price_ends_the_curve_and_is_told(home: Path) -> None:
    folder = write_run(home / "runs", "unpriced")
    folder.journal_file.write_text(folder.journal_file.read_text().replace('"cost_usd":0.012', '"cost_usd":null'))
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        runs = gather(db, ["unpriced"])
    (line, *_) = compare_chart.curve_figure(runs, Axis.MONEY, is_log=True, has_kernels=False)["data"]
    assert line["x"] == []
    assert compare_chart.unknown(runs, Axis.MONEY) == runs
    assert compare_chart.unknown(runs, Axis.TOKENS) == []


def test_a_run_that_was_stopped_in_its_first_step_is_drawn_with_the_kernel_it_has(home: Path, open_page: Open) -> None:
    """As by a stop while its first kernel was profiled: it was timed, and no step has finished."""
    write_run(home / "runs", "whole", seed=3)
    folder = write_run(home / "runs", "stopped")
    lines = folder.journal_file.read_text().splitlines()
    first = next(at for at, line in enumerate(lines) if '"kind":"Timed"' in line)
    lines[first + 1 :] = [line for line in lines[first + 1 :] if '"kind":"RunEnded"' in line]
    folder.journal_file.write_text("".join(f"{line}\n" for line in lines))
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        runs = gather(db, ["whole", "stopped"])
    stopped = runs[1]
    (kernel,) = stopped.timed
    assert not stopped.reached
    for axis in Axis:
        line, end = compare_chart.curve_figure(runs, axis, is_log=True, has_kernels=False)["data"][2:]
        assert (line["y"], line["customdata"]) == ([kernel.speedup], [f"stopped#{kernel.candidate_id}"])
        assert line["text"][0].endswith("this step was cut short")
        assert "<b>B</b>" in end["text"][0]
    assert [group.letters for group in compare_chart.groups(runs)][-1] == ("B",)
    report = report_comparison.comparison_report(runs)
    assert f"B, depth 0: best so far {wording.speedup(kernel.speedup)}" in report
    write_run(home / "runs", "unmade", ending="new")
    app = open_page("compare", runs="whole,unmade")
    assert not app.exception
    assert "No curve yet without a correct, timed kernel: B." in words(app)


def test_runs_are_grouped_by_when_their_model_first_saw_a_profile(gathered: list[Compared]) -> None:
    runs = [run for run in gathered if run.run.task_name == "square_matmul"]
    early, delayed = compare_chart.groups(runs)
    assert (early.exposure, early.letters, early.exposed_at) == (Exposure.EARLY, ("A",), (1,))
    assert (delayed.exposure, delayed.letters, delayed.exposed_at) == (Exposure.DELAYED, ("B", "C"), (5, 6))
    last = delayed.spots[-1]
    bests = [run.run.best_speedup or 0.0 for run in runs[1:]]
    assert last.mean == pytest.approx(geometric_mean(bests))
    assert (last.low, last.high, last.count) == (min(bests), max(bests), 2)
    assert [exposure_of(depth) for depth in (None, 0, 2, 3)] == [
        Exposure.NEVER, Exposure.EARLY, Exposure.EARLY, Exposure.DELAYED,
    ]  # fmt: skip
    drawn = compare_chart.exposure_figure([early, delayed], True, "square_matmul")
    assert {"early: profiles from step 1", "delayed: profiles from step 5"} <= {
        note["text"].strip() for note in drawn["layout"]["annotations"]
    }


def test_languages_are_compared_by_the_best_kernels_of_each(runs: list[Compared]) -> None:
    assert {run.conditions.language for run in runs} == {run.run.language for run in runs} == {"cute"}
    (only,) = compared_runs.language_figures(runs)
    assert only[0] == "CuTe"
    other = replace(runs[3], conditions=replace(runs[3].conditions, language="cuda"))
    first, second = compared_runs.language_figures([*runs[:3], other])
    assert (first[0], second[0]) == ("CuTe", "CUDA C++")
    assert first[1] == wording.speedup(max(run.run.best_speedup or 0 for run in runs[:3]))
    assert second[1:] == (wording.speedup(other.run.best_speedup), "D: Softmax")


def test_a_speed_up_has_no_more_digits_than_were_measured_here_either(runs: list[Compared]) -> None:
    first, *others = runs
    noisy = replace(first, run=replace(first.run, best_speedup=1.649, best_noise=0.3))
    assert compare_table.cells(noisy)["best"]["text"] == "1.6×"  # type: ignore[index]
    assert "A 1.6×" in compare_chart.name([noisy, *others], Axis.DEPTH)


def test_what_cannot_be_compared_is_warned_of_and_what_can_is_not(runs: list[Compared]) -> None:
    told = compared_runs.warnings(runs)
    assert [text.partition("**")[2].partition("**")[0] for text in told] == ["Different tasks."]
    assert "A, B, C: Square matmul; D: Softmax" in told[0]
    assert compared_runs.warnings(runs[:2]) == []
    other = replace(
        runs[1], conditions=replace(runs[1].conditions, device="another", precision="tf32", sizes='{"N":1}')
    )
    assert len(compared_runs.warnings([runs[0], other])) == 3


def test_one_sentence_says_which_of_two_runs_is_faster_or_why_nobody_can_tell(runs: list[Compared]) -> None:
    def reaches(run: Compared, speedup: float, noise: float = 0.02) -> Compared:
        low, high = speedup * (1 - noise), speedup * (1 + noise)
        timed = [
            replace(row, speedup=speedup, low=low, high=high, noise=noise)
            if row.candidate_id == run.run.best_candidate_id
            else row
            for row in run.timed
        ]
        return replace(run, timed=timed)

    first, second, third, other = (replace(run, conditions=replace(run.conditions, toolchain="cuda")) for run in runs)
    told = compare_kernels.told_of_runs
    ratio = relative.between_sessions(2.4, 0.02, 2.0, 0.02)
    number = next(row.number for row in second.timed if row.candidate_id == second.run.best_candidate_id)
    said = told([reaches(first, 2.0), reaches(second, 2.4)])
    assert said.startswith(f"**Kernel {number} of run B is faster**: 1.20× ({wording.interval(ratio.low, ratio.high)})")
    assert said == told([reaches(second, 2.4), reaches(first, 2.0)])
    assert told([reaches(first, 2.3), reaches(second, 2.4)]).startswith("**No significant difference**: kernel ")
    assert "0.37 to 1.71×" in told([reaches(first, 2.0, 0.6), reaches(second, 2.0)]), (
        "noise tells a range and no figure"
    )
    three = told([reaches(first, 2.0), reaches(second, 2.4), reaches(third, 2.39)])
    assert three.startswith("**No significant difference**")
    assert "of run C" in three
    assert three.endswith("The best two of 3 runs.")
    elsewhere = replace(second, conditions=replace(second.conditions, device="another", precision="tf32"))
    assert "differ in device and precision class or passes" in told([first, elsewhere])
    emulated = replace(second, conditions=replace(second.conditions, toolchain="cpu"))
    assert "differ in toolchain, so" in told([first, emulated])
    assert "differ in task, so" in told([first, other])
    without = replace(second, timed=[], run=replace(second.run, best_candidate_id=None))
    assert told([first, without]) == "**No verdict**: B has no correct kernel with a timing that counts."
    assert told([first]) == ""


@pytest.mark.parametrize(
    ("speedup", "said"),
    [
        (1.0, "**No significant difference**: kernel {} of run A is 0.95"),
        (0.9, "**Kernel {} of run A is slower**: 0.86"),
    ],
)
def test_two_kernels_of_a_run_are_told_as_its_own_pages_tell_them_the_newer_over_the_older(
    runs: list[Compared], speedup: float, said: str
) -> None:
    old, new = sorted(runs[0].timed, key=lambda row: row.number)[:2]
    at_the_edge = replace(old, speedup=1.0515, noise=0.0, latency_ms=1.0)
    newer = replace(new, speedup=speedup, noise=0.0, latency_ms=1.0)
    first, second = compare_kernels.Choice(runs[0], at_the_edge), compare_kernels.Choice(runs[0], newer)
    assert compare_kernels.told(first, second).startswith(said.format(new.number))
    assert compare_kernels.told(second, first) == compare_kernels.told(first, second)


def test_two_kernels_that_were_timed_again_in_turn_are_told_by_that(home: Path, open_page: Open) -> None:
    for name, seed in (("one", 0), ("two", 6)):
        write_run(home / "runs", name, seed=seed)
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        one, two = gather(db, ["one", "two"])
    assert one.run.best_candidate_id is not None
    assert two.run.best_candidate_id is not None
    request = remeasuring.request_of(("two", two.run.best_candidate_id), ("one", one.run.best_candidate_id))
    rounds = tuple(Round(1.5 + step / 100, 1.0, 1.0, 1.5) for step in range(6))
    remeasurements.tell(remeasurements.create(request), RemeasureProgress(RemeasureState.DONE, 1.0, rounds))
    said = compare_kernels.told_of_runs([one, two])
    numbers = request.first.number, request.second.number
    assert said.startswith(f"**Timed again in turn**: Kernel {numbers[0]} of run B is 1.52× (1.50 to 1.55×) as fast as")
    assert f"kernel {numbers[1]} of run A; in their runs it was" in said
    assert words(open_page("compare", runs="one,two")).count(said) == 2, "at the top, and of the two kernels chosen"


def test_limits_that_should_be_one_and_are_not_are_told_with_how_busy_the_machine_was(runs: list[Compared]) -> None:
    first, second, *_ = runs
    assert first.limit is not None
    slower = replace(first.limit, bandwidth_gb_s=10.0, peak_gflop_s=600.0, others_share=0.62)
    (told,) = compared_runs.warnings([first, replace(second, limit=slower)])
    assert told.startswith(
        "**Different hardware limits on one model of device.** A: 0.895 ms; B: 3.58 ms (machine busy"
    )
    assert "62 % used by others" in told
    assert "the shortest is nearest to the truth" in told


def test_every_task_counts_once_and_one_without_a_kernel_is_told(runs: list[Compared]) -> None:
    without = replace(runs[3], run=replace(runs[3].run, best_speedup=None))
    over = compared_runs.over_tasks([*runs[:3], without])
    assert (len(over.tasks), over.solved) == (2, 1)
    assert over.mean == pytest.approx(max(run.run.best_speedup or 0 for run in runs[:3]))
    assert dict(over.fast)[1.0] == 1
    assert "1 without a correct kernel not counted" in compared_runs.task_figures(over)[0][2]


def test_the_page_says_what_is_missing(home: Path, open_page: Open) -> None:
    assert "No runs yet" in words(open_page("compare"))
    write_run(home / "runs", "one")
    write_run(home / "runs", "new", ending="new", created_at=1.75e9 + 1)
    app = open_page("compare")
    assert "Choose 2 to 12 runs" in words(app)
    assert "Download report" in everything(app.button(key="offered:square_matmul").click().run())
    app = open_page("compare", runs="one,absent")
    assert not app.exception
    assert "Run absent not found" in words(app)
    assert "Choose another run" in words(app)
    write_run(home / "runs", "two", depths=4)
    app = open_page("compare", runs="one").multiselect(key="compared_runs").set_value(["one", "two"]).run()
    chosen = [str(box.value).partition("#")[0] for box in app.selectbox if box.label in ("Kernel", "Against")]
    assert chosen == ["one", "two"], "not two kernels of the run that was alone before"
    app = open_page("compare", runs="one,new")
    assert not app.exception
    assert "Compare two kernels" in words(app)


def test_a_run_with_a_name_is_offered_and_drawn_by_it(home: Path, open_page: Open) -> None:
    for name in ("one", "two", "plain"):
        write_run(home / "runs", name)
    labels.change(find_run("one"), lambda now: replace(now, name="A good one"))
    app = open_page("compare", runs="one,plain")
    (offered,) = [label for label in app.multiselect(key="compared_runs").options if "good" in label]
    assert offered == "A good one · Square matmul"
    legends = [run.name for run in gather(index.current(), ["one", "plain"])]
    assert legends[0] == "A · A good one"
    assert legends[1].startswith("B · Square matmul · ")
    labels.change(find_run("two"), lambda now: replace(now, name="A good one"))
    options = open_page("compare", runs="one,two").multiselect(key="compared_runs").options
    assert {"A good one · Square matmul · one", "A good one · Square matmul · two"} < set(options)


def test_the_settings_in_which_runs_differ_are_told_by_their_labels(home: Path, open_page: Open) -> None:
    both: dict[str, dict[str, Value]] = {
        "one": {"max_repairs": 3},
        "two": {"base_policy": "best", "expose_from_depth": 4},
    }
    for name, options in both.items():
        folder = write_run(home / "runs", name)
        pack = Prompts("ab" * 32, "cd" * 32, "/packs/terse", {"hint.md": ""}) if name == "two" else Prompts("cd" * 32)
        settings = replace(folder.read_settings(), strategy_options=options, prompts=pack)
        folder.settings_file.unlink()
        folder.write_settings(settings)
    assert settings_list.differing(["one", "two"]) == [
        [
            "Each depth starts from",
            "latest kernel; back to the best after some depths without progress (depths without progress: 2)",
            "always the best kernel",
        ],
        ["Maximum repairs per kernel", "3", "5"],
        ["Show profiles to the model", "auto, by kernel class", "from depth 4"],
        ["Prompts", "shipped, cdcdcdcdcdcd", "terse, abababababab (1 file in place of the shipped ones, cdcdcdcdcdcd)"],
    ]
    assert settings_list.differing(["one", "one"]) == []
    assert "Settings that differ" in [one.label for one in open_page("compare", runs="one,two").expander]
    assert "Settings that differ" in report.report_of([find_run("one"), find_run("two")])
    said = words(open_page("run", run="two")).replace("\\", "")
    assert "Maximum restarts per depth" in said
    assert "always the best kernel" in said
    assert "terse, abababababab" in said


def test_replays_are_not_offered(home: Path) -> None:
    from engine import replaying

    original = write_run(home / "runs", "told")
    replaying.prepare(replaying.settings_of(original, 1.0), original)
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        assert [row.run_id for row in queries.comparable_runs(db)] == ["told"]


def test_more_than_twelve_runs_are_summarised_in_groups(home: Path, open_page: Open) -> None:
    names = [f"r{n:02d}" for n in range(14)]
    for n, name in enumerate(names):
        write_run(
            home / "runs", name, seed=n, depths=3, strategy="coder_judge" if n % 2 else "cutegen", has_blobs=False
        )
    other = find_run("r00")
    settings = replace(other.read_settings(), sizes={"N": 512}, tune=3)
    other.settings_file.unlink()
    other.write_settings(settings)
    liveness.hold(write_run(home / "runs", "young", ending="new", has_blobs=False))
    app = open_page("compare", runs=",".join([*names, "young"]))
    assert not app.exception
    assert "More than 12 runs: a summary by groups" in words(app)
    said = words(app).replace("\\", "").replace("*", "")
    assert "over eager PyTorch" in said
    assert "geometric mean of all 3 tasks" in said
    assert "coder_judge against cutegen: " in said or "cutegen against coder_judge: " in said
    assert said.count(" of engine time in 7 runs.") == 2
    assert "1 unfinished run without a correct kernel yet, not counted" in said
    assert "averaged as repeats, but differ in: Sizes, Tuner." in said
    shown = everything(app)
    assert "run?run=r13" in shown
    assert "running, young" in shown
    assert "no correct kernel" not in shown


def test_kernels_that_this_machine_cannot_run_are_not_offered_to_be_timed_again(home: Path, open_page: Open) -> None:
    for name in ("one", "two"):
        write_run(home / "runs", name)
    remeasurements.create(remeasuring.request_of(("one", "1"), ("two", "1")))
    app = open_page("compare", runs="one,two")
    lacks = supervisor.available_toolchains()["cuda"]
    button = app.button(key="remeasure")
    assert button.disabled is bool(lacks)
    assert lacks in button.help
    assert "kernel 1 of Square matmul (one) against kernel 1 of Square matmul (two)" in words(app).replace("\\", "")
