"""The film of a first visit, without a browser: what it tells is what the run's journal says."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from engine import supervisor
from pages.parts import index, run_state
from pages.parts.film import run_film, screen
from pages.parts.film.run_film import Row
from pages.parts.status import welcome
from storage import codec
from storage.index import queries
from storage.index.database import index_file, open_database
from storage.index.ingest import Ingest
from storage.run import journal
from storage.run.folder import RunFolder
from storage.run.record import Record
from storage.run.settings import RunState
from tests import samples
from tests.pages.conftest import Open, everything, words

FILES = supervisor.example_files(screen.RUN)


def film_of(files: Mapping[str, bytes]) -> run_film.Film:
    return run_film.of(supervisor.record_of(files), files)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The run as its folder tells it."""
    run = RunFolder(tmp_path_factory.mktemp("runs") / screen.RUN)
    run.path.mkdir()
    for name in ("run.json", "journal.jsonl"):
        (run.path / name).write_bytes(FILES[name])
    return Record.of(run.read_settings(), list(journal.read(run.journal_file)))


def plain(rows: tuple[Row, ...], marks: str) -> list[str]:
    return [html.unescape(re.sub("<[^>]+>", "", line)) for mark, line in rows if mark in marks]


def source(record: Record, candidate_id: str | None) -> list[str]:
    if candidate_id is None:
        return []
    return FILES[f"blobs/{record.candidates[candidate_id].created.source_blob}"].decode().split("\n")


def test_the_film_tells_every_kernel_of_the_run_with_its_own_figures_and_words(record: Record) -> None:
    film = film_of(FILES)
    assert sum(sum(scene.seconds) for scene in film.scenes) == pytest.approx(40)
    kernels = [scene for scene in film.scenes if scene.is_kernel]
    assert len(kernels) == len(record.candidates) == 9
    for scene, kernel in zip(kernels, record.candidates.values(), strict=True):
        assert scene.caption.lower() == kernel.created.summary.rstrip(".").lower()
        figures = kernel.figures
        assert scene.point == (figures and (figures.speedup, figures.low, figures.high))
        before, after = source(record, kernel.created.parent_id), source(record, kernel.candidate_id)
        assert plain(scene.rows, "-") == [line for line in plain(scene.rows, "-") if line in before]
        assert plain(scene.rows, "+ ") == [line for line in plain(scene.rows, "+ ") if line in after]
        assert "+" in [mark for mark, _ in scene.rows]
        assert len(scene.rows) <= run_film.MOST_ROWS
    assert [scene.value for scene in kernels] == [
        "0.84×",
        "1.00×",
        "1.28×",
        "Crashed",
        "0.86×",
        "1.44×",
        "1.49×",
        "1.60×",
        "1.64×",
    ]
    assert len(json.dumps(asdict(film))) < 150_000


def test_a_gain_is_told_with_what_it_is_against_and_only_beyond_the_noise(record: Record) -> None:
    by_name = {scene.name: scene for scene in film_of(FILES).scenes}
    assert (by_name["Kernel 1"].change, by_name["Kernel 1"].tone) == ("correct, but slower than PyTorch", "orange")
    assert (by_name["Kernel 3"].change, by_name["Kernel 3"].tone) == ("+28 % against kernel 2", "green")
    assert (by_name["Kernel 5"].change, by_name["Kernel 5"].tone) == ("−33 % against kernel 3", "orange")
    assert by_name["Kernel 7"].change == "+4 % against kernel 6, within the noise"
    assert by_name["Kernel 4"].change.endswith("the cluster is larger than the device can place")
    assert [stage.is_passed for stage in by_name["Kernel 4"].stages] == [True, False]
    assert by_name["Kernel 5"].actor == "The model reads the error and repairs the kernel"
    assert by_name["PyTorch"].caption == "Softmax of 4096 × 393216 in fp32: PyTorch takes 6.30 ms on an NVIDIA H200"
    assert by_name["Result"].caption == (
        "From 6.30 ms to 3.85 ms: 1.33× over torch.compile, 78 % of what the hardware allows"
    )


def test_the_limit_of_the_film_is_that_of_the_runs_own_page(home: Path) -> None:
    supervisor.open_examples([screen.RUN])
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        limit = queries.limit_speedup(db, screen.RUN)
    assert dict(film_of(FILES).lines)["hardware limit"] == pytest.approx(limit)


def test_the_end_of_the_film_and_the_runs_result_say_which_kernel_is_tied_with_the_best(
    home: Path, open_page: Open
) -> None:
    supervisor.open_examples([screen.RUN])
    said = words(open_page("run", run=screen.RUN)).replace("\\", "")
    assert [a.number for a in index.attempts(screen.RUN) if a.is_tied] == [8]
    assert "Kernel 8 is tied with it." in said
    assert film_of(FILES).scenes[-1].actor.startswith("Kernel 9 is the best of 9, tied with kernel 8; ")


def test_a_run_without_a_best_kernel_makes_no_film() -> None:
    head = FILES["journal.jsonl"].split(b"\n")[:8]
    with pytest.raises(codec.DecodeError, match="no best kernel"):
        film_of({**FILES, "journal.jsonl": b"\n".join(head)})


def test_the_end_of_the_film_tells_how_far_the_demo_is_and_leads_to_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.write_run(home / "runs", "the-demo", depths=2)
    with open_database(index_file(home)) as db:
        Ingest(db, home / "runs").catch_up()
        run = queries.run(db, "the-demo")
    assert run is not None
    ended = screen.second_act(run)
    assert (ended.title, ended.go, ended.leave) == ("Now on your processor", "Open the demo", screen.DEMO)
    assert f"It has made {run.attempts} kernels; the best is " in ended.text
    monkeypatch.setattr(run_state, "of", lambda run: RunState.RUNNING)
    assert screen.second_act(run).title == "Now live, on your processor"
    assert screen.second_act(run).text.endswith(f"It has made {run.attempts} kernels so far.")
    assert screen.second_act(replace(run, attempts=0)).text.endswith("It is writing its first kernel.")
    assert screen.second_act(run).steer
    monkeypatch.setenv("TILEWRIGHT_READ_ONLY", "1")
    assert not screen.second_act(run).steer
    assert screen.second_act(None).leave == screen.RUNS


def test_a_copy_without_the_run_of_the_film_begins_with_the_list(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "may_open" in everything(open_page("first"))
    monkeypatch.setattr(screen, "film", lambda: None)
    monkeypatch.setattr(welcome, "was_seen", lambda: False)
    assert [title.value for title in open_page().title] == ["Runs"]
    assert "does not come with this copy" in words(open_page("first"))
