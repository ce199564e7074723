"""All that pages, routes, commands, reports and a suite's export say of the saved runs and the examples, as values.

Texts, figures and what components are given, without looks: two versions of the code that say the same give the same.
"""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

from engine import examples
from engine.cli import report
from engine.suites import adopting, exporting
from pages.candidate import TABS
from pages.parts import index
from pages.parts.api import api_answers
from pages.parts.report.report_run import run_report
from storage.index import queries
from storage.run.folder import RunFolder, runs_folder
from storage.run.settings import RunState
from storage.suites import files, measured, summary
from storage.suites.standing import fold
from tests.guard.engine_side import digest
from tests.guard.saved import unpack
from tests.pages.conftest import ROOT, protos

NOW = 1_800_000_000.0  # ages are told against it
KERNELS, FEWER = 3, 1  # of a run, the newest, beside the best: those whose pages are looked at
OF_ALL = ("overview", "models", "knowledge", "learning", "benchmark")
VIEWS = ("summary", "runs", "curves", "scorecard", "paper's table", "KernelBench's terms")
SUITE = "guard"
MEMORY = re.compile(r"tilewright_server_memory_bytes [\d.e+]+")
LOOKS = re.compile(r"<style.*?</style>|<script.*?</script>|<[^>]*>", re.DOTALL)
# Ids that Streamlit makes, sizes, styles, the scripts of components, and by which number a page knows of changes.
UNSAID = {
    "id",
    "version",
    "css",
    "style",
    "js",
    "html",
    "cssContent",
    "jsContent",
    "htmlContent",
    "formId",
    "widthConfig",
    "deferredFileId",
}


@contextmanager
def home_of(names: Sequence[str], with_examples: bool) -> Iterator[list[str]]:
    """A home in use with these saved runs, the examples and a suite of what has ended; yields the runs' ids."""
    with tempfile.TemporaryDirectory(prefix="tilewright.guard.") as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_HOME", home)
        patch.setenv("TILEWRIGHT_WATCH", "poll")
        patch.setattr("time.time", lambda: NOW)
        for name in ("TILEWRIGHT_READ_ONLY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "TILEWRIGHT_MODEL"):
            patch.delenv(name, raising=False)
        yield _write(Path(home), names, with_examples)


def _write(home: Path, names: Sequence[str], with_examples: bool) -> list[str]:
    made = [unpack(name, home / "runs").name for name in names]
    if with_examples:
        made += sorted(run.run_id for run in examples.open_examples())
    ended = [folder for run in made if _has_ended(folder := RunFolder(home / "runs" / run))]
    suite = files.folder_of(SUITE)
    suite.path.mkdir(parents=True)
    files.append(suite, *adopting.adopt(SUITE, ended, None, None, ""))
    return made


def said(runs: Sequence[str], kernels: int = KERNELS) -> Iterator[tuple[str, Any]]:
    """(where, what is said there) of each of these runs of the home in use, and then of all of them."""
    opened = index.open_index()
    try:
        opened.ingest.catch_up()
        for where, values in itertools.chain(*(_of_run(run_id, kernels) for run_id in runs), _of_all(runs)):
            yield where, _placeless(values)
    finally:
        index.close_index()


def digests(names: Sequence[str], with_examples: bool) -> dict[str, str]:
    """A hash of what is said in each place."""
    with home_of(names, with_examples) as runs:
        return {where: digest(values) for where, values in said(runs, KERNELS if with_examples else FEWER)}


def _placeless(values: Any) -> Any:
    """Without the folder that the home has this time, and what the server needs of memory."""
    text = json.dumps(values, sort_keys=True, default=str).replace(str(runs_folder().parent), "HOME")
    return json.loads(MEMORY.sub("", text))


def _of_run(run_id: str, newest: int) -> Iterator[tuple[str, Any]]:
    db, folder = index.current(), RunFolder(runs_folder() / run_id)
    kernels = [row.candidate_id for row in queries.attempts(db, run_id)]
    row = queries.run(db, run_id)
    assert row is not None
    yield f"{run_id} api", [api_answers.whole(row), *(api_answers.whole_kernel(run_id, one) for one in kernels)]
    yield f"{run_id} list", report.summary(folder)
    yield f"{run_id} show", _details(folder) if "task" in report.summary(folder) else None
    yield f"{run_id} report", _text(run_report(db, run_id))
    for page in ("run", "steering", "learning"):
        yield f"{run_id} page {page}", _page(page, run=run_id)
    shown = dict.fromkeys([*kernels[-newest:], *([row.best_candidate_id] if row.best_candidate_id else [])])
    for name, tab in itertools.product(shown, TABS):
        yield f"{run_id} page {name} {tab}", _page("candidate", run=run_id, candidate=name, tab=tab)


def _details(folder: RunFolder) -> dict[str, Any]:
    """Without what the knowledge base offers, which changes with the base."""
    return {name: value for name, value in report.details(folder).items() if name != "to_try"}


def _of_all(runs: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for page in OF_ALL:
        yield f"page {page}", _page(page)
    for chosen in (runs[first : first + 12] for first in range(0, len(runs), 12)):
        yield f"page compare from {chosen[0]}", _page("compare", runs=",".join(chosen))
    for view in VIEWS:
        yield f"page benchmark {view}", _page("benchmark", suite=SUITE, show_suite=view)
    suite = fold(files.read(files.find(SUITE)))
    assert suite is not None
    results = summary.gather(suite, measured.of_suite(suite))
    yield "suite export", exporting.exported(results, "json")
    yield "metrics", api_answers.prometheus_text().decode()


def _page(page: str, **query: str) -> list[Any]:
    app = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=300)
    app.query_params.update(query)
    if page != "overview":
        app.switch_page(f"{page}.py")
    app.run()
    assert not app.exception, (page, query, app.exception)
    return [_values(MessageToDict(proto)) for proto in protos(app._tree)]


def _values(node: Any) -> Any:
    """A message without its looks; JSON in it as values."""
    if isinstance(node, dict):
        return {name: _values(value) for name, value in node.items() if name not in UNSAID}
    if isinstance(node, list):
        return [_values(one) for one in node]
    if isinstance(node, str) and node[:1] in "{[":
        try:
            return _values(json.loads(node))
        except ValueError:
            return node
    return _text(node) if isinstance(node, str) and "<" in node else node


def _text(html: str) -> list[str]:
    return [line for one in LOOKS.sub("\n", html).splitlines() if (line := one.strip())]


def _has_ended(folder: RunFolder) -> bool:
    is_over = report.summary(folder).get("state") in (RunState.FINISHED, RunState.STOPPED, RunState.FAILED)
    return is_over and folder.read_settings().replay_of is None
