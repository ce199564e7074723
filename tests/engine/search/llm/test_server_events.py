"""An answer's bytes: however they are cut, packed or meant to overwhelm, they are read, or cancelled at a limit."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import CallError
from engine.search.llm import server_events
from engine.search.llm.server_events import Answer, bound
from storage.run.models import CallFailure
from tests.examples import examples

NAMES = st.sampled_from(["data", "event", "id", "retry", "", "date"])
LINES = st.builds(lambda name, text: f"{name}: {text}", NAMES, st.text(max_size=12) | st.sampled_from(["{}", "[DONE]"]))
EVENTS = st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=6) | st.integers(), max_size=2), max_size=5)


class Chunks(httpx2.SyncByteStream):
    def __init__(self, *chunks: bytes) -> None:
        self.chunks, self.taken = chunks, 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self.chunks:
            self.taken += len(chunk)
            yield chunk


def answer(*chunks: bytes, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = httpx2.Response(200, headers=names, stream=Chunks(*chunks))
    bound(response)
    return Answer(response)


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % (len(body) + 1) for place in places}), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(edges)]


def failure(*chunks: bytes, **headers: str) -> CallError:
    with pytest.raises(CallError) as caught:
        list(answer(*chunks, **headers).events())
    return caught.value


@settings(max_examples=examples(300))
@given(EVENTS, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(st.integers(0, 999), max_size=9), st.booleans())
def test_events_are_the_same_wherever_the_bytes_are_cut(
    events: list[dict[str, Any]], end: str, places: list[int], is_done: bool
) -> None:
    texts = [*(json.dumps(one, ensure_ascii=False) for one in [{"first": 1}, *events]), *["[DONE]"] * is_done]
    body = f"\ufeff: hello{end}" + "".join(f"data: {text}{end}{end}" for text in texts)
    for encoding, packed in (("", body.encode()), ("gzip", gzip.compress(body.encode()))):
        found = answer(*cut(packed, places), content_encoding=encoding)
        assert list(found.events()) == [{"first": 1}, *events]
        assert found.is_whole is is_done


@settings(max_examples=examples(300))
@given(st.lists(LINES | st.just(""), max_size=8).map("\n".join) | st.text(max_size=30), st.lists(st.integers(0, 99)))
def test_any_bytes_are_read_or_reported(text: str, places: list[int]) -> None:
    try:
        assert all(isinstance(one, dict) for one in answer(*cut(text.encode(), places)).events())
    except (CallError, ValueError, TypeError):
        pass


def test_an_answer_all_in_one_is_known_by_its_first_letter_not_by_its_type() -> None:
    for kind in ("text/plain", "application/json", "text/event-stream"):
        found = answer(b' \n{"a": 1}\n', content_type=kind)
        assert (list(found.events()), found.is_whole) == ([{"a": 1}], True)
    assert list(answer(b'data: {"a": 1}\n\n', content_type="application/json").events()) == [{"a": 1}]
    assert "x-ndjson instead of a reply: {" in str(failure(b"{}\n{}\n", content_type="application/x-ndjson"))


def test_the_last_event_counts_without_an_empty_line_and_half_a_line_does_not() -> None:
    found = answer(b'data: {"a": 1}\n\ndata: [DONE]')
    assert (list(found.events()), found.is_whole) == ([{"a": 1}], True)
    assert list(answer(b'data: {"a": 1}\n\ndata: {"b": 2}\n').events()) == [{"a": 1}, {"b": 2}]
    assert list(answer(b'data: {"a": 1}\n\ndata: {"b"').events()) == [{"a": 1}]


ZEROS = b"0" * 1_000_000
ENDLESS = {
    "a line": [b"data: " + ZEROS, *[ZEROS] * 300],
    "an event of many lines": [b"data: x\n" * 100_000] * 300,
    "a body": [b'{"a": "' + ZEROS, *[ZEROS] * 300],
    "a page": [b"<html>" + ZEROS, *[ZEROS] * 300],
    "blanks": [b"\n" * 1_000_000] * 300,
    "comments": [b": " + ZEROS + b"\n\n"] * 300,
    "events": [b'data: {"a": "' + ZEROS + b'"}\n\n'] * 300,
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_cancelled_whatever_its_form(name: str) -> None:
    stream = Chunks(*ENDLESS[name])
    response = httpx2.Response(200, stream=stream)
    bound(response)
    with pytest.raises(CallError, match="longer than") as caught:
        for _ in Answer(response).events():
            pass
    assert caught.value.failure is CallFailure.ENDLESS
    assert stream.taken <= server_events.MOST_BYTES + 1_000_000


@pytest.mark.parametrize("start", [b"data: ", b'{"a": "', b"<html>"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_few_bytes_that_unpack_to_any_number_are_cancelled(start: bytes, layers: int) -> None:
    packed = start + b"A" * 20_000_000
    for _ in range(layers):
        packed = gzip.compress(packed, 1)
    assert failure(packed, content_encoding=", ".join(["gzip"] * layers)).failure is CallFailure.ENDLESS


def test_what_was_not_asked_for_or_is_damaged_is_named() -> None:
    assert "compressed as 'br'" in str(failure(b"abc", content_encoding="br"))
    damaged = failure(b"data: {}\n\n", content_encoding="gzip")
    assert "bytes that are not gzip" in str(damaged)
    assert not damaged.is_charged


def test_of_an_error_only_the_beginning_is_read() -> None:
    response = httpx2.Response(400, stream=Chunks(*[ZEROS] * 300))
    bound(response)
    assert 0 < len(response.read()) <= server_events.LONGEST_ERROR + len(ZEROS)
