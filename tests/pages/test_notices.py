"""People who do not look are told: what, once, and where to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from pages.parts import index
from pages.parts.api import routes
from pages.parts.status import notices
from storage.run import events as ev
from storage.run.journal import Journal
from storage.run.settings import RunState
from tests import samples


class Hook(BaseHTTPRequestHandler):
    """Takes what is posted, once it is let; the first post is refused, the second answered with no HTTP."""

    taken: list[dict[str, Any]] = []  # noqa: RUF012
    posts = 0
    may_answer = threading.Event()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Hook.may_answer.wait(notices.PATIENCE_S)
        Hook.posts += 1
        if Hook.posts == 2:
            self.wfile.write(b"no HTTP\r\n")
            return
        if Hook.posts > 2:
            Hook.taken.append(body)
        self.send_response(500 if Hook.posts == 1 else 204)
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


def test_what_needs_a_person_is_told_once_and_posted_without_waiting_for_who_takes_it(
    home: Path, hook: type[Hook], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "EVERY_S", 60.0)  # only this test looks
    began = time.time()
    samples.write_run(home / "runs", "old", seed=1)
    samples.write_run(home / "runs", "long-lost", seed=1, ending="running")
    opened = index.open_index()
    opened.ingest.catch_up()
    watcher = notices.Watcher(began)
    watcher.start()
    try:
        assert watcher.look() == []
        folder = samples.write_run(home / "runs", "mine", seed=2, ending="running")
        journal = Journal(folder.journal_file)
        journal.append(ev.BudgetWarned("model_calls", 8.0, 10.0))
        journal.append(ev.StateChanged(RunState.WAITING, "the model cannot be reached"))
        opened.ingest.catch_up()
        assert [one.kind for one in watcher.look()] == ["budget", "waiting", "lost"]
        assert hook.posts == 0
        hook.may_answer.set()
        journal.append(ev.RunEnded(RunState.FINISHED, "all depths are done", None))
        journal.close()
        opened.ingest.catch_up()
        (last,) = watcher.look()
        assert (last.title, last.text) == ("Swish has finished", "all depths are done")
        assert watcher.look() == []
        assert watcher.after(None) == (4, [])
        assert [one.number for one in watcher.after(2)[1]] == [3, 4]
    finally:
        watcher.stop()
        index.close_index()
    assert [one["kind"] for one in hook.taken] == ["budget", "waiting", "lost", "finished"]
    assert hook.taken[0]["text"] == "Swish has used 80 % of its limit. model calls"
    assert hook.taken[0]["url"] == "https://tiles.example.org/run?run=mine"


def test_a_browser_that_asks_while_news_are_read_hears_of_them_the_next_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, object]] = []

    class Asked(notices.Watcher):
        def _news(self) -> Iterator[notices.Notice]:
            for one in super()._news():
                told.append(notices.since(0))
                yield one

    samples.write_run(home / "runs", "mine", seed=1)
    index.open_index().ingest.catch_up()
    watcher = Asked(0.0)
    monkeypatch.setattr(notices, "_watching", [watcher])
    try:
        found = watcher.look()
    finally:
        index.close_index()
    assert found
    assert told == [{"last": 0, "notices": []}] * len(found)
    assert notices.since(0) == {"last": len(found), "notices": [asdict(one) for one in found]}


def test_a_webhook_that_is_no_address_is_a_post_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(notices.WEBHOOK, "hooks.example.org/tiles")
    assert not notices.send(notices.Notice(1, "lost", "mine", "Mine is lost", "", 0.0))


@pytest.mark.parametrize("since", ["9" * 5000, "-1", "x", "1e9", "\u0661"])
def test_a_number_that_is_none_is_answered_with_a_sentence(since: str) -> None:
    asked = Starlette(routes=routes.ROUTES)
    for address in ("/api/notices?since=", "/api/stream?run=r&from="):
        answer = TestClient(asked).get(address + since)
        assert answer.status_code == 400
        assert "has to be a whole number from 0 to" in answer.json()["error"]
        assert len(answer.text) < 300
    assert TestClient(asked).get("/api/notices?since=").status_code == 200
