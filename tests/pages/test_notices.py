"""People who do not look are told: what, once, and where to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from pages.parts import index
from pages.parts.status import notices
from storage import events as ev
from storage.journal import Journal
from storage.records import RunState
from tests import samples


class Hook(BaseHTTPRequestHandler):
    """Takes what is posted; the first post is refused."""

    taken: list[dict[str, Any]] = []  # noqa: RUF012
    refusals = 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_refused, Hook.refusals = Hook.refusals > 0, Hook.refusals - 1
        if not is_refused:
            Hook.taken.append(body)
        self.send_response(500 if is_refused else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hook]]:
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.setenv(notices.WEBHOOK, f"http://127.0.0.1:{server.server_port}/hook")
        monkeypatch.setenv(notices.ADDRESS, "https://tiles.example.org/")
        yield Hook
        server.shutdown()
        thread.join()


def test_what_needs_a_person_is_told_once_and_posted(home: Path, hook: type[Hook]) -> None:
    began = time.time()
    samples.write_run(home / "runs", "old", seed=1)
    samples.write_run(home / "runs", "long-lost", seed=1, ending="running")
    opened = index.open_index()
    opened.ingest.catch_up()
    watcher = notices.Watcher(began)
    try:
        assert watcher.look() == []
        folder = samples.write_run(home / "runs", "mine", seed=2, ending="running")
        journal = Journal(folder.journal_file)
        journal.append(ev.BudgetWarned("model_calls", 8.0, 10.0))
        journal.append(ev.StateChanged(RunState.WAITING, "the model cannot be reached"))
        opened.ingest.catch_up()
        assert [one.kind for one in watcher.look()] == ["budget", "waiting", "lost"]
        journal.append(ev.RunEnded(RunState.FINISHED, "all depths are done", None))
        journal.close()
        opened.ingest.catch_up()
        (last,) = watcher.look()
        assert (last.title, last.text) == ("Swish has finished", "all depths are done")
        assert watcher.look() == []
        assert [one.number for one in watcher.after(2)] == [3, 4]
    finally:
        index.close_index()
    assert [one["kind"] for one in hook.taken] == ["budget", "waiting", "lost", "finished"]
    assert hook.taken[0]["text"] == "Swish has used 80 % of its limit. model calls"
    assert hook.taken[0]["url"] == "https://tiles.example.org/run?run=mine"
