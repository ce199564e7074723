"""An answer of an endpoint from its bytes to its events, whatever its form: streamed, all in one, compressed. Takes no
more of it than a reply can need. Knows no protocol."""

from __future__ import annotations

import codecs
import itertools
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import httpx2

from engine.errors import CallError
from engine.search.llm.faults import not_a_stream
from storage.run.models import CallFailure

MOST_BYTES = 256_000_000  # of one answer, on the wire and unpacked
LONGEST_EVENT = 16_000_000  # bytes of one event, or of an answer all in one
LONGEST_ERROR = 1_000_000  # bytes that are read of an answer with an error status
PIECE = 65_536
LINE = 64  # bytes that keeping a line takes beside its own
DONE = b"[DONE]"
LONGEST_FIELD = 6
_FIELD = re.compile(rb"(data|event|id|retry)?:")
_UNPACKED_AS = {"gzip": 47, "x-gzip": 47, "deflate": 47}  # window bits of zlib: gzip or zlib, as the first bytes say


class BoundedBody(httpx2.SyncByteStream):
    """The body of a response, unpacked. What is too long is an error, of an error status the end."""

    def __init__(self, inner: httpx2.SyncByteStream, encodings: list[str], is_error: bool) -> None:
        self._inner, self._encodings, self._is_error = inner, encodings, is_error

    def __iter__(self) -> Iterator[bytes]:
        chunks, count = _counted(self._inner), 0
        for encoding in reversed(self._encodings):
            chunks = _counted(_unpacked(chunks, encoding))
        for chunk in chunks:
            yield chunk
            count += len(chunk)
            if self._is_error and count > LONGEST_ERROR:
                return

    def close(self) -> None:
        """Close the connection, or give it back."""
        self._inner.close()


def bound(response: httpx2.Response) -> None:
    """Put a bounded body in the place of a response's own; a hook of an HTTP client."""
    named = response.headers.pop("content-encoding", "").lower().split(",")
    encodings = [name.strip() for name in named if name.strip() not in ("", "identity")]
    inner = response.stream
    assert isinstance(inner, httpx2.SyncByteStream)
    response.stream = BoundedBody(inner, encodings, response.status_code >= 300)


def _counted(chunks: Iterable[bytes]) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > MOST_BYTES:
            raise endless(f"{MOST_BYTES // 1_000_000} million bytes")
        yield chunk


def _unpacked(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """In pieces, however much a few bytes unpack to."""
    if encoding not in _UNPACKED_AS:
        raise not_a_stream(f"bytes compressed as {encoding[:40]!r}, which was not asked for,", "")
    unpacker = zlib.decompressobj(_UNPACKED_AS[encoding])
    for chunk in chunks:
        while chunk and not unpacker.eof:
            try:
                piece = unpacker.decompress(chunk, PIECE)
            except zlib.error as error:
                raise not_a_stream(f"bytes that are not {encoding} ({error})", "") from None
            chunk = unpacker.unconsumed_tail
            if piece:
                yield piece


def endless(limit: str) -> CallError:
    """An answer that is longer than any useful one."""
    return CallError(CallFailure.ENDLESS, f"the reply was cancelled: it is longer than {limit}", is_charged=True)


class Answer:
    """The events of one response, each a JSON object. `is_whole` once the endpoint has said that nothing follows."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self.is_whole = False

    def events(self) -> Iterator[Mapping[str, Any]]:
        """In order.

        Raises:
            CallError: it is no answer of an API, or does not end.
            ValueError, TypeError, RecursionError: an event is no JSON object.
        """
        kind = self._response.headers.get("content-type", "").partition(";")[0].strip().lower()
        chunks = self._response.iter_bytes()
        head = _head(chunks)
        chunks = itertools.chain([head], chunks)
        if not _FIELD.match(head):
            yield self._at_once(chunks, kind)
            return
        is_empty = True
        for event in self._streamed(chunks):
            is_empty = False
            yield event
        if is_empty:
            raise not_a_stream(kind, "")

    def _at_once(self, chunks: Iterator[bytes], kind: str) -> Mapping[str, Any]:
        text = b"".join(_limited(chunks)).decode("utf-8", "replace")
        if not text.startswith(("{", "[")) or (event := _first_object(text)) is None:
            raise not_a_stream(kind, text)
        self.is_whole = True
        return event

    def _streamed(self, chunks: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
        for name, data in _named_data(_lines(chunks)):
            if data.startswith(DONE):
                self.is_whole = True
                return
            event = json.loads(data)
            if not isinstance(event, dict):
                raise TypeError(f"an event is {type(event).__name__}, not an object")
            yield event if name != b"error" or "error" in event else {"error": event}


def _first_object(text: str) -> Mapping[str, Any] | None:
    """An answer all in one: an object, alone or the first of a list; None where more than that stands there."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return None
        raise
    value = value[0] if isinstance(value, list) and value else value
    return value if isinstance(value, dict) else None


def _head(chunks: Iterator[bytes]) -> bytes:
    """The beginning without a byte order mark and blanks, long enough to tell what form the answer has."""
    head = b""
    for chunk in chunks:
        head = (head + chunk).removeprefix(codecs.BOM_UTF8).lstrip()
        if len(head) >= LONGEST_FIELD:
            break
    return head


def _limited(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        _see_length(size)
        yield chunk


def _see_length(size: int) -> None:
    if size > LONGEST_EVENT:
        raise endless(f"{LONGEST_EVENT // 1_000_000} million bytes in one piece")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends: a line feed, a carriage return or both, also where a chunk ends between the two. What
    stands behind the last end is half a line."""
    held, size, is_returned = list[bytes](), 0, False
    for chunk in chunks:
        text = chunk[1:] if is_returned and chunk.startswith(b"\n") else chunk
        is_returned = chunk.endswith(b"\r")
        *whole, rest = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield b"".join([*held, line])
            held, size = [], 0
        held.append(rest)
        size += len(rest)
        _see_length(size)
    if held and held[-1].endswith(DONE):
        yield b"".join(held)


def _named_data(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The name and the data of each event; an empty line ends one, and so does the end of all."""
    name, data, size = b"", list[bytes](), 0
    for line in itertools.chain(lines, [b""]):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
            size += len(value) + LINE
            _see_length(size)
        elif field == b"event":
            name = value.strip()
        elif not line:
            if data:
                yield name, b"\n".join(data)
            name, data, size = b"", [], 0
