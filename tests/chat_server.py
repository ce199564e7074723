"""A real HTTP server that speaks the chat protocol and the Responses protocol, with faults played in the order given.

One act answers one request, in the protocol it came by; the last act is played again when none is left. Every request
is kept.
"""

from __future__ import annotations

import http.server
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Act = Callable[["Handler"], None]
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


class ChatServer(http.server.ThreadingHTTPServer):
    """Plays its acts; `released` ends every act that hangs."""

    daemon_threads = True

    def __init__(self, *acts: Act) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.acts = list(acts)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self.released = threading.Event()
        self.began = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that breaks off is part of the play."""


class Handler(http.server.BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.0"
    asked: dict[str, Any]

    def do_POST(self) -> None:
        server = self.server
        self.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(self.asked)
        server.keys.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
        server.paths.append(self.path)
        act = server.acts.pop(0) if len(server.acts) > 1 else server.acts[0]
        act(self)

    def begin(self, status: int = 200, kind: str = "text/event-stream", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, fields: dict[str, Any] | str) -> None:
        text = fields if isinstance(fields, str) else json.dumps(fields)
        self.wfile.write(b"data: " + text.encode() + b"\n\n")
        self.wfile.flush()
        self.server.began.set()

    @property
    def is_responses(self) -> bool:
        return self.path.endswith("/responses")

    def piece(self, **delta: Any) -> None:
        if self.is_responses:
            self._responses_piece(**delta)
        else:
            self.event({"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _responses_piece(
        self, content: str | None = None, refusal: str | None = None, tool_calls: Sequence[Any] = ()
    ) -> None:
        for kind, text in (("output_text", content), ("refusal", refusal)):
            if text is not None:
                self.event({"type": f"response.{kind}.delta", "delta": text})
        for tool in tool_calls:
            arguments = {"output_index": tool["index"], "delta": tool["function"]["arguments"]}
            self.event({"type": "response.function_call_arguments.delta", **arguments})

    def end(self, finish: str = "stop", usage: dict[str, Any] | None = USAGE) -> None:
        if self.is_responses:
            self._responses_end({"length": "max_output_tokens"}.get(finish, finish), usage)
            return
        self.event({"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if usage:
            self.event({"id": "1", "choices": [], "usage": usage})
        self.event("[DONE]")

    def _responses_end(self, finish: str, usage: dict[str, Any] | None) -> None:
        words = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
        words |= {f"{old}_details": f"{new}_details" for old, new in words.items()}
        counted = {words.get(name, name): value for name, value in (usage or {}).items()}
        kind = "completed" if finish in ("stop", "tool_calls") else "incomplete"
        reason = {"incomplete_details": {"reason": finish}} if kind == "incomplete" else {}
        self.event({"type": f"response.{kind}", "response": {"status": kind, "usage": counted, **reason}})

    def log_message(self, *_: object) -> None:
        pass


def says(*pieces: str, finish: str = "stop", usage: dict[str, Any] | None = USAGE) -> Act:
    """A whole streamed reply."""

    def act(handler: Handler) -> None:
        handler.begin()
        for piece in pieces:
            handler.piece(content=piece)
        handler.end(finish, usage)

    return act


def fails(status: int, message: str = "a fault", **headers: str) -> Act:
    """An error status."""

    def act(handler: Handler) -> None:
        handler.begin(status, "application/json", **headers)
        handler.wfile.write(json.dumps({"error": {"message": message}}).encode())

    return act


def hangs(*pieces: str) -> Act:
    """Some pieces and then nothing, with the connection open; without any, not even headers."""

    def act(handler: Handler) -> None:
        handler.server.began.set()
        if pieces:
            handler.begin()
        for piece in pieces:
            handler.piece(content=piece)
        handler.server.released.wait(20)

    return act


def drips(piece: str = ".") -> Act:
    """A reply that never ends, a piece every few milliseconds."""

    def act(handler: Handler) -> None:
        handler.begin()
        while not handler.server.released.wait(0.01):
            handler.piece(content=piece)

    return act


def drops(*pieces: str) -> Act:
    """Some pieces, then the connection closes."""

    def act(handler: Handler) -> None:
        handler.begin()
        for piece in pieces:
            handler.piece(content=piece)

    return act


def refuses(text: str) -> Act:
    def act(handler: Handler) -> None:
        handler.begin()
        handler.piece(refusal=text)
        handler.end()

    return act


def sends(body: str, kind: str = "text/event-stream", status: int = 200, **headers: str) -> Act:
    """A body as it is."""

    def act(handler: Handler) -> None:
        handler.begin(status, kind, **headers)
        handler.wfile.write(body.encode())

    return act


def pours(*chunks: bytes, kind: str = "text/event-stream", status: int = 200, **headers: str) -> Act:
    """Bytes as they are; the last chunk again and again, without end."""

    def act(handler: Handler) -> None:
        handler.begin(status, kind, **headers)
        for chunk in itertools.chain(chunks, itertools.repeat(chunks[-1])):
            handler.wfile.write(chunk)

    return act


@contextmanager
def serving(*acts: Act) -> Iterator[ChatServer]:
    """A server that is up while the block runs."""
    with ChatServer(*acts) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
