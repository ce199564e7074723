"""Pages in process: an index over a home of its own, and a way to open a page as a first request would."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from pages.parts import index
from pages.parts.steering import drafts
from tests.emptied_database import emptied_databases

ROOT = Path(__file__).resolve().parent.parent.parent
Open = Callable[..., AppTest]


@pytest.fixture(scope="session", autouse=True)
def read_once() -> Iterator[None]:
    """Every AppTest would read the metadata of all installed packages and compile the pages anew; neither changes."""
    compiled = functools.cache(ScriptCache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests)
        )
        patch.setattr(app_test, "ScriptCache", compiled)
        patch.setattr(local_script_runner, "ScriptCache", compiled)
        patch.setattr(local_script_runner, "require_widgets_deltas", _wait)
        yield


def _wait(runner: LocalScriptRunner, timeout: float) -> None:
    """AppTest would look a thousand times a second whether the script has ended, and keep it from working."""
    assert runner._script_thread is not None
    runner._script_thread.join(timeout)
    if not runner.script_stopped():
        _require(runner, 0)  # stops it and raises


_require = local_script_runner.require_widgets_deltas


@pytest.fixture(autouse=True)
def _index_in_memory() -> Iterator[None]:
    with emptied_databases():
        yield


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("TILEWRIGHT_WATCH", "poll")  # pages are read on demand here, so nothing need be watched
    monkeypatch.delenv("TILEWRIGHT_READ_ONLY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr(drafts, "_kept", {})  # of the whole process, and many tests name their run alike
    (tmp_path / "runs").mkdir()
    return tmp_path


@pytest.fixture
def open_page(home: Path) -> Iterator[Open]:
    """Open a page over everything that is on disk by then: `open_page("run", run="r1")`."""
    opened: list[index.Index] = []

    def show(page: str = "overview", **query: str) -> AppTest:
        if not opened:  # not before: tests change files in place that a look in between would have read already
            opened.append(index.open_index())
        opened[0].ingest.catch_up()
        # Every page is run through the routes, as a deep link is; AppTest names pages by file.
        app = AppTest.from_file(str(ROOT / "pages" / "_main.py"), default_timeout=120)
        app.query_params.update(query)
        if page != "overview":
            app.switch_page(f"{page}.py")
        return app.run()

    yield show
    if opened:
        index.close_index()


def words(app: AppTest) -> str:
    """Everything a page says outside of its components."""
    shown = [
        *app.title,
        *app.header,
        *app.subheader,
        *app.markdown,
        *app.caption,
        *app.info,
        *app.warning,
        *app.error,
        *app.success,
    ]
    return "\n".join(str(element.value) for element in shown)


def everything(app: AppTest) -> str:
    """All that a page sends to the browser, what its components are given included."""
    assert not app.exception
    return "\n".join(str(proto) for proto in protos(app._tree))


def listings(app: AppTest) -> list[str]:
    """The long texts that a page shows in frames of their own."""
    found = [proto for proto in protos(app._tree) if getattr(proto, "component_name", "") == "tilewright_listing"]
    return [json.loads(proto.json)["text"] for proto in found]


def protos(node: Any) -> Iterator[Any]:
    """The messages of an element and of those in it."""
    if getattr(node, "proto", None) is not None:
        yield node.proto
    for child in (getattr(node, "children", None) or {}).values():
        yield from protos(child)
