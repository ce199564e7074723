"""A forked run says where it comes from."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import examples, replaying
from pages.parts import index, wording
from pages.parts.overview import runs_table
from pages.parts.report.report_run import run_report
from pages.parts.status import outcome, provenance
from storage.index import queries
from storage.run import events as ev
from storage.run import labels, liveness
from storage.run.blobs import Blobs
from storage.run.folder import RunFolder
from storage.run.forks import Fork
from storage.run.journal import Journal
from storage.run.settings import Origin, RunState
from tests import samples
from tests.pages.conftest import Open, everything, words


def write_fork(home: Path, run_id: str, of: str) -> None:
    folder = samples.write_run(home / "runs", run_id, depths=2)
    settings = replace(folder.read_settings(), forked_from=Fork(of, "c006", 6, "0" * 64))
    folder.settings_file.unlink()
    folder.write_settings(settings)
    journal = Journal(folder.journal_file)
    journal.append(ev.Imported("c001", f"c006 of run {of}", "passed", 1.0, 2.0))
    journal.close()


def test_a_fork_names_its_kernel_and_run_and_is_not_called_imported(home: Path, open_page: Open) -> None:
    samples.write_run(home / "runs", "first", depths=4)
    write_fork(home, "second", "first")
    app = open_page("run", run="second")
    assert not app.exception
    run = queries.run(index.current(), "second")
    assert run is not None
    assert not run.is_imported
    assert provenance.fork_words(run) == "forked from kernel 6 of first"
    badges = str(runs_table._cells(run, RunState.FINISHED, (), None)["run"])
    assert "forked from kernel 6 of first" in badges
    assert "run?run=first" in badges
    links = [str(link.proto.label) for link in app.get("page_link")]
    assert "forked from kernel 6 of first" in links


def test_a_fork_of_a_run_that_has_gone_has_no_link(home: Path, open_page: Open) -> None:
    write_fork(home, "second", "first")
    assert "forked from kernel 6 of first (run not found)" in words(open_page("run", run="second"))


def test_an_example_made_by_hand_says_that_a_language_model_wrote_it_and_its_replay_is_no_example(
    home: Path, open_page: Open
) -> None:
    original = samples.write_run(home / "runs", "shown", depths=3)
    settings = replace(original.read_settings(), is_example=True, is_demo=False, model="manual")
    original.settings_file.unlink()
    original.write_settings(settings)
    labels.change(original, lambda was: replace(was, name="A good one", note="It climbs."))
    replay = replaying.prepare(replaying.settings_of(original, 1.0), original)
    replay.journal_file.write_bytes(original.journal_file.read_bytes())
    said = words(open_page("run", run="shown"))
    assert f"It climbs\\. Its kernels were written by {wording.BY_PROMPTS}; a person only handed its" in said
    assert f"· {wording.BY_PROMPTS}" in said
    assert wording.model("manual", False) == "manual"
    db = index.current()
    assert (queries.count_examples(db), queries.count_replays(db), queries.count_runs(db)) == (1, 1, 2)
    assert queries.titles(db, ["shown", replay.run_id]) == {"shown": "A good one", replay.run_id: "Replay: A good one"}
    assert "0 runs  :gray-badge[:material/school: 1 example]  :violet-badge[:material/replay: 1 replay]" in words(
        open_page("overview")
    )


def test_an_example_that_went_on_with_replies_handed_in_tells_one_story_on_every_page(
    home: Path, open_page: Open
) -> None:
    """Its first reply was recorded; a language model wrote the others, which were handed in."""
    name = "72_ConvTranspose3d_BatchNorm_AvgPool_AvgPool-20261129-200102-1184"
    examples.open_examples([name])
    app = open_page("run", run=name)
    assert not app.exception
    said, shown = words(app), everything(app)
    assert f"Its kernels were written by {wording.BY_PROMPTS}; a person only handed its replies in" in said
    assert "the run waited for the model's replies" in said
    assert "model, limits, reply handed in" in shown
    for other in ("left its recording", "by hand", "waited for a person"):
        assert other not in said + shown, other
    app.toggle(key="spending_by_role").set_value(True)
    shown = everything(app.run())
    assert f"1 call · {wording.NOTHING_RECORDED} · recorded" in words(app)
    prompts = everything(open_page("candidate", run=name, candidate="c001", tab="Prompts and replies"))
    assert f"· recorded · {wording.NOTHING_RECORDED} ·" in prompts.replace("\\", "")
    overview = everything(open_page("overview"))
    for page in (shown, prompts, overview, everything(open_page("report", run=name))):
        assert "not recorded" in page
        assert "nothing paid" not in page
    db = index.current()
    assert any(bar.label.startswith(outcome.HANDED_IN) for bar in outcome.time_bars(db, name))
    assert {one.model for one in queries.comparable_runs(db)} == {"manual"}
    assert queries.first_model(db, name) == "recorded"


def test_a_replay_of_an_example_is_resumed_as_any_other(home: Path, open_page: Open) -> None:
    original = samples.write_run(home / "runs", "shown", depths=3)
    settings = replace(original.read_settings(), is_example=True)
    original.settings_file.unlink()
    original.write_settings(settings)
    replay = replaying.prepare(replaying.settings_of(original, 1.0), original)
    replay.journal_file.write_bytes(b"".join(original.journal_file.read_bytes().splitlines(keepends=True)[:20]))
    app = open_page("run", run=replay.run_id)
    assert not app.exception
    assert "Resume run" in [one.label for one in app.button]
    shown = everything(app)
    assert 0 <= shown.find("tilewright_seek_bar") < shown.find("tilewright_plot"), "above the curve, where it is seen"
    assert "This is an example" not in words(app)
    assert "Resume run" not in [one.label for one in open_page("run", run="shown").button]


def write_like(
    home: Path, run_id: str, created_at: float, *sources: str, is_over: bool = True, **fields: Any
) -> RunFolder:
    """A run with kernels of these sources."""
    folder = RunFolder(home / "runs" / run_id)
    settings = replace(samples.sample_settings(run_id), created_at=created_at, recording="recordings/swish.jsonl")
    folder.write_settings(replace(settings, **fields))
    journal = Journal(folder.journal_file)
    for number, source in enumerate(sources, 1):
        name, blob = f"c{number:03}", Blobs(folder.blobs).put(source)
        journal.append(ev.CandidateCreated(number, name, None, None, 0, 0, 0, Origin.SYNTHESIS, blob, None, 1, 0, ""))
    if is_over:
        journal.append(ev.RunEnded(RunState.FINISHED, "done", None))
    journal.close()
    return folder


def test_a_run_whose_first_kernels_are_those_of_an_earlier_one_says_so_with_a_link(home: Path, open_page: Open) -> None:
    write_like(home, "first", 1.0, "a", "b", "c")
    write_like(home, "short", 2.0, "a", "x", "c")
    write_like(home, "later", 3.0, "a", "b", "d")
    write_like(home, "whole", 4.0, "a", "b", "d", recording=None)
    write_like(home, "other", 5.0, "a", "b", "d", sizes={"n": 3})
    write_like(home, "alone", 6.0, "y", "b", "c")
    write_like(home, "fork", 7.0, "a", forked_from=Fork("first", "c001", 1, "0" * 64))

    def note(run_id: str) -> str:
        app = open_page("run", run=run_id)
        assert not app.exception
        return next((one.value for one in app.markdown if "content_copy" in one.value), "")

    assert note("later") == (
        ":material/content_copy: Its first 2 kernels are those of [Square matmul](run?run=first): both were written "
        "from the same recording."
    )
    assert "Its first kernel is that of [Square matmul](run?run=first): both were" in note("short")
    assert "Its 3 kernels are those of [Square matmul](run?run=later): the sources are the same." in note("whole")
    lock = liveness.hold(write_like(home, "running", 8.0, "a", "b", is_over=False))
    assert [note(name) for name in ("first", "other", "alone", "fork", "running")] == [""] * 5
    os.close(lock)
    assert "Its 2 kernels are those of" in note("running"), "its engine has gone"


def test_two_examples_that_were_one_run_until_then_say_so(home: Path, open_page: Open) -> None:
    without, with_memory = (f"88_Gemm_GroupNorm_Swish_Multiply_Swish-20261129-195243-{end}" for end in ("cbd4", "dbd4"))
    examples.open_examples([without, with_memory])
    for one, other, name in ((without, with_memory, "with memory"), (with_memory, without, "no memory")):
        said = words(open_page("run", run=one))
        assert "Its 3 kernels are those of [Linear, group norm, Swish, multiply, Swish" in said.replace("\\", "")
        assert f"{name}](run?run={other}), with their timings: until then the two were one run." in said
        told = run_report(index.current(), one)
        assert re.search(f"Its 3 kernels are those of “Linear[^”]*{name}” \\(run {other}\\), with their timings", told)
