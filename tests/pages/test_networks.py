"""The page of networks in every state that a capture can leave one in, with the figures of the ranking."""

from __future__ import annotations

from pathlib import Path

from storage.networks import files
from storage.networks.records import CaptureEnded, CaptureProgressed, CaptureStarted, Event
from tests import sample_networks
from tests.pages.conftest import Open, everything, words


def test_without_a_network_the_page_says_what_one_is_and_how_to_capture_it(home: Path, open_page: Open) -> None:
    app = open_page("networks")
    assert "No network has been captured here" in words(app)
    assert "python -m engine network capture app.py:make" in everything(app)


def test_the_list_has_a_network_in_every_state(home: Path, open_page: Open) -> None:
    sample_networks.write_network(sample_networks.network("whole"))
    unfinished: dict[str, tuple[Event, ...]] = {
        "failed": (CaptureEnded("make() raised ValueError: no checkpoint"),),
        "broken": (CaptureProgressed("measuring prefill"),),
        "working": (CaptureProgressed("exporting decode"),),
    }
    for name, events in unfinished.items():
        sample_networks.begin(name, CaptureStarted("app.py:make", "eval", "cpu", 1), *events)
    damaged = sample_networks.begin("damaged", CaptureStarted("app.py:make", "eval", "cpu", 1))
    damaged.network_file.write_text('{"name": ')
    files.hold(files.folder_of("working"))
    said = everything(open_page("networks"))
    for sentence in (
        "no checkpoint", "the capture ended while it was measuring prefill", "exporting decode",
        "delete it and capture it again", "networks?network=whole", "5 of 18",
    ):  # fmt: skip
        assert sentence in said, sentence
