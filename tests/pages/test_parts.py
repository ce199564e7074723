"""The pure parts of pages: wording, the curve, diffs, the reply's tail, and what a page must never import."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.parts import index, wording
from pages.parts.api import routes
from pages.parts.run import curve_chart, curve_marks
from pages.parts.run.curve_marks import LABEL_WIDTH, TEXT_PX, Label, Place, Scale, places
from pages.parts.status import alternatives
from pages.parts.widgets import code, diff
from storage.index import queries
from storage.index.queries import BaselineRow, PointRow, SteeringMark
from storage.results.evaluation_results import percent_wrong
from storage.results.relative import Measured, Relative
from storage.run.settings import Origin
from storage.run.steering.verbs import CommandKind
from tests import samples
from tests.pages.conftest import ROOT


@pytest.mark.parametrize(
    ("value", "noise", "text"),
    [
        (None, None, "–"),
        (3.4149, None, "3.41×"),
        (3.4149, 0.04, "3.41×"),
        (3.4149, 0.2, "3.4×"),
        (4.68, 0.24, "4.7×"),
        (46.8, 0.2, "47×"),
        (0.6, 0.002, "0.60×"),
        (250.4, None, "250×"),
    ],
)
def test_a_speedup_has_no_more_digits_than_were_measured(value: float | None, noise: float | None, text: str) -> None:
    assert wording.speedup(value, noise) == text


@pytest.mark.parametrize(
    ("ms", "text"), [(0.0123, "12.3 µs"), (0.8292, "0.829 ms"), (1.777, "1.78 ms"), (1234.5, "1.23 s"), (None, "–")]
)
def test_latency_comes_in_the_unit_that_suits_it(ms: float | None, text: str) -> None:
    assert wording.latency(ms) == text


@pytest.mark.parametrize(
    ("value", "unit", "is_share", "text"),
    [
        (2.435e10, "FLOP/s", False, "24.4 GFLOP/s"), (0.08826, "s", False, "88.3 ms"), (0.046, "1", True, "4.60 %"),
        (1281.0, "1", False, "1,281"), (0.0008, "1", True, "0.08 %"), (0.598, "1", True, "59.8 %"),
        (1.0, "1", True, "100 %"), (2e-5, "1", True, "under 0.01 %"), (0.0, "s", False, "0 s"),
        (60.0, "%", False, "60 %"),
    ],
)  # fmt: skip
def test_a_profilers_value_reads_like_a_quantity(value: float, unit: str, is_share: bool, text: str) -> None:
    assert wording.quantity(value, unit, is_share) == text


def test_a_short_span_is_no_tiny_part_of_a_second_and_digits_are_rounded_before_they_are_counted() -> None:
    assert [wording.seconds(value) for value in (0.0, 0.0006, 0.02, 0.2, 75.0)] == [
        "0 s", "600 µs", "20 ms", "0.20 s", "1 min 15 s",
    ]  # fmt: skip
    assert [wording.significant(value, 2) for value in (9.96, 9.94, 99.6)] == ["10", "9.9", "100"]


def test_an_unknown_cost_is_not_zero() -> None:
    assert wording.cost(None) == "unknown"
    assert (wording.cost(0.0), wording.cost(0.0, "recorded"), wording.paid(0.0)) == (
        "$0.00",
        "nothing paid",
        "nothing paid",
    )
    assert wording.cost(0.0, "manual") == wording.tokens(0, "manual") == "not recorded"
    assert wording.in_tokens(0, "manual") == "tokens not recorded"


def test_nothing_judged_is_not_zero_percent() -> None:
    assert wording.share(0, 0) == "–"
    assert wording.share(7, 9) == "7 of 9 (78 %)"
    shares = [(1, 3), (0, 3), (3, 3), (1, 10**6), (10**6 - 1, 10**6), (9995, 10_000)]
    assert [percent_wrong(*one) for one in shares] == ["33.33", "0.00", "100.00", "under 0.01", "over 99.99", "99.95"]


@pytest.mark.parametrize(
    ("low", "high", "tone"),
    [(1.01, 1.2, "green"), (0.94, 1.46, "strong"), (0.79, 0.92, "orange"), (None, None, "strong")],
)
def test_a_speedup_has_a_colour_only_beyond_the_noise(low: float | None, high: float | None, tone: str) -> None:
    assert wording.gain_tone(low, high) == tone


def test_moments_carry_their_zone() -> None:
    assert len(wording.moment(1.75e9).split()) == 3


def test_markdown_in_a_message_does_not_act() -> None:
    assert wording.plain("**a** [x](y) $z$\nb") == r"\*\*a\*\* \[x\]\(y\) \$z\$ b"


def test_source_lines_keep_their_number_and_their_text() -> None:
    text = '\n\nimport torch\nsrc = r"""\n#include <x>\nvoid f() { return; }\n"""\n\n'
    lines = code.lines(text)
    assert len(lines) == len(text.split("\n"))
    assert "\n".join("".join(piece for _, piece in line) for line in lines) == text


def test_nothing_in_a_kernel_acts_as_markup() -> None:
    evil = 'x = "</td><script>alert(1)</script>"\n<img src=x onerror=alert(1)>'
    assert "<script" not in str(diff.rows("a = 1", evil))
    assert "<img" not in str(diff.rows(evil, "a = 1"))


def test_a_diff_marks_the_changed_words_and_folds_the_rest() -> None:
    old = "\n".join(f"line_{i} = {i}" for i in range(40))
    before, changed, after = diff.rows(old, old.replace("line_20 = 20", "line_20 = 99"))
    assert (before["fold"], changed["fold"], after["fold"]) == (True, False, True)
    assert [row[0] for row in changed["rows"] if "<mark" in row[3] and "<mark" in row[4]] == ["~"]
    assert diff.changed_lines(old, old.replace("line_20 = 20", "line_20 = 99")) == (1, 1)


def test_the_tail_of_a_reply_is_cut_between_characters(tmp_path: Path) -> None:
    stream = tmp_path / "stream"
    whole = "grün ✓".encode()
    stream.write_bytes(whole[:3])
    assert routes.read_piece(stream, 0) == (0, 2, "gr")
    stream.write_bytes(whole)
    assert routes.read_piece(stream, 2) == (2, len(whole), "ün ✓")
    stream.write_bytes(b"new")
    assert routes.read_piece(stream, len(whole)) == (0, 3, "new")
    assert routes.read_piece(tmp_path / "none", 5) == (0, 0, "")


def test_every_kernel_is_on_the_curve_once(home: Path) -> None:
    samples.write_run(home / "runs", "r1", depths=6)
    opened = index.open_index()
    opened.ingest.catch_up()
    run = queries.run(opened.database, "r1")
    assert run is not None
    rows, attempts = curve_chart.gather(run), queries.attempts(opened.database, "r1")
    drawn = curve_chart.curve_figure(rows, is_log=True, revision="r1")
    index.close_index()
    twice = ("best", "tied with the best")
    shown = [name for t in drawn["data"] if t.get("name") not in twice for name in t.get("customdata", [])]
    judged = [a.candidate_id for a in attempts if a.verdict is not None]
    assert sorted(shown) == sorted(judged)
    assert all(math.isfinite(x) for t in drawn["data"] for x in t["x"] if x is not None)


def test_each_trajectory_is_a_line_of_its_own_and_a_run_of_one_line_is_drawn_as_ever(home: Path) -> None:
    samples.write_run(home / "runs", "r1", depths=6)
    opened = index.open_index()
    opened.ingest.catch_up()
    run = queries.run(opened.database, "r1")
    assert run is not None
    rows = curve_chart.gather(run)
    index.close_index()

    def lines(points: Sequence[PointRow]) -> dict[str, list[float | None]]:
        drawn = curve_chart.curve_figure(replace(rows, points=points), is_log=True, revision="r1")["data"]
        return {t["name"]: t["x"] for t in drawn if t.get("name", "").startswith(("made from", "trajectory"))}

    one = lines(rows.points)
    assert list(one) == ["made from"]
    first, *later = [p for p in rows.points if p.is_accepted]
    many = [replace(p, trajectory=1 + n % 2) for n, p in enumerate(later)]
    generated = curve_chart.curve_figure(replace(rows, points=[replace(first, origin=Origin.COMPILED)]), False, "r1")
    assert "generated by torch.compile" in [trace.get("name") for trace in generated["data"]]
    made = lines([first, *many])
    assert list(made) == ["trajectory 1", "trajectory 2"]
    assert sorted(x for xs in made.values() for x in xs if x is not None) == sorted(
        x for x in lines([first, *later])["made from"] if x is not None
    )
    assert len({t["line"]["color"] for t in curve_chart._branches([first, *many]) if t["x"]}) == 2


def test_a_limit_far_above_the_points_is_named_but_not_drawn_to_scale() -> None:
    shapes, notes = curve_marks.reference_lines(80.0, None, [2.0], is_log=True)
    assert len(shapes) == 1
    assert "hardware limit 80.0× ↑" in notes[-1]["text"]


def test_the_limit_is_called_by_its_latency_whatever_eager_took_and_no_flags_line_shows_through_a_name() -> None:
    for value in (3.6, 80.0):
        _, notes = curve_marks.reference_lines(value, None, [2.0], is_log=True, limit_ms=4.08)
        assert notes[-1]["text"].rstrip(" ↑") == "hardware limit 4.08 ms"
        assert all(note["bgcolor"] for note in notes)


def test_no_line_strikes_through_a_name_and_none_runs_into_the_latencies_beside_the_chart() -> None:
    _, notes = curve_marks.reference_lines(80.0, None, [2.0], True, [second(2.9)])
    assert {note["bgcolor"] for note in notes} == {"@background-color"}
    for note in notes:
        assert note["xshift"] == (-6 if note["xanchor"] == "right" else 6)
    beside = [note for note in notes if note["yref"] == "y"]
    assert beside
    assert all(note["yshift"] == (2 if note["yanchor"] == "bottom" else -2) for note in beside)


def test_names_of_lines_at_the_edge_stand_one_above_the_other() -> None:
    _, notes = curve_marks.reference_lines(80.0, 40.0, [2.0], is_log=True)
    assert [note["yshift"] for note in notes[1:]] == [-2, -2 - TEXT_PX]


@pytest.mark.parametrize("at", [0.02, 0.3, 0.45, 0.5, 0.6, 0.8, 0.98])
def test_the_best_kernels_number_is_whole_on_a_phone_and_covers_no_name_at_the_edge(at: float) -> None:
    label = Label(2.0, at)
    begins = at - {"left": 0.0, "center": LABEL_WIDTH / 2, "right": LABEL_WIDTH}[label.anchor]
    assert begins >= 0.0
    assert begins + LABEL_WIDTH <= 1.0
    note = curve_marks.reference_lines(80.0, None, [2.0], True, label=label)[1][-1]
    assert (note["x"], note["xanchor"]) == ((1, "right") if at < 0.5 else (0, "left"))
    name = 0.41  # of a phone's chart: "hardware limit 3.94× ↑"
    assert begins >= name - 1e-9 if note["x"] == 0 else begins + LABEL_WIDTH <= 1 - name + 1e-9


def test_a_speedup_over_a_named_baseline_reads_like_a_sentence() -> None:
    assert wording.over(Relative(1.6629, 0.009), "torch.compile") == "1.66× over torch.compile (1.65 to 1.68×)"
    assert wording.not_measured("torch.compile", "") == "No speed-up over torch.compile: no reason was recorded"


def test_an_interval_that_begins_or_ends_beside_1_says_on_which_side() -> None:
    assert wording.interval(1.0026, 1.14) == "1.003 to 1.14×"
    assert wording.interval(0.9, 0.9977) == "0.90 to 0.998×"
    assert wording.interval(1.0, 1.2) == "1.00 to 1.20×"
    assert wording.measured(1.64, 0.03, 1.56, 1.66) == "1.64× (1.56 to 1.66×)"


def test_a_speedup_whose_interval_is_wider_than_itself_is_told_as_that_interval() -> None:
    assert wording.over(Relative(0.6, 4.6), "torch.compile") == "0.11 to 12.0× over torch.compile"
    assert wording.figure(26.2, 0.55, 17.0, 38.0) == wording.measured(26.2, 0.55, 17.0, 38.0) == "17.0 to 38.0×"
    assert wording.figure(1.64, 0.5, 1.1, 2.7) == "1.6×"
    assert (wording.beside(0.55, 17.0, 38.0), wording.beside(0.03, 1.56, 1.66)) == (wording.TOO_WIDE, "1.56 to 1.66×")
    (card,) = alternatives.figures(second(1.0), Measured(2.2, 1.3, 3.9, 0.8))
    assert (card.value, card.note) == ("1.30 to 3.90×", f"torch.compile, {wording.TOO_WIDE}")
    assert (wording.speedup(0.6, 0.51), wording.speedup(0.6, 0.5)) == ("unknown", "0.60×")
    wide = replace(second(0.97), noise=4.6)
    assert len(curve_marks.reference_lines(None, None, [2.0], True, [wide])[0]) == 1
    assert alternatives.is_eager_best(wide), "as everywhere the medians say which alternative leads"


def second(speedup: float | None, name: str = "torch.compile") -> BaselineRow:
    return BaselineRow(name, speedup, speedup, speedup, 0.01, 1.0, 1.0, "" if speedup else "it crashed")


@pytest.mark.parametrize(
    ("compiled", "values"), [(1.28, [0.6, 1.9]), (1.01, [0.03]), (0.93, [9.0]), (1.0, []), (6.0, [2.5])]
)
def test_the_second_baseline_is_a_line_with_its_name_whatever_the_points(compiled: float, values: list[float]) -> None:
    for is_log in (True, False):
        shapes, notes = curve_marks.reference_lines(None, None, values, is_log, [second(compiled)])
        assert [shape["y0"] for shape in shapes] == [1.0, compiled]
        assert notes[1]["text"] == f"torch.compile {wording.speedup(compiled)}"
        assert len({json.dumps(shape["line"]) for shape in shapes}) == 2


def test_a_second_baseline_without_a_figure_is_no_line_and_its_name_is_no_markup() -> None:
    assert len(curve_marks.reference_lines(None, None, [2.0], True, [second(None)])[0]) == 1
    notes = curve_marks.reference_lines(None, None, [2.0], True, [second(1.2, "<b>x</b>")])[1]
    assert notes[1]["text"] == "&lt;b&gt;x&lt;/b&gt; 1.20×"


@given(st.lists(st.floats(0.5, 4.0), min_size=1, max_size=4), st.floats(0.02, 0.5), st.floats(4.0, 60.0), st.booleans())
def test_no_name_of_a_line_covers_another(lines: list[float], low: float, high: float, is_log: bool) -> None:
    scale = Scale(low, high, 284, is_log)
    feet = [
        (place.is_left, scale.px(value) - (0 if place.is_above else TEXT_PX))
        for value, place in zip(lines, places(lines, scale), strict=True)
    ]
    close = [(a, b) for a, b in itertools.combinations(feet, 2) if a[0] is b[0] and abs(a[1] - b[1]) < TEXT_PX - 1e-6]
    assert close == []


def test_a_name_stands_on_the_side_where_no_other_line_runs_through_it() -> None:
    scale = Scale(0.5, 2.0, 284, is_log=True)
    assert places([1.0, 1.02], scale)[1] == Place(is_left=True, is_above=True)
    assert places([1.0, 0.98], scale)[1] == Place(is_left=True, is_above=False)


def test_a_name_stands_where_it_hides_no_point() -> None:
    scale = Scale(0.5, 2.0, 284, is_log=True)
    assert places([1.0], scale) == [Place(is_left=False, is_above=True)]
    assert places([1.0], scale, right=[1.03, 1.05]) == [Place(is_left=False, is_above=False)]
    assert places([1.0], scale, left=[], right=[0.97, 1.03]) == [Place(is_left=True, is_above=True)]


def test_a_name_stands_where_the_best_kernels_number_does_not_hide_it() -> None:
    scale = Scale(0.5, 2.0, 284, is_log=True)
    value = 1.12  # so far over the kernel at 1× as its number stands
    assert places([value], scale) == [Place(is_left=False, is_above=True)]
    assert places([value], scale, label=Label(1.0, 0.3)) == [Place(is_left=False, is_above=True)]
    assert places([value], scale, label=Label(1.0, 0.95)) == [Place(is_left=True, is_above=True)]


def test_flags_say_their_verbs_where_there_is_room_and_behind_the_pointer_everywhere() -> None:
    found = [SteeringMark(1, 0.0, 7, 3, kind, "", "", "") for kind in (CommandKind.ROLL_BACK, CommandKind.ANSWER)]
    _, (note,) = curve_marks.steering_flags(found)
    assert note["texts"] == ["⚑ roll back, reply by hand", "⚑"]
    assert note["hovertext"] == "roll back, reply by hand"
    assert curve_marks.steering_flags(found, is_by_hand=True)[1][0]["hovertext"] == "roll back"
    assert curve_marks.steering_flags(found, is_handed_in=True)[1][0]["hovertext"] == "roll back, reply handed in"


def test_a_stop_has_a_flag_of_its_own_where_it_came() -> None:
    stop = SteeringMark(9, 0.0, 12, 4, CommandKind.STOP, "", "", "", x=3.1)
    lines, notes = curve_marks.steering_flags([SteeringMark(1, 0.0, 7, 4, CommandKind.HINT, "", "", ""), stop])
    assert [(line["x0"], line["x1"]) for line in lines] == [(4 - 0.72, 4 - 0.72), (3.1, 3.1)]
    assert [note["hovertext"] for note in notes] == ["hint", "stop"]


def test_the_dashboard_imports_neither_torch_nor_a_model_client() -> None:
    look = (
        "import importlib, pkgutil, sys, app, pages.parts; "
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(pages.parts.__path__, 'pages.parts.')]; "
        "print([m for m in ('torch', 'openai') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", look], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
