"""Latencies and speed-ups of kernels that disagree are told why, and only those; the banner names its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import supervisor
from engine.errors import EngineError
from pages.parts import index
from pages.parts.report.report_run import run_report
from pages.parts.run import result_panel
from pages.parts.status import outcome
from pages.parts.timed_anew import Timed, moved, sentence
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.results import relative
from storage.results.evaluation_results import TIMED_AGAIN, CheckResult, TimingResult
from storage.results.relative import Measured, Relative
from storage.results.vocabulary import Verdict
from storage.run import events as ev
from storage.run.settings import RunState
from tests import samples
from tests.engine.packaging import test_packing as packages
from tests.engine.packaging.judged import IN_PYTORCH, judged_run
from tests.pages.conftest import Open, everything, words
from tests.storage.test_queries_predictions import FIRST, made, tell, timed


@dataclass(frozen=True, slots=True)
class Figures(Measured):
    """A kernel as it was timed."""

    latency_ms: float


SAID = "Kernel 1 has a lower latency than kernel 2, but a lower speed-up too: eager PyTorch is timed anew beside each"


def test_only_orders_that_a_reader_can_see_disagree_are_told() -> None:
    first, second = Timed("kernel 1", 2.0, 1.0), Timed("kernel 2", 3.0, 1.2)
    assert sentence([first, second]).startswith(SAID)
    assert sentence([first, Timed("kernel 2", 3.0, 0.9)]) == ""
    assert sentence([first, Timed("kernel 2", 3.0, 1.001)]) == "", "both read 1.00 ms"
    assert sentence([first]) == sentence([]) == ""


def test_eager_is_told_beside_both_where_it_moved_by_more_than_the_noise() -> None:
    first, second = Timed("kernel 6", 0.26, 64.5), Timed("kernel 8", 0.68, 35.3)
    assert moved(second, first, Relative(2.6, 0.15)) == (
        "By latency alone kernel 8 is 1.83× as fast as kernel 6: eager PyTorch is timed anew beside each kernel, and "
        "took 24.0 ms beside kernel 8 and 16.8 ms beside kernel 6, by the pairs' median ratios."
    )
    assert moved(second, first, Relative(2.6, 0.5)) == moved(first, first, Relative(1.0, 0.01)) == ""
    told = relative.gain(Figures(0.68, 0.65, 0.7, 0.1, 35.3), Figures(0.26, 0.25, 0.27, 0.1, 64.5), is_on_gpu=True)
    assert told is not None
    assert told.speedup == pytest.approx(1.83, abs=0.01)
    assert moved(second, first, told) == (
        "Compared by latency: eager PyTorch is timed anew beside each kernel, and took 24.0 ms beside kernel 8 and "
        "16.8 ms beside kernel 6, by the pairs' median ratios."
    ), "the ratio itself stands above"


def test_of_two_kernels_known_as_ranges_alone_the_ratio_has_the_ends_of_both() -> None:
    new, old = Figures(1.9, 0.9, 3.8, 0.8, 20.0), Figures(0.9, 0.5, 2.0, 0.9, 40.0)
    told = relative.gain(new, old, is_on_gpu=False)
    assert told is not None
    noise = 1 + relative.SESSION_NOISE
    assert (told.low, told.high) == pytest.approx((0.9 / 2.0 / noise, 3.8 / 0.5 * noise))


def test_the_table_the_kernel_and_the_banner_say_why_the_best_has_not_the_lowest_latency(
    home: Path, open_page: Open
) -> None:
    slower = TimingResult((2.0,) * 9, (6.0,) * 9)
    second = [
        *made(3, "c002", "c001"), *timed(4, "c002", 3.0)[:1], ev.Checked(4, "c002", CheckResult(Verdict.PASSED, 1.0)),
        ev.Timed(4, "c002", slower),
    ]  # fmt: skip
    third = [*made(5, "c003", "c002", depth=2), *timed(6, "c003", 3.0)[:2]]
    third.append(ev.Timed(6, "c003", TimingResult((2.0,) * 9, (5.98,) * 9)))
    ended = ev.RunEnded(RunState.FINISHED, "all 2 depths are done", "c002", None)
    with open_database(index_file(home)) as db:
        tell(db, home / "runs", *FIRST, *second, *third, ended, run_id="r1")
        tell(db, home / "runs", *FIRST, ended, run_id="r2")
    assert SAID in words(open_page("run", run="r1")).replace("\\", "")
    assert SAID in words(open_page("candidate", run="r1", candidate="c002")).replace("\\", "")
    db = index.current()
    runs = {run.run_id: run for run in queries.overview(db)}
    told = {name: " ".join(one.about for one in outcome.figures(db, run)) for name, run in runs.items()}
    assert "Kernel 1 has a lower latency than the best one" in told["r1"]
    assert "timed anew" not in told["r2"]
    assert result_panel.sentence(runs["r1"]) == (
        "Kernel 2 is 3.00× (3.00 to 3.00×) as fast as eager PyTorch. Kernel 3 is tied with it. Kernel 3 is "
        "1.00× (0.95 to 1.05×) as fast as kernel 2, the best: no measurable difference."
    )
    assert "By latency alone" not in words(open_page("run", run="r2"))


def test_a_best_kernel_that_was_timed_once_more_in_turns_says_so_on_its_runs_page(home: Path, open_page: Open) -> None:
    again = TimingResult((1.0,) * 9, (2.5,) * 9, evidence={TIMED_AGAIN: "kernel 2"})
    ended = ev.RunEnded(RunState.FINISHED, "all 2 depths are done", "c001", None)
    with open_database(index_file(home)) as db:
        tell(db, home / "runs", *FIRST, ev.Timed(3, "c001", again), ended, run_id="r1")
        tell(db, home / "runs", *FIRST, ended, run_id="r2")
    said = "The best kernel and kernel 2 were timed once more before the run ended, one after the other"
    told = [said in words(open_page("run", run=run)).replace("\\", "") for run in ("r1", "r2")]
    assert told == [True, False]
    assert said in run_report(index.current(), "r1")


@pytest.mark.parametrize("is_read_only", [False, True])
def test_a_package_is_offered_with_its_card_or_its_dialog_says_why_there_is_none(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, is_read_only: bool
) -> None:
    samples.write_run(home / "runs", "r1", depths=3)
    if is_read_only:
        monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")

    def refuse(*_: object) -> dict[str, str]:
        raise EngineError("a call changes batch_norm.num_batches_tracked")

    for one, said in ((refuse, "Not packaged: A call changes"), (lambda *_: {"CARD.md": "# fast"}, "Download")):
        monkeypatch.setattr(supervisor, "packaged_kernel", one)
        app = open_page("run", run="r1")
        assert said not in everything(app).replace("Download best kernel", "")
        app.button(key="package").click().run()
        assert said in everything(app).replace("\\", "").replace("Download best kernel", "")
        assert not app.exception


@pytest.mark.parametrize("is_read_only", [False, True])
def test_a_kernel_that_can_be_packaged_in_evaluation_mode_leads_to_a_new_run_in_it(
    home: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch, is_read_only: bool
) -> None:
    task = home / "normalised.py"
    task.write_text(packages.reference("self.norm = nn.BatchNorm1d(3)", "self.norm(x)"))
    run_id = judged_run(home, str(task), IN_PYTORCH).run_id
    before = open_page("new_run", like=run_id)  # as somebody who has looked at the same form before
    assert mode_of(before) == "own"
    if is_read_only:
        monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    app = before.switch_page("run.py")
    app.query_params.clear()
    app.query_params["run"] = run_id
    app.run().button(key="package").click().run()
    assert "package a run in evaluation mode" in everything(app).replace("\\", "")
    assert any(button.key == "package_mended" for button in app.button) is not is_read_only
    if not is_read_only:
        app.button(key="package_mended").click().run()
        assert not app.exception
        assert "put into evaluation mode instead" in words(app)
        assert mode_of(app) == "eval"


def mode_of(app: AppTest) -> str:
    (mode,) = (field for field in app.segmented_control if field.label == "Mode")
    return str(mode.value)
