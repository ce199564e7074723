"""Reports: whole, escaped, asking for nothing, and honest about what was left out."""

from __future__ import annotations

import html
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from engine import examples
from pages import report
from pages.parts import index, wording
from pages.parts.report import report_run
from pages.parts.report.report_html import DIFF_LINES, ENVIRONMENT, Curve, Level, Series, Spot, escape, render
from pages.parts.report.report_run import run_report
from pages.parts.run import key_figures
from pages.parts.status import outcome
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.index.queries.suites import run_results
from storage.results.evaluation_results import CheckResult, TimingResult
from storage.results.hardware_limit import CalledOperator, HardwareLimit
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.folder import find_run
from tests.pages.conftest import Open, everything, words
from tests.samples import write_run
from tests.storage.growth import created, grow

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


class Tags(HTMLParser):
    """Every element with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def tags_of(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(text)
    return parser.found


def hostile_run(home: Path) -> str:
    """A run whose summaries, messages and sources try to be more than text."""
    folder = write_run(home / "runs", "hostile")
    plain = folder.journal_file.read_text()
    said = HOSTILE.replace('"', '\\"')
    folder.journal_file.write_text(re.sub(r'"summary":"', f'"summary":"{said}', plain))
    for blob in folder.blobs.iterdir():
        blob.write_text(f"# {HOSTILE}\n{blob.read_text()}")
    return report.report_of([find_run("hostile")])


def test_nothing_in_a_kernel_or_summary_can_act_and_nothing_is_fetched(home: Path) -> None:
    text = hostile_run(home)
    tags = tags_of(text)
    assert "alert(1)" in text
    assert not {"script", "img", "iframe", "link", "object", "form"} & {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on") or name == "src"]
    links = [attributes["href"] or "" for _, attributes in tags if "href" in attributes]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\(|@import|https?://", text.replace("http-equiv", ""))
    policy = next(a for tag, a in tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_a_report_tells_every_depth_with_its_change_its_errors_and_the_cure(home: Path) -> None:
    write_run(home / "runs", "whole")
    text = report.report_of([find_run("whole")])
    for depth in range(8):
        assert f'id="depth-{depth}"' in text
    for told in (
        "The best kernel", "All checks", "Difference to kernel", "Diagnosis", "Patched into kernel",
        "hint try 128-bit loads", "Profile of kernel", "Limits at the start", "How to read this",
        "No commands were given",
    ):  # fmt: skip
        assert (told in text) is (told != "No commands were given"), told
    assert "The file itself has every step with its change" in " ".join(text.split())
    linked = {a["href"] for tag, a in tags_of(text) if tag == "a"}
    assert {f"#depth-{depth}" for depth in range(5)} <= {str(link) for link in linked}
    assert len(text) < 400_000


def test_a_report_lists_what_the_tuner_tried_for_a_depth(home: Path) -> None:
    write_run(home / "runs", "swept", depths=3, knowledge="on")
    text = report.report_of([find_run("swept")])
    assert "Tuning: 2 variants of kernel" in text
    assert "kTile 128" in text
    assert "none is faster by more than the noise" in text


def test_a_report_has_the_figures_and_the_bars_of_the_page(home: Path) -> None:
    write_run(home / "runs", "whole", knowledge="on")
    text = report.report_of([find_run("whole")])
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        run, allowed = queries.run(db, "whole"), queries.allowance(db, "whole")
        assert run
        assert allowed
        shown, bars = outcome.figures(db, run), outcome.time_bars(db, "whole")
        stages = queries.time_by_stage(db, "whole")
    assert sum(row.seconds for row in stages) == pytest.approx(allowed.spent_s)
    assert {row.stage for row in stages} == set(outcome.STAGE_NAME)
    assert max(bar.share for bar in bars) == 1
    for told in [*(one.value for one in shown), *(bar.text for bar in bars)]:
        assert str(escape(told)) in text


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("16_DenseNet201-20261129-195242-4754", (
            "a slow or busy processor held it up here. Over the lesser time it is 2.47× as fast.",
            "Drawn at its latency: torch.compile. Eager PyTorch took less time beside it",
            "Depth 2 made no kernel: left to go back to kernel 2.",
        )),
        ("40_GRUHidden-20261129-200622-27d9", (
            "The machine was busy while the best kernel was timed",
            "On a quiet machine its figures may be others.",
            "61.1× is above 10×, so the kernel was timed again in fresh processes: 61.1×, then 56.6×.",
            "re-measured: The speed-up is beyond what is usual or possible",
            "2 other kernels are tied with",
            "Its rise at kernel 3 is smaller than what two timings of one kernel can differ by",
        )),
        ("softmax-20261125-072455-5580", (
            "Kernel 8 is tied with",
            "The model saw no profile at depth 5: kernel 6 was not profiled.",
        )),
    ],
)  # fmt: skip
def test_a_report_qualifies_its_headline_and_its_curve_as_the_page_of_the_run_does(
    home: Path, open_page: Open, name: str, sentences: tuple[str, ...]
) -> None:
    examples.open_examples([name])
    app = open_page("run", run=name)
    assert not app.exception
    on_page = words(app).replace("\\", "") + "".join(link.proto.help for link in app.get("page_link"))
    text = html.unescape(run_report(index.current(), name))
    for sentence in sentences:
        assert sentence in text, sentence
        assert sentence in on_page, sentence
    opening = text[text.index("<h1>") : text.index("<h2>")]
    assert sentences[0] in opening, "beside the headline"
    assert wording.task(name.partition("-")[0]) in opening.partition("<dt>Task</dt><dd>")[2].partition(",")[0]


@pytest.mark.parametrize("ending", ["new", "running", "failed", "waiting"])
def test_a_run_without_an_end_says_so(home: Path, ending: str) -> None:
    write_run(home / "runs", "half", ending=ending)
    text = report.report_of([find_run("half")])
    assert ("The report shows its state" in text) is (ending != "failed")
    assert ("no correct kernel yet" in text) is (ending == "new")


def test_of_too_many_depths_the_telling_ones_are_kept_and_the_rest_is_counted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_run, "DEPTHS", 10)
    write_run(home / "runs", "long", depths=16)
    text = report.report_of([find_run("long")])
    assert "of 16 depths" in text
    assert f"The file itself has {report_run.DEPTHS} of the 16 depths with its change" in " ".join(text.split())
    targets = {f"#{attributes['id']}" for _, attributes in tags_of(text) if "id" in attributes}
    assert {attributes["href"] for tag, attributes in tags_of(text) if tag == "a"} <= targets
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        depths = queries.depths(db, "long")
    kept = report_run.chosen([replace(d, is_best=True) for d in depths])
    assert (len(kept), kept[0].depth, kept[-1].depth) == (report_run.DEPTHS, 0, 15)


def test_the_report_draws_the_same_limit_as_the_page_and_names_the_kernels_tied_with_the_best(home: Path) -> None:
    write_run(home / "runs", "r1", depths=6)
    with report.temporary_index([find_run("r1")]) as db:
        limit, run = queries.limit_speedup(db, "r1"), queries.run(db, "r1")
        text, tied = run_report(db, "r1"), [a.number for a in queries.attempts(db, "r1") if a.is_tied]
    assert run is not None
    assert limit is not None
    named = f"hardware limit {wording.speedup(limit)}"
    assert text.rindex(f'class="small name">{named}') > text.rindex('<path class="best"'), "no curve runs through it"
    assert all(f"kernel {number}" in text for number in tied)
    assert run.tied_kernels == len(tied)


def test_speedup_latencies_and_share_of_the_limit_follow_from_each_other_though_eager_was_timed_anew(
    home: Path,
) -> None:
    limit = HardwareLimit("cpu", 40.0, 100.0, 150_000_000, 0)  # 3.75 ms
    first = TimingResult((9.4,) * 3, (11.3,) * 3)
    # Eager has become slower, and its median over the kernel's is not the median of the pairs: 13.9 / 6.08 is not 2.2.
    second = TimingResult((6.0, 6.08, 6.5), (13.2, 14.3, 13.9))
    news: list[ev.Event] = [ev.LimitMeasured(limit)]
    for step, (name, result) in enumerate((("c001", first), ("c002", second)), start=1):
        checked = ev.Checked(step, name, CheckResult(Verdict.PASSED, 1.0))
        news += [created(step, name), checked, ev.Timed(step, name, result)]
    with open_database(index_file(home)) as db:
        grow(db, home / "runs", *news)
        run, line = queries.run(db, "sample"), queries.limit_speedup(db, "sample")
        assert run is not None
        assert line is not None
        shown = {figure.label: figure.value for figure in outcome.figures(db, run)}
        text = run_report(db, "sample")
    assert shown["Over eager PyTorch"] == "2.20×"
    assert shown["Latency"] == "13.4 ms → 6.08 ms"
    assert shown["Of the hardware limit"] == "62 %"
    assert line == pytest.approx(2.2 * 6.08 / 3.75)
    assert 2.2 / line == pytest.approx(3.75 / 6.08)
    assert "hardware limit 3.57× (timed with kernel 2)" in text
    assert "13.4 ms → 6.08 ms" in text
    assert "13.9 ms" not in text


@pytest.mark.parametrize(
    ("latency_ms", "share", "tile", "line"),
    [(1.9, "not known", "for this task", None), (3.7, "100 %", "no headroom", pytest.approx(2.0))],
)
def test_a_kernel_that_took_the_limits_place_has_no_share_of_it_and_one_that_reached_it_within_noise_has(
    home: Path, open_page: Open, latency_ms: float, share: str, tile: str, line: float | None
) -> None:
    limit = HardwareLimit("cpu", 40.0, 100.0, 150_000_000, 0)  # 3.75 ms
    raised = replace(limit.raised_to(latency_ms), measured_ms=None)  # as journals of before tell it
    timing = TimingResult((latency_ms,) * 3, (2 * latency_ms,) * 3)
    checked = ev.Checked(1, "c001", CheckResult(Verdict.PASSED, 1.0))
    with open_database(index_file(home)) as db:
        grow(db, home / "runs", ev.LimitMeasured(limit), created(1, "c001"), checked, ev.Timed(1, "c001", timing))
        grow(db, home / "runs", ev.LimitMeasured(raised))
        run, known = queries.run(db, "sample"), queries.limit(db, "sample")
        assert run is not None
        assert known is not None
        assert known.measured_ms == pytest.approx(3.75)
        figure = next(one for one in outcome.figures(db, run) if one.label == "Of the hardware limit")
        assert figure.value == share
        assert queries.limit_speedup(db, "sample") == line
        assert ("less than the measured limit of 3.75 ms" in figure.about) == (line is None)
        assert ('class="small name">hardware limit' in run_report(db, "sample")) == (line is not None)
        suite = run_results(db, ["sample"])["sample"]
        assert (suite.limit_ms is None) == (line is None)
    app = open_page("run", run="sample")
    assert not app.exception
    shown = key_figures.headroom(run)
    assert (shown["value"], shown["note"]) == (share, tile)


def test_memory_alone_is_no_limit_of_a_task_whose_products_were_not_counted(home: Path, open_page: Open) -> None:
    bytes_alone = HardwareLimit("NVIDIA H200", 7919.8, 286867.0, 11_825_152, 0)  # 1.5 us
    limit = replace(bytes_alone, operators=(CalledOperator("gru", 1, -1),))
    timing = TimingResult((1.07,) * 3, (60.0,) * 3)
    checked = ev.Checked(1, "c001", CheckResult(Verdict.PASSED, 1.0))
    with open_database(index_file(home)) as db:
        grow(db, home / "runs", ev.LimitMeasured(limit), created(1, "c001"), checked, ev.Timed(1, "c001", timing))
        run = queries.run(db, "sample")
        assert run is not None
        figure = next(one for one in outcome.figures(db, run) if one.label == "Of the hardware limit")
        assert queries.limit_speedup(db, "sample") is None
        assert run_results(db, ["sample"])["sample"].limit_ms is None
        told = run_report(db, "sample")
    assert (figure.value, figure.note) == ("not known", "memory: 0.14 %; operations uncounted")
    assert "it multiplies matrices, and its operations are not counted" in figure.about
    assert figure.note in told
    assert 'class="small name">hardware limit' not in told
    open_page("run", run="sample")
    shown = key_figures.headroom(run)
    assert (shown["value"], shown["note"]) == (figure.value, figure.note)
    kernel = everything(open_page("candidate", run="sample", candidate="c001"))
    assert figure.note in kernel
    assert "headroom" not in shown["note"] + kernel
    assert bytes_alone.is_known, "an activation's operations take less than its bytes"
    assert replace(limit, min_flop=1).is_known


def test_a_limit_says_when_it_was_measured_and_what_is_uncertain_about_it(home: Path, open_page: Open) -> None:
    quiet = HardwareLimit("cpu", 40.0, 100.0, 150_000_000, 0, others_share=0.02)  # 3.75 ms
    busy = replace(quiet, bandwidth_gb_s=20.0, others_share=0.62)
    with open_database(index_file(home)) as db:
        grow(db, home / "runs", ev.LimitMeasured(quiet), run_id="first")
        when = wording.moment(queries.limit_measured_at(db, "first"))
        how = f"By the highest rates measured on its machine until then, {when}."
        assert outcome.limit_measured(db, "first") == f"{how} The machine was quiet."
        grow(db, home / "runs", ev.LimitMeasured(busy), run_id="second")
        first, second = (outcome.limit_measured(db, name) for name in ("first", "second"))
        assert "other programs used 62 % of its processors just before. The true limit may be shorter." in second
        assert "from 3.75 ms to 7.50 ms, this one 7.50 ms" in second
        assert "from 3.75 ms to 7.50 ms, this one 3.75 ms" in first
        grow(db, home / "runs", ev.LimitMeasured(busy.raised_to(3.8)), run_id="second")
        assert outcome.limit_measured(db, "second").startswith("That kernel was timed ")
        assert outcome.limit_doubt(db, "first") == "", "a kernel's own latency is no limit"
        grow(db, home / "runs", ev.LimitMeasured(replace(busy, bandwidth_gb_s=39.0).raised_to(3.8)), run_id="second")
        assert outcome.limit_measured(db, "second").startswith("A kernel was faster than what had been measured")
        assert outcome.limit_doubt(db, "first") == "", "two percent apart are one limit"
        grow(db, home / "runs", ev.LimitMeasured(replace(busy, others_share=None)), run_id="second")
        assert "quiet" not in outcome.limit_measured(db, "second"), "journals of before do not tell"
    assert "Runs of this task on cpu have hardware limits from" in words(open_page("run", run="first"))


def test_long_differences_are_cut_and_say_so() -> None:
    new = "\n".join(f"line {number}" for number in range(DIFF_LINES + 200))
    difference = vars(ENVIRONMENT.get_template("elements.html").module)["difference"]
    assert "202 more lines are not shown" in difference("", new)
    assert "identical" in difference(new, new)


def test_elements_escape_what_is_put_into_them() -> None:
    made = ENVIRONMENT.from_string('<p title="{{ a }}">{{ b }}</p>').render(a='"><script>', b="<b>")
    assert made == '<p title="&quot;&gt;&lt;script&gt;">&lt;b&gt;</p>'
    assert escape(Markup(made)) == made
    assert escape("a\x00b\ud800") == "a\ufffdb\ufffd"


def test_no_template_lets_a_value_in_as_it_is_or_outside_quotation_marks() -> None:
    """`style` alone is HTML already: a file of ours."""
    folder = Path(str(report_run.__file__)).parent
    for path in (folder / "templates").iterdir():
        text = path.read_text()
        assert not re.search(r"\|\s*safe\b|autoescape|Markup|=\s*\{\{|<script|\son\w+=", text), path.name
    code = "\n".join(path.read_text() for path in folder.glob("*.py"))
    assert set(re.findall(r"Markup\((.{9})", code)) == {"html.esca", '"\\n".join', "client.re"}


def test_a_template_that_asks_for_what_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="verdict"):
        render("comparison.html", "a title")


def test_the_shell_writes_a_report_or_a_comparison_without_a_server(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("one", 0), ("two", 3)):
        write_run(home / "runs", name, seed=seed)
    before = {path.name for path in home.iterdir()}
    out = tmp_path / "run.html"
    assert report.main(["one", "-o", str(out)]) == 0
    assert "over eager PyTorch, " in out.read_text()
    assert report.main(["one", "two", "-o", str(out)]) == 0
    text = out.read_text()
    assert "2 runs compared: Square matmul" in text
    assert all(f"<h2>By {axis}</h2>" in text for axis in ("step", "calls", "time", "tokens", "money"))
    assert report.main(["absent"]) == 2
    assert "no run 'absent'" in capsys.readouterr().err
    assert {path.name for path in home.iterdir()} - before == {"run.html"}


@pytest.mark.parametrize("values", [(1.0, 0.99), (0.99, 1.0), (1.0, 0.99, 0.97), (1.0, 1.5)])
def test_no_level_strikes_through_the_name_of_one(values: tuple[float, ...]) -> None:
    spots = [Spot(0, 0.03, "first"), Spot(1, 2.2, "second")]
    curve = Curve("c", "depth", [Series("s", "green", "", spots)], [Level(v, f"{v}×") for v in values])
    names = curve.level_names()
    assert {name for _, name in names} == {f"{v}×" for v in values}
    lines = [curve.y(value) for value in values]
    for foot, _ in names:
        assert not any(foot - 9 < line < foot + 2 for line in lines)
    feet = sorted(foot for foot, _ in names)
    assert all(lower - upper >= 14 for upper, lower in itertools.pairwise(feet))
