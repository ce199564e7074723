"""The endpoint client against a real HTTP server that speaks the streamed chat protocol."""

import http.server
import json
import threading
from collections.abc import Iterator

import openai
import pytest

from engine.errors import ModelError
from engine.llm import Message, Purpose
from engine.llm.endpoint import EndpointModel
from storage.records import Role

PURPOSE = Purpose(Role.DIAGNOSE, None, 0)


class ChatServer(http.server.ThreadingHTTPServer):
    """Answers every chat request with the pieces it was given, or with an error status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ChatHandler)
        self.pieces: list[str] = []
        self.finish = "stop"
        self.status = 200
        self.requests: list[dict[str, object]] = []


class ChatHandler(http.server.BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        self.server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.send_header("Content-Type", "text/event-stream" if self.server.status == 200 else "application/json")
        self.end_headers()
        if self.server.status != 200:
            self.wfile.write(b'{"error": {"message": "no such model"}}')
            return
        for piece in self.server.pieces:
            self._send({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": self.server.finish}]})
        usage = {
            "prompt_tokens": 11,
            "completion_tokens": 7,
            "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 4},
        }
        self._send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, fields: dict[str, object]) -> None:
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self.wfile.write(b"data: " + json.dumps(head | fields).encode() + b"\n\n")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as chat:
        thread = threading.Thread(target=chat.serve_forever)
        thread.start()
        yield chat
        chat.shutdown()
        thread.join()


@pytest.fixture
def model(server: ChatServer) -> Iterator[EndpointModel]:
    address = f"http://127.0.0.1:{server.server_port}/v1"
    with openai.OpenAI(api_key="key", base_url=address, max_retries=0) as client:
        yield EndpointModel("tester", client)


def test_a_reply_streams_in_and_its_usage_is_counted(server: ChatServer, model: EndpointModel) -> None:
    server.pieces, heard = ["Hel", "lo ", "ünïcode"], list[str]()
    done = model.complete([Message("system", "s"), Message("user", "u")], PURPOSE, heard.append)
    assert heard == server.pieces
    assert (done.text, done.finish_reason) == ("Hello ünïcode", "stop")
    assert (done.input_tokens, done.output_tokens, done.cached_tokens) == (11, 7, 4)
    assert done.cost_usd is None
    assert server.requests[0]["model"] == "tester"
    assert server.requests[0]["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


def test_a_cut_off_reply_says_so(server: ChatServer, model: EndpointModel) -> None:
    server.pieces, server.finish = ["half"], "length"
    assert model.complete([Message("user", "u")], PURPOSE, lambda piece: None).finish_reason == "length"


def test_an_empty_reply_is_an_error_not_a_text(model: EndpointModel) -> None:
    with pytest.raises(ModelError, match="empty reply"):
        model.complete([Message("user", "u")], PURPOSE, lambda piece: None)


def test_a_refusing_endpoint_is_named(server: ChatServer, model: EndpointModel) -> None:
    server.status = 404
    with pytest.raises(ModelError, match="no such model"):
        model.complete([Message("user", "u")], PURPOSE, lambda piece: None)


def test_without_key_or_address_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        EndpointModel.from_environment()
