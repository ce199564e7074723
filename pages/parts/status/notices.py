"""Tells people who do not look: a run waits, is over, lost, or has used 80 % of a limit. Browsers that asked for it
show a desktop notification, and TILEWRIGHT_WEBHOOK gets each as JSON.

Only what happens while the server runs is told, so that a restart repeats nothing.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import streamlit as st

from pages.parts import client, index, run_state, wording
from storage import queries

WEBHOOK = "TILEWRIGHT_WEBHOOK"
ADDRESS = "TILEWRIGHT_URL"
EVERY_S = 2.0
KEPT = 100
TRIES = 3
PATIENCE_S = 5.0
WORDS = {
    "waiting": "{title} waits for you", "finished": "{title} has finished", "stopped": "{title} was stopped",
    "failed": "{title} has failed", "lost": "{title} has crashed",
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
    """A thread that looks for news in the open index and keeps the newest."""

    def __init__(self, since: float | None = None) -> None:
        self._since = time.time() if since is None else since
        self._told: set[tuple[str, str, int]] = set()
        self._lost: set[str] | None = None
        self._kept: deque[Notice] = deque(maxlen=KEPT)
        self._count = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="notices", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End, after what is being sent."""
        self._ending.set()
        self._thread.join(PATIENCE_S)

    def after(self, number: int) -> list[Notice]:
        """Those after a number, oldest first."""
        return [one for one in list(self._kept) if one.number > number]

    @property
    def last(self) -> int:
        """The number of the newest; 0 before the first."""
        return self._count

    def look(self) -> list[Notice]:
        """What is new since the last look; kept, and sent to the webhook."""
        found = list(self._news())
        self._kept.extend(found)
        for one in found:
            send(one)
        return found

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
            if key not in self._told:
                self._told.add(key)
                text = row.text.replace("_", " ") if row.kind == "budget" else row.text
                yield self._notice(row.kind, row.run_id, row.title, text)
        now = set(run_state.lost(queries.unfinished_runs(db)))
        for run in queries.of_ids(db, sorted(now - (now if self._lost is None else self._lost))):
            yield self._notice("lost", run.run_id, run.title, "Completed steps are saved; resume to continue.")
        self._lost = now

    def _notice(self, kind: str, run_id: str, title: str, text: str) -> Notice:
        self._count += 1
        said = WORDS[kind].format(title=title.capitalize())
        return Notice(self._count, kind, run_id, said, wording.cut(text, 200), time.time())


def send(notice: Notice) -> bool:
    """Post one notice to the webhook, if there is one. False when it could not be delivered."""
    address = os.environ.get(WEBHOOK, "")
    if not address:
        return True
    base = os.environ.get(ADDRESS, "").rstrip("/")
    body = asdict(notice) | {"url": f"{base}/run?run={wording.in_address(notice.run)}" if base else ""}
    body["text"] = f"{notice.title}. {notice.text}".strip()
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json", "User-Agent": "tilewright"}
    )
    for attempt in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S):
                return True
        except (OSError, ValueError) as error:
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
    found = [] if number is None else _watching[-1].after(number)
    return {"last": _watching[-1].last, "notices": [asdict(one) for one in found]}


def draw() -> None:
    """The switch for desktop notifications of this browser, at the foot of every page."""
    _bell(data={}, key="bell")
