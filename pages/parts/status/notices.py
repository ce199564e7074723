"""Tells people who do not look: a run waits, is over, lost, or has used 80 % of a limit. Browsers that asked for it
show a desktop notification, and TILEWRIGHT_WEBHOOK gets each as JSON.

Only what happens while the server runs is told, so that a restart repeats nothing.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import queue
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import streamlit as st

from pages.parts import client, index, run_state, wording
from storage.index import queries

WEBHOOK = "TILEWRIGHT_WEBHOOK"
ADDRESS = "TILEWRIGHT_URL"
EVERY_S = 2.0
KEPT = 100
TRIES = 3
PATIENCE_S = 5.0
WORDS = {
    "waiting": "{title} waits for you", "finished": "{title} has finished", "stopped": "{title} was stopped",
    "failed": "{title} has failed", "lost": "{title} was interrupted: its engine ended",
    "budget": "{title} has used 80 % of its limit",
}  # fmt: skip

_log = logging.getLogger(__name__)
_bell = st.components.v2.component(
    "tilewright_bell",
    html='<div class="bell"><button></button>\n<span role="status"></span></div>',
    css=client.read("status/bell.css"),
    js=client.read("status/bell.js"),
)


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to be told; `number` counts them from 1 since the server began."""

    number: int
    kind: str
    run: str
    title: str
    text: str
    at: float


class Watcher:
    """A thread that looks for news in the open index and keeps the newest; another posts them, however slow that is."""

    def __init__(self, since: float | None = None) -> None:
        self._since = time.time() if since is None else since
        self._seen: set[tuple[str, str, int]] = set()
        self._lost: set[str] | None = None
        self._kept: deque[Notice] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._posts: queue.SimpleQueue[Notice | None] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)
        self._poster = threading.Thread(target=self._post, name="webhook", daemon=True)

    def start(self) -> None:
        """Begin to look, and to post."""
        self._thread.start()
        self._poster.start()

    def stop(self) -> None:
        """End, after what is still to be posted where that is soon done."""
        self._ending.set()
        self._thread.join(PATIENCE_S)
        self._posts.put(None)
        self._poster.join(PATIENCE_S)

    def after(self, number: int | None) -> tuple[int, list[Notice]]:
        """The number of the newest, 0 before the first; and those after a number, oldest first, or none for None."""
        with self._lock:
            last = self._kept[-1].number if self._kept else 0
            return last, [] if number is None else [notice for notice in self._kept if notice.number > number]

    def look(self) -> list[Notice]:
        """What is new since the last look; kept, and to be posted to the webhook."""
        news = list(self._news())
        with self._lock:
            last = self._kept[-1].number if self._kept else 0
            notices = [replace(notice, number=number) for number, notice in enumerate(news, last + 1)]
            self._kept.extend(notices)
        for notice in notices:
            self._posts.put(notice)
        return notices

    def _post(self) -> None:
        while notice := self._posts.get():
            send(notice)

    def _work(self) -> None:
        while not self._ending.wait(EVERY_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - telling must never end the telling
                _log.exception("news could not be read")

    def _news(self) -> Iterator[Notice]:
        db = index.current()
        for row in queries.news(db, self._since):
            key = (row.run_id, row.kind, row.seq)
            if key not in self._seen:
                self._seen.add(key)
                text = row.text.replace("_", " ") if row.kind == "budget" else row.text
                yield self._notice(row.kind, row.run_id, row.title, text)
        now = set(run_state.lost(queries.unfinished_runs(db)))
        for run in queries.of_ids(db, sorted(now - (now if self._lost is None else self._lost))):
            yield self._notice("lost", run.run_id, run.title, "Completed steps are saved; resume to continue.")
        self._lost = now

    def _notice(self, kind: str, run_id: str, title: str, text: str) -> Notice:
        """A notice without a number yet: a browser must not hear of a number before the notice is kept."""
        words = WORDS[kind].format(title=title)
        return Notice(0, kind, run_id, words, wording.cut(text, 200), time.time())


def send(notice: Notice) -> bool:
    """Post one notice to the webhook, if there is one. False when it could not be delivered."""
    address = os.environ.get(WEBHOOK, "")
    if not address:
        return True
    base = os.environ.get(ADDRESS, "").rstrip("/")
    body = asdict(notice) | {"url": f"{base}/run?run={wording.in_address(notice.run)}" if base else ""}
    body["text"] = f"{notice.title}. {notice.text}".strip()
    headers = {"Content-Type": "application/json", "User-Agent": "tilewright"}
    for attempt in range(TRIES):
        try:
            request = urllib.request.Request(address, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=PATIENCE_S):
                return True
        except (OSError, ValueError, http.client.HTTPException) as error:
            _log.warning("the webhook did not take a notice (try %d of %d): %s", attempt + 1, TRIES, error)
            time.sleep(0.2 * attempt)
    return False


_watching: list[Watcher] = []


def start() -> None:
    """Begin to look, for the life of the server."""
    _watching.append(Watcher())
    _watching[-1].start()


def stop() -> None:
    """The end of it."""
    if _watching:
        _watching.pop().stop()


def since(number: int | None) -> dict[str, object]:
    """For a browser: the newest number, and what came after the one that it knows; nothing for one that knows none."""
    if not _watching:
        return {"last": 0, "notices": []}
    last, notices = _watching[-1].after(number)
    return {"last": last, "notices": [asdict(notice) for notice in notices]}


def draw() -> None:
    """The switch for desktop notifications of this browser, at the foot of every page."""
    _bell(data={}, key="bell")
