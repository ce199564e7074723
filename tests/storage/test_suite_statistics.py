"""Statistics of suites against known answers, and what must hold of them for any numbers."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.suites import tables
from storage.results import observed
from storage.results.observed import ObservedKernel, ObservedOperator
from storage.suites import curves, statistics, summary
from storage.suites.curves import Spending
from storage.suites.reaching import reaching
from storage.suites.records import Arm, Cell, CellState, Defined, SuiteTask
from storage.suites.results import BestKernel, RunResult, TimedKernel, Try
from storage.suites.standing import CellStanding, Suite
from storage.suites.summary import Against, Results

RATIOS = st.lists(st.floats(0.05, 20.0), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (10, 2.22814), (25, 2.05954), (120, 1.97993)]
)
def test_quantiles_of_students_distribution_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert statistics.student_t(0.975, freedom) == pytest.approx(quantile, rel=1e-5)
    assert statistics.student_t(0.025, freedom) == pytest.approx(-quantile, rel=1e-5)


def test_a_mean_of_speedups_is_geometric_with_students_interval_of_the_logarithm() -> None:
    found = statistics.mean_speedup([1.0, 2.0, 4.0])
    assert found is not None
    half = 4.30265 * math.log(2) / math.sqrt(3)
    expected = 2.0, 2 * math.exp(-half), 2 * math.exp(half)
    assert (found.value, found.low, found.high) == pytest.approx(expected, rel=1e-5)
    assert statistics.mean_speedup([]) is None
    assert statistics.mean_speedup([2.0, 8.0]) == statistics.Estimate(pytest.approx(4.0), None, None, 2)  # type: ignore[arg-type]


def test_the_interval_of_the_mean_holds_the_truth_in_95_of_100() -> None:
    dice, hit = random.Random(1), 0
    for _ in range(1000):
        found = statistics.mean_speedup([math.exp(dice.gauss(0.4, 0.5)) for _ in range(5)])
        hit += found is not None and found.low is not None and found.low < math.exp(0.4) < (found.high or 0.0)
    assert 0.93 < hit / 1000 < 0.97


def test_shares_have_wilsons_interval() -> None:
    half, whole = statistics.share(5, 10), statistics.share(10, 10)
    assert half is not None
    assert whole is not None
    assert (half.low, half.high) == pytest.approx((0.236593, 0.763407), abs=1e-6)
    assert (whole.low, whole.high) == pytest.approx((0.722467, 1.0), abs=1e-6)
    assert statistics.share(0, 0) is None


def test_the_sign_test_and_pass_at_k_are_exact() -> None:
    assert statistics.sign_test(10, 1) == pytest.approx(24 / 2048)
    assert statistics.sign_test(1, 10) == pytest.approx(24 / 2048)
    assert [statistics.sign_test(n, n) for n in (0, 3)] == [1.0, 1.0]
    assert statistics.pass_at(2, 4, 2) == pytest.approx(1 - 1 / 6)


def test_the_median_of_too_few_has_no_interval() -> None:
    five, six = statistics.median([1, 2, 3, 4, 5]), statistics.median([1, 2, 3, 4, 5, 6])
    assert five == statistics.Estimate(3, None, None, 5)
    assert six == statistics.Estimate(3.5, 1, 6, 6)


def test_scores_of_the_hardware_limit() -> None:
    assert [statistics.sol_score(10, kernel, 2) for kernel in (10, 2, 6, 18)] == pytest.approx([0.5, 1.0, 2 / 3, 1 / 3])
    assert [statistics.gap_closed(10, kernel, 2) for kernel in (10, 2, 6, 18)] == pytest.approx([0.0, 1.0, 0.5, -1.0])
    assert statistics.sol_score(2, 2, 2) is statistics.gap_closed(2, 2, 0) is None


def test_table_2_of_the_paper_has_other_means_than_its_text() -> None:
    rows = [1.01, 1.0, 1.0, 1.0, 0.88, 0.87, 2.45, 1.01, 0.99, 0.94, 1.01, 3.45, 0.99, 0.99]
    assert round(sum(rows) / len(rows), 2) == 1.26
    assert round(statistics.geometric_mean(rows), 2) == 1.14


@given(RATIOS, st.floats(0.1, 10.0))
def test_a_mean_moves_with_its_values_and_lies_between_them(values: list[float], factor: float) -> None:
    found, scaled = statistics.mean_speedup(values), statistics.mean_speedup([factor * one for one in values])
    assert found is not None
    assert scaled is not None
    assert scaled.value == pytest.approx(factor * found.value)
    assert min(values) * (1 - 1e-9) <= found.value <= max(values) * (1 + 1e-9)
    if found.low is not None:
        assert found.low <= found.value <= (found.high or 0.0)


def best(speedup: float) -> BestKernel:
    return BestKernel(
        "c001", "blob", speedup, speedup * 0.99, speedup * 1.01, 0.01, 2 / speedup, 2.0, speedup, 9, "fp32", 1e-7, 1e-6,
        1e-4, 14, (), 7, (), None, None,
    )  # fmt: skip


def test_the_share_of_a_call_that_is_the_kernels_own_is_told_where_it_was_observed() -> None:
    operators = [
        ObservedOperator("aten::conv2d", "computes", 1, 9.0, 0.6),
        ObservedOperator("aten::view", "views", 1, 9.0, 0.1),
    ]
    on_host = {observed.KEY: observed.to_text(operators)}
    assert observed.own_share(on_host) == pytest.approx(0.4)
    kernels = [
        ObservedKernel("mine", "own", "", 3, 2.0, 0.2),
        ObservedKernel("gemm", "PyTorch", "aten::mm", 1, 8.0, 0.8),
    ]
    assert observed.own_share(on_host | {observed.KERNELS: observed.to_text(kernels)}) == 0.2
    assert observed.own_share({observed.KEY: observed.to_text([replace(operators[0], share=None)])}) is None
    assert observed.own_share({}) is None


def run(
    speedup: float | None, second: float | None = None, first: float | None = None, measured: str = "fp32"
) -> RunResult:
    """A run of four calls: a failure, a first kernel at call 2 and the best one at call 4."""
    timed: tuple[TimedKernel, ...] = ()
    tries: tuple[Try, ...] = (Try(False, False, False),)
    if speedup is not None:
        rows = ((first or speedup, 2), (speedup, 4))
        timed = tuple(
            TimedKernel(
                f"c{n}",
                value,
                0.99 * value,
                1.01 * value,
                0.01,
                n // 2,
                n,
                60.0 * n,
                100 * n,
                None,
                1.0 / value,
                30.0 * n,
            )
            for value, n in rows
        )
        tries = (*tries, Try(True, False, False), Try(True, True, False), Try(True, True, False))
    known = ("matmul", "cute", "cpu", "m", "cutegen", measured, "device", 0.5, "torch.compile", second)
    return RunResult("r", *known, best(speedup) if speedup else None, timed, tries, 4, 240.0, 400, None)


@pytest.mark.parametrize(("toolchain", "gains"), [("cpu", 1), ("cuda", 0)])
def test_a_kernel_beside_which_eager_was_held_up_on_a_gpu_is_no_gain_by_its_speed_up_alone(
    toolchain: str, gains: int
) -> None:
    one = run(3.0, first=2.0)
    alike = tuple(replace(kernel, latency_ms=0.5) for kernel in one.timed)
    assert replace(one, toolchain=toolchain).gains == 1
    assert replace(one, toolchain=toolchain, timed=alike).gains == gains


def suite(cells: dict[tuple[str, str], list[RunResult]], baseline: str = "a") -> Results:
    """Finished cells by task and arm."""
    tasks, arms = (tuple(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    repeats = max(map(len, cells.values()))
    defined = Defined("s", tuple(SuiteTask(t, t) for t in tasks), tuple(map(Arm, arms)), repeats, baseline_arm=baseline)
    standings, runs = {}, {}
    for (task, arm), found in cells.items():
        for number, one in enumerate(found, 1):
            cell, name = Cell(task, arm, number), f"{task}-{arm}-{number}"
            standings[cell], runs[name] = CellStanding(cell, name, CellState.FINISHED), one
    return summary.gather(Suite(defined, standings), runs)


def test_a_task_counts_once_however_often_it_is_repeated() -> None:
    found = summary.figures(suite({("x", "a"): [run(2.0), run(8.0)], ("y", "a"): [run(1.0), run(None)]}), "a")
    assert found.mean is not None
    assert (found.mean.value, found.mean.count) == pytest.approx((2.0, 2))
    assert found.valid is not None
    assert found.valid.value == 0.75
    assert (found.tasks, found.cells, found.solved, found.kernels, found.gains) == (2, 4, 2, 6, 0)
    assert (found.calls, found.tokens, found.cost_usd, found.minutes) == (16, 1600, None, 16.0)
    assert dict(found.pass_at) == {1: 0.0, 2: 0.0, 4: 0.75}
    assert dict(found.compiled_at) == {1: 0.0, 2: 0.75, 4: 0.75}
    assert found.sol_score == pytest.approx(sum(1 / (1 + (2 / s - 0.5) / 1.5) if s < 4 else 1 for s in (2, 8, 1)) / 3)


def test_every_baseline_gives_a_curve_of_its_own() -> None:
    results = suite({("x", "a"): [run(3.0, 2.0, 1.5)], ("y", "a"): [run(0.9, 0.5, 0.3)], ("z", "a"): [run(None)]})
    found = {against: curves.fast_curve(results, "a", against) for against in Against}
    at_one = {against: curve.at(1.0) for against, curve in found.items() if curve}
    assert at_one == pytest.approx(
        {Against.EAGER: 1 / 3, Against.OTHER: 2 / 3, Against.BETTER: 1 / 3, Against.FIRST: 2 / 3, Against.ARM: 0.0}
    )
    eager = found[Against.EAGER]
    assert eager is not None
    assert [one for step in eager.steps for one in step] == pytest.approx([0.9, 2 / 3, 3.0, 1 / 3])
    assert [eager.at(bar) for bar in (0.0, 0.9, 2.9, 3.0)] == pytest.approx([2 / 3, 1 / 3, 1 / 3, 0.0])


@given(st.lists(st.none() | st.floats(0.1, 9.0), min_size=1, max_size=9))
def test_fast_p_falls_from_the_valid_rate_to_nothing(speedups: list[float | None]) -> None:
    results = suite({(f"t{n}", "a"): [run(one)] for n, one in enumerate(speedups)})
    curve, found = curves.fast_curve(results, "a", Against.EAGER), summary.figures(results, "a")
    assert curve is not None
    assert found.valid is not None
    bars = [0.0, *(one for one in speedups if one), 10.0]
    shares = [sum(one is not None and one > bar for one in speedups) / len(speedups) for bar in bars]
    assert [curve.at(bar) for bar in bars] == pytest.approx(shares)
    assert curve.at(0.0) == pytest.approx(found.valid.value)


def test_arms_are_compared_task_by_task() -> None:
    cells = {(f"t{n}", "a"): [run(1.0 + n)] for n in range(7)} | {(f"t{n}", "b"): [run(2.0 + 2 * n)] for n in range(6)}
    cells |= {("t6", "b"): [run(None)], ("t7", "a"): [run(None)], ("t7", "b"): [run(1.0)], ("t8", "a"): [run(1.0)]}
    found = summary.paired(suite(cells), "b", "a")
    assert found.ratio == statistics.Estimate(pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0), 6)  # type: ignore[arg-type]
    assert (found.tasks, found.faster, found.slower, found.level, found.only_arm, found.only_baseline) == (
        8,
        7,
        1,
        0,
        1,
        1,
    )
    assert found.chance == pytest.approx(2 * (1 + 8) / 2**8)


def test_figures_of_different_dtypes_or_passes_are_left_out_of_comparisons_and_told() -> None:
    cells = {(task, arm): [run(1.0 if arm == "a" else 2.0)] for task in "xyz" for arm in "ab"}
    cells["x", "b"] = [run(9.0, measured="bf16")]
    results = suite(cells)
    found = summary.paired(results, "b", "a")
    assert (found.tasks, found.faster, found.unlike) == (2, 2, ("x",))
    assert dict(found.ratios) == {"y": 2.0, "z": 2.0}
    assert list(summary.by_task(results.of("b"), summary.over(results, Against.ARM))) == ["y", "z"]
    told = tables.headline(results)
    assert "Measured in several classes: bf16; fp32. Speed-ups of different ones do not compare." in told
    assert told[-1].endswith("Left out, because the arms have measured them in different classes: x.")


def test_a_suite_is_told_over_the_best_alternative_too_which_each_run_names() -> None:
    graph = replace(run(3.0, 2.0), second_name="CUDA graph")
    results = suite({("x", "a"): [graph], ("y", "a"): [run(0.75, 0.5)], ("z", "a"): [run(9.0)]})
    (sentence,) = tables.headline(results)
    assert "; 1.06× over the best alternative, of tasks where one was timed; " in sentence  # of x and y: none was in z
    cells = tables.cells_table(results)
    column = [heading.label for heading in cells.columns].index("Over the best alternative")
    assert [row[column] for row in cells.rows] == ["1.50× over CUDA graph", "0.75× over eager PyTorch", "–"]
    fast = tables.fast_table(results, (1.0,), Against.BETTER)
    assert fast.about.endswith(
        "than p times as fast as the best alternative. 1 run without such a baseline not counted."
    )
    (alone,) = tables.headline(suite({("x", "a"): [run(2.0)]}))
    assert "alternative" not in alone


@given(st.lists(st.tuples(st.floats(0.1, 9.0), st.floats(0.1, 9.0)), min_size=1, max_size=9))
def test_a_comparison_turned_round_says_the_opposite(speedups: list[tuple[float, float]]) -> None:
    cells = {(f"t{n}", arm): [run(one)] for n, pair in enumerate(speedups) for arm, one in zip("ab", pair, strict=True)}
    results = suite(cells)
    there, back = summary.paired(results, "b", "a"), summary.paired(results, "a", "b")
    assert (there.faster, there.slower, there.level) == (back.slower, back.faster, back.level)
    assert there.chance == back.chance
    assert there.ratio is not None
    assert back.ratio is not None
    if len(speedups) % 2:  # the median of an even number is the mean of two
        assert there.ratio.value == pytest.approx(1 / back.ratio.value)


def test_a_curve_counts_pytorch_until_a_kernel_is_faster_and_has_a_band_over_repeats() -> None:
    results = suite({("x", "a"): [run(4.0, first=0.5), run(1.0)], ("y", "a"): [run(None), run(None)]})
    found = {point.spent: point for point in curves.curve(results, "a")}
    assert list(found) == [0, 1, 2, 3, 4]
    assert [found[calls].high for calls in (0, 2, 4)] == pytest.approx([1.0, 1.0, 2.0])
    assert (found[4].low, found[4].mean) == pytest.approx((1.0, math.sqrt(2)))


def test_a_curve_is_drawn_over_whatever_was_spent_and_known() -> None:
    results = suite({("x", "a"): [run(4.0, first=2.0)]})
    ends = {axis: [(p.spent, p.mean) for p in curves.curve(results, "a", axis=axis)] for axis in Spending}
    assert [value for point in ends[Spending.STEPS] for value in point] == pytest.approx([0, 1.0, 1, 2.0, 2, 4.0])
    assert ends[Spending.MINUTES][-1] == pytest.approx((4.0, 4.0))
    assert ends[Spending.TOKENS][-1] == pytest.approx((0.4, 4.0))
    assert ends[Spending.MONEY] == []


def test_cells_that_have_not_ended_are_left_out_unless_asked_for() -> None:
    results = suite({("x", "a"): [run(2.0)], ("y", "a"): [run(4.0)]})
    cell = Cell("y", "a", 1)
    results.suite.cells[cell] = CellStanding(cell, "y-a-1", CellState.RUNNING)
    runs = {"x-a-1": run(2.0), "y-a-1": run(4.0)}
    whole, partial = (summary.gather(results.suite, runs, is_partial) for is_partial in (False, True))
    means = [found.mean.value for one in (whole, partial) if (found := summary.figures(one, "a")).mean]
    assert means == pytest.approx([2.0, math.sqrt(8)])
    uneven = suite({("x", "a"): [run(2.0), run(2.0)], ("y", "a"): [run(4.0)]})
    planned = summary.gather(uneven.suite, {"x-a-1": run(2.0), "x-a-2": run(2.0), "y-a-1": run(4.0)}, True)
    assert len(planned.counted) == 3
    nothing = summary.gather(Suite(results.suite.defined), {})
    empty = summary.figures(nothing, "a")
    assert (empty.mean, empty.valid, empty.pass_at, empty.limit_share) == (None, None, (), None)
    assert curves.curve(nothing, "a") == []
    assert curves.fast_curve(nothing, "a", Against.EAGER) is None


def test_a_median_until_something_happens_counts_those_that_never_came_there() -> None:
    """The remission times of 6-MP in Freireich et al. (1963), which textbooks estimate: the median is 23 weeks."""
    happened = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    left = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = statistics.median_until([*((week, True) for week in happened), *((week, False) for week in left)])
    assert found is not None
    assert (found.value, found.low, found.high, found.count) == (23, 13, None, 21)


def test_without_censoring_it_is_the_median_and_of_too_few_there_is_none() -> None:
    whole = statistics.median_until([(n, True) for n in range(1, 12)])
    assert whole is not None
    assert whole.value == 6
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low < 6 < whole.high
    assert statistics.median_until([(1, True), (2, False), (3, False)]) is None
    assert statistics.median_until([]) is None
    only = statistics.median_until([(5, True)])
    assert only is not None
    assert only.value == 5


def test_as_used_and_fast_are_over_the_best_alternative_where_one_was_timed() -> None:
    """3x over eager is 1.5x over a compiler at 2x; 0.9x is 0.9x over eager, which is faster than a compiler at 0.5x."""
    tasks = {("x", "a"): [run(3.0, 2.0)], ("y", "a"): [run(0.9, 0.5)], ("z", "a"): [run(1.4, 1.6)]}
    found = summary.figures(suite(tasks), "a")
    assert found.over_best is not None
    assert found.over_best.value == pytest.approx((1.5 * 0.9 * 1.4 / 1.6) ** (1 / 3))
    assert found.used is not None
    assert found.used.value == pytest.approx(1.5 ** (1 / 3))
    assert found.fast_1 is not None
    assert found.fast_1.value == pytest.approx(2 / 3)
    assert found.fast_1_best is not None
    assert found.fast_1_best.value == pytest.approx(1 / 3)
    unmeasured = summary.figures(suite({("x", "a"): [run(3.0)]}), "a")
    assert (unmeasured.over_best, unmeasured.used, unmeasured.fast_1_best) == (None, None, None)
    mixed = summary.figures(suite(tasks | {("u", "a"): [run(3.0)], ("v", "a"): [run(None)]}), "a")
    assert mixed.over_best == found.over_best
    assert mixed.used is not None
    assert mixed.used.value == pytest.approx(1.5 ** (1 / 4)), "of u no alternative was timed, v has no kernel"
    assert summary.figures(suite({("v", "a"): [run(None)]}), "a").used == statistics.mean_speedup([1.0])


def test_what_it_takes_to_come_to_a_share_of_the_limit_counts_runs_that_never_came_there() -> None:
    """With a limit of 0.5 ms a kernel of 1 / 1.5 ms is at 75 %, reached at call 2; one of 1 ms at 50 %."""
    results = suite({("x", "a"): [run(1.5)], ("y", "a"): [run(1.0)], ("z", "a"): [run(None)]})
    half, three_quarters, most = reaching(results, "a")
    assert (half.runs, half.reached, three_quarters.reached, most.reached) == (3, 2, 1, 0)
    calls = dict(half.medians)[Spending.CALLS]
    assert calls is not None
    assert (calls.value, calls.count) == (2, 3)
    assert dict(three_quarters.medians)[Spending.CALLS] is None, "one of three came there"
    assert dict(half.medians)[Spending.MONEY] is None, "nobody knows what it cost"
    device = dict(half.medians)[Spending.DEVICE_MINUTES]
    assert device is not None
    assert device.value == 1.0


def test_what_fewer_than_half_reached_has_no_median_and_what_was_not_recorded_is_not_zero() -> None:
    """The two that never came there held no device, so that of the device's time alone a median would be known."""
    paid = suite({("x", "a"): [run(1.5)], ("y", "a"): [run(1.0)], ("z", "a"): [run(None)], ("w", "a"): [run(None)]})
    half, fewer, _ = reaching(paid, "a")
    assert (half.is_by_half, half.reached, fewer.is_by_half, fewer.reached) == (True, 2, False, 1)
    assert [median for _, median in fewer.medians] == [None] * 5
    rows = tables.reaching_table(paid).rows
    assert "no hardware limit" not in tables.reaching_table(paid).about
    part_known = suite({("x", "a"): [run(1.5)], ("y", "a"): [replace(run(1.0), limit_ms=None)]})
    assert tables.reaching_table(part_known).about.endswith("Not counted, since no hardware limit is known: y.")
    assert rows[0][2:5] == ("50 %", "2 of 4", "2 (2 to more)")
    assert rows[1][2:] == ("75 %", "1 of 4", *["not reached"] * 5)
    free = tuple(replace(kernel, tokens=0, cost_usd=0.0) for kernel in run(1.5).timed)
    unrecorded = replace(run(1.5), model="manual", tokens=0, cost_usd=0.0, timed=free)
    unpaid = suite({("x", "a"): [unrecorded]})
    assert tables.reaching_table(unpaid).rows[0][4:7] == ("2 (2 to 2)", "–", "–")
    assert curves.curve(unpaid, "a", axis=Spending.TOKENS) == []
