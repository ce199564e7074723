"""The endpoint client against a real HTTP server: what a reply becomes, and what each fault is called."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import CallError, ModelError
from engine.search.llm import Completion, Message, Purpose, environment
from engine.search.llm.endpoint import EndpointModel
from engine.search.llm.prices import Price
from engine.search.patching.proposed_patch import read_patch
from storage.run.models import CallFailure, ModelOptions, PatchForm, WireProtocol
from storage.run.settings import StepKind
from tests.chat_server import Act, ChatServer, Handler, drips, drops, fails, hangs, pours, refuses, says, sends, serving

PURPOSE = Purpose(StepKind.REPAIR, None, 0, wants_edits=True)
KEY = "sk-planted-0123456789"
QUICK = ModelOptions(model="tester", timeout_s=10.0, silence_s=0.8)
Ask = Callable[..., Completion]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(says("fine")) as chat:
        yield chat


def ask(
    server: ChatServer, *acts: Act, options: ModelOptions = QUICK, on_text: Callable[[str], object] = lambda piece: None
) -> Completion:
    if acts:
        server.acts = list(acts)
    model = EndpointModel(options, server.address, KEY, Price(1.0, 0.5, 10.0))
    try:
        return model.complete(
            [Message("system", "s"), Message("user", "u")], PURPOSE, lambda piece: void(on_text(piece))
        )
    finally:
        model.close()


def void(_: object) -> None:
    return None


def failure(server: ChatServer, *acts: Act, options: ModelOptions = QUICK) -> CallError:
    with pytest.raises(CallError) as caught:
        ask(server, *acts, options=options)
    return caught.value


@pytest.mark.parametrize(
    ("protocol", "path", "said"),
    [(WireProtocol.CHAT, "chat/completions", "messages"), (WireProtocol.RESPONSES, "responses", "input")],
)
def test_what_was_used_is_counted_and_priced(server: ChatServer, protocol: WireProtocol, path: str, said: str) -> None:
    done = ask(server, says("Hello"), options=replace(QUICK, protocol=protocol))
    assert (done.input_tokens, done.output_tokens, done.cached_tokens, done.reasoning_tokens) == (11, 7, 4, 2)
    assert done.cost_usd == pytest.approx((7 * 1.0 + 4 * 0.5 + 7 * 10.0) / 1e6)
    (request,) = server.requests
    assert (request["model"], server.keys, server.paths) == ("tester", [KEY], [f"/v1/{path}"])
    assert request[said] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]


def test_usage_that_the_endpoint_does_not_tell_is_unknown_and_so_is_the_cost(server: ChatServer) -> None:
    for usage in (None, {"prompt_tokens": "many", "completion_tokens": True}):
        for protocol in (WireProtocol.CHAT, WireProtocol.RESPONSES):
            done = ask(server, says("text", usage=usage), options=replace(QUICK, protocol=protocol))
            assert (done.input_tokens, done.output_tokens, done.cost_usd) == (None, None, None)


def test_options_of_a_role_are_sent_and_those_not_set_are_left_to_the_endpoint(server: ChatServer) -> None:
    ask(server)
    assert not {"temperature", "reasoning_effort", "max_tokens", "tools", "response_format"} & set(server.requests[0])
    ask(server, options=ModelOptions(model="m", temperature=0.2, reasoning_effort="high", max_output=99))
    sent = server.requests[1]
    assert (sent["temperature"], sent["reasoning_effort"], sent["max_tokens"]) == (0.2, "high", 99)
    options = ModelOptions(model="m", protocol=WireProtocol.RESPONSES, reasoning_effort="low", max_output=9)
    ask(server, options=options)
    assert (server.requests[2]["reasoning"], server.requests[2]["max_output_tokens"]) == ({"effort": "low"}, 9)


def thinks(text: str, finish: str) -> Act:
    """Reasoning and no answer."""

    def act(handler: Handler) -> None:
        handler.begin()
        handler.piece(reasoning_content=text)
        handler.end(finish)

    return act


FAILED = {"type": "response.failed", "response": {"status": "failed", "error": {"message": "out of luck"}}}
TOOL = '{"type": "response.function_call_arguments.delta", "output_index": 1e999, "delta": "x"}'
CUT = "x" * 1_000_000, "y" * 9_000_000
OF_BOTH = [
    (hangs("some"), CallFailure.TIMED_OUT, True, "no data for too long"),
    (drops("half a"), CallFailure.DROPPED, True, "ended in the middle"),
    (says(), CallFailure.EMPTY, True, "empty reply"),
    (refuses("I will not"), CallFailure.REFUSED, True, "I will not"),
    (says("", finish="content_filter"), CallFailure.REFUSED, True, "content filter"),
    (sends("data: " + "[" * 100_000 + "\n\n"), CallFailure.MALFORMED, True, "cannot be read"),
    (sends("data: [1, 2]\n\n"), CallFailure.MALFORMED, True, "cannot be read"),
    (pours(b"data: x" * 9_000), CallFailure.ENDLESS, True, "longer than 16 million bytes"),
    (pours(b'{"a": "', b"x" * 65_536, kind="application/json"), CallFailure.ENDLESS, True, "longer than 16 million"),
    (sends('{"error": "out of memory"}', "application/json"), CallFailure.SERVER_ERROR, False, "out of memory"),
    (sends('{"detail": "Model not loaded"}', "text/plain"), CallFailure.SERVER_ERROR, False, "Model not loaded"),
    (sends('[{"error": {"code": 400, "message": "no key"}}]'), CallFailure.REJECTED, False, "no key"),
    (sends('data: {"error": "out of memory"}\n\n'), CallFailure.SERVER_ERROR, False, "out of memory"),
    (sends('data: {"error": {"code": 429, "message": "slow"}}\n\n'), CallFailure.RATE_LIMITED, False, "slow"),
    (sends('event: error\ndata: {"message": "overloaded"}\n\n'), CallFailure.SERVER_ERROR, False, "overloaded"),
    (sends('[{"error": {"message": "no such key"}}]', status=400), CallFailure.REJECTED, False, "no such key"),
    (
        sends("<html><style>p {}</style><p>Bad Gateway", "text/html", 502),
        CallFailure.SERVER_ERROR,
        False,
        "Bad Gateway",
    ),
    (sends("", status=307, location="http://elsewhere/v1"), CallFailure.REJECTED, False, "http://elsewhere/v1"),
    (pours(b'{"error": "no such model', b"x" * 65_536, status=404), CallFailure.REJECTED, False, "no such model"),
]
OF_CHAT = [
    *OF_BOTH,
    (fails(429, "slow down", retry_after="7"), CallFailure.RATE_LIMITED, False, "slow down"),
    (fails(500), CallFailure.SERVER_ERROR, False, "HTTP 500"),
    (fails(404, "no such model"), CallFailure.REJECTED, False, "no such model"),
    (hangs(), CallFailure.TIMED_OUT, True, "sent no reply"),
    (drops(), CallFailure.MALFORMED, False, "instead of a reply"),
    (sends("data: {not json\n\n"), CallFailure.MALFORMED, True, "cannot be read"),
    (sends('data: {"choices": "none"}\n\n'), CallFailure.MALFORMED, True, "cannot be read"),
    (sends("<html>Sign in</html>", "text/html"), CallFailure.MALFORMED, False, "Sign in"),
    (sends("nothing here", "text/plain"), CallFailure.MALFORMED, False, "text/plain"),
    (sends('data: {"error": {"message": "overloaded"}}\n\n'), CallFailure.SERVER_ERROR, False, "overloaded"),
    (says(*CUT), CallFailure.ENDLESS, True, "longer than"),
    (thinks("hm " * 9, "stop"), CallFailure.EMPTY, True, "27 characters of reasoning and no answer"),
    (says("half", finish="error"), CallFailure.SERVER_ERROR, True, "it says 'error'"),
    (says("half", finish="insufficient_system_resource"), CallFailure.SERVER_ERROR, True, "insufficient_system"),
    (says("", finish="abort"), CallFailure.SERVER_ERROR, False, "abort"),
    (says("", finish="SAFETY"), CallFailure.REFUSED, True, "content filter"),
    (sends('{"choices": [', "application/json", content_length="999"), CallFailure.DROPPED, True, "before it answered"),
    (
        sends('{"error": ', "application/json", 500, content_length="999"),
        CallFailure.DROPPED,
        True,
        "before it answered",
    ),
]
OF_RESPONSES = [
    *OF_BOTH,
    (sends(f"data: {json.dumps(FAILED)}\n\n"), CallFailure.SERVER_ERROR, False, "out of luck"),
    (sends(f"data: {TOOL}\n\n"), CallFailure.MALFORMED, True, "cannot be read"),
]


@pytest.mark.parametrize(
    ("protocol", "act", "kind", "is_charged", "said"),
    [(WireProtocol.CHAT, *row) for row in OF_CHAT] + [(WireProtocol.RESPONSES, *row) for row in OF_RESPONSES],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_fault_has_a_name_and_says_whether_it_may_cost(
    server: ChatServer, protocol: WireProtocol, act: Act, kind: CallFailure, is_charged: bool, said: str
) -> None:
    error = failure(server, act, options=replace(QUICK, protocol=protocol))
    assert (error.failure, error.is_charged) == (kind, is_charged)
    assert said in str(error)
    assert len(server.requests) == 1


def test_what_had_arrived_of_a_broken_reply_is_kept(server: ChatServer) -> None:
    assert failure(server, drops("half ", "a reply")).text == "half a reply"
    assert len(failure(server, says(*CUT)).text) == 10_000_000


def test_an_endpoint_that_is_not_there_is_named_and_costs_nothing() -> None:
    model = EndpointModel(QUICK, "http://127.0.0.1:9/v1", KEY)
    with pytest.raises(CallError, match="cannot be reached") as caught:
        model.complete([Message("user", "u")], PURPOSE, lambda piece: None)
    model.close()
    assert not caught.value.is_charged


@pytest.mark.parametrize("address", ["http://me:secret@host:port/v1", "http://[::1/v1", f"http://{'a' * 64}/v1"])
def test_an_address_that_is_none_is_named_and_not_quoted(address: str) -> None:
    with pytest.raises(ModelError, match="OPENAI_BASE_URL") as caught:
        EndpointModel(QUICK, address, KEY)
    assert "secret" not in str(caught.value)


def test_the_wait_that_the_endpoint_asks_for_is_handed_on(server: ChatServer) -> None:
    assert failure(server, fails(429, retry_after="7")).retry_after_s == 7.0
    assert failure(server, fails(503, retry_after_ms="1500")).retry_after_s == 1.5
    assert failure(server, fails(429, retry_after="Fri, 01 Jan 1999 00:00:00 GMT")).retry_after_s == 0.0


def test_a_reply_that_drips_for_ever_ends_by_the_time_limit_of_the_whole(server: ChatServer) -> None:
    error = failure(server, drips(), options=ModelOptions(model="m", timeout_s=1.5, silence_s=5.0))
    assert error.failure is CallFailure.TIMED_OUT
    assert "no complete reply within 1.5 seconds" in str(error)
    assert set(error.text) == {"."}


def test_characters_cut_in_two_and_line_ends_survive(server: ChatServer) -> None:
    body = "".join(
        "data: " + json.dumps({"choices": [{"delta": {"content": piece}, "finish_reason": end}]}) + "\r\n\r\n"
        for piece, end in (("a\r\nb \ud83d", None), ("\ude00 é\n", None), ("", "stop"))
    )
    heard: list[str] = []
    assert ask(server, sends(body), on_text=heard.append).text == "".join(heard) == "a\r\nb 😀 é\n"


def test_half_a_character_in_an_earlier_reply_can_be_sent_again(server: ChatServer) -> None:
    model = EndpointModel(QUICK, server.address, KEY)
    assert model.complete([Message("assistant", "a\ud83d")], PURPOSE, lambda piece: None).text == "fine"
    model.close()


def test_an_answer_that_is_not_streamed_is_read_all_the_same(server: ChatServer) -> None:
    whole = {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}], "usage": {}}
    assert ask(server, sends(json.dumps(whole), "application/json")).text == "all at once"


def test_a_key_that_the_endpoint_echoes_is_in_no_text_and_no_error(server: ChatServer) -> None:
    heard: list[str] = []
    done = ask(server, says("my key is sk-plant", "ed-0123456789, ", "sk-pl"), on_text=heard.append)
    assert done.text == "".join(heard) == "my key is [key removed], sk-pl"
    assert KEY not in str(failure(server, fails(401, f"bad key {KEY}")))
    assert KEY not in failure(server, drops(KEY[:9], KEY[9:])).text


def test_a_key_that_no_header_can_carry_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-bad\x01key")
    with pytest.raises(ModelError, match="SOME_KEY") as caught:
        environment.key_in("SOME_KEY", environment.OPENAI)
    assert "sk-bad" not in str(caught.value)


def test_without_key_or_address_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        environment.key_in(None, environment.OPENAI)
    assert environment.key_in(None, "http://localhost:8000/v1") == environment.NO_KEY
    monkeypatch.setenv(environment.KEY, "sk-of-openai")
    assert environment.key_in(environment.NO_KEY, "http://localhost:8000/v1") == environment.NO_KEY


EDITS = '{"summary": "s", "edits": [{"action": "delete", "line_number": 3, "num_lines": 1, "why": "w"}]}'


@pytest.mark.parametrize("form", PatchForm)
@pytest.mark.parametrize(
    ("protocol", "schema"), [(WireProtocol.CHAT, "response_format"), (WireProtocol.RESPONSES, "text")]
)
def test_edits_in_every_form_go_through_the_same_parser(
    server: ChatServer, protocol: WireProtocol, schema: str, form: PatchForm
) -> None:
    def act(handler: object) -> None:
        handler.begin()  # type: ignore[attr-defined]
        if form is PatchForm.TOOL:
            for piece in (EDITS[:20], EDITS[20:]):
                handler.piece(tool_calls=[{"index": 0, "function": {"arguments": piece}}])  # type: ignore[attr-defined]
        else:
            handler.piece(content=f"```json\n{EDITS}\n```" if form is PatchForm.TEXT else EDITS)  # type: ignore[attr-defined]
        handler.end("tool_calls" if form is PatchForm.TOOL else "stop")  # type: ignore[attr-defined]

    done = ask(server, act, options=ModelOptions(model="m", protocol=protocol, patches=form))
    assert [edit.line for edit in read_patch(done.text).edits] == [3]
    assert done.finish_reason == "stop"
    asked = {schema, "tools"} & set(server.requests[0])
    assert asked == {PatchForm.JSON_SCHEMA: {schema}, PatchForm.TOOL: {"tools"}}.get(form, set())


def test_a_field_that_the_endpoint_does_not_know_is_left_out_of_the_next_try(server: ChatServer) -> None:
    server.acts = [fails(400, "unknown field stream_options"), says("fine")]
    model = EndpointModel(QUICK, server.address, KEY)
    with pytest.raises(CallError, match="retrying without stream_options") as caught:
        model.complete([Message("user", "u")], PURPOSE, lambda piece: None)
    assert not caught.value.is_lasting
    assert model.complete([Message("user", "u")], PURPOSE, lambda piece: None).text == "fine"
    model.close()
    assert ["stream_options" in request for request in server.requests] == [True, False]


def taught(server: ChatServer, fault: Act, name: str, limit: int) -> list[dict[str, object]]:
    """What is asked before and after a fault, by one model."""
    server.acts = [fault, says("fine")]
    model = EndpointModel(QUICK, server.address, KEY)
    purpose = replace(PURPOSE, output_limit=limit)
    with pytest.raises(CallError, match=name) as caught:
        model.complete([Message("user", "u")], purpose, lambda piece: None)
    assert (caught.value.is_charged, caught.value.is_lasting) == (False, False)
    assert model.complete([Message("user", "u")], purpose, lambda piece: None).text == "fine"
    model.close()
    return server.requests


def test_an_output_limit_is_asked_for_by_the_name_that_the_endpoint_takes(server: ChatServer) -> None:
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    first, second = taught(server, fails(400, said), "retrying with max_completion_tokens", 2000)
    assert first["max_tokens"] == second["max_completion_tokens"] == 2000
    assert "max_tokens" not in second


@pytest.mark.parametrize(
    ("said", "longest"),
    [
        ("max_tokens is too large: 16384. This model supports at most 8192 completion tokens", 8192),
        ("max_tokens: 16384 > 8192, which is the maximum number of output tokens for some-model-3-5-20241022", 8192),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8,192]", 8192),
        ("the supported range of maxOutputTokens is from 1 (inclusive) to 8193 (exclusive)", 8192),
    ],
)
def test_an_output_limit_stays_within_what_the_endpoint_names(server: ChatServer, said: str, longest: int) -> None:
    first, second = taught(server, fails(400, said), f"at most {longest:,} tokens", 16_384)
    assert (first["max_tokens"], second["max_tokens"]) == (16_384, longest)


@pytest.mark.parametrize("finish", ["", "STOP", "end_turn", "eos_token", "tool_calls"])
def test_a_whole_reply_is_one_whatever_its_end_is_called(server: ChatServer, finish: str) -> None:
    done = ask(server, says("text", finish=finish))
    assert (done.text, done.finish_reason) == ("text", "stop")


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_a_reply_that_was_cut_off_is_one_whatever_that_is_called(server: ChatServer, finish: str) -> None:
    assert ask(server, says("te", finish=finish)).finish_reason == "length"


def test_an_answer_that_says_nothing_of_its_end_is_whole_when_it_says_that_it_is_done(server: ChatServer) -> None:
    event = 'data: {"choices": [{"delta": {"content": "text"}}]}\n\n'
    assert ask(server, sends(f"{event}data: [DONE]\n\n")).text == "text"
    assert ask(server, sends('{"choices": [{"message": {"content": "text"}}]}', "text/plain")).text == "text"
    assert failure(server, sends(event)).failure is CallFailure.DROPPED


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "ALL_PROXY", "https_proxy"])
def test_what_the_environment_names_in_vain_is_told_with_its_variable(variable: str, tmp_path: Path) -> None:
    value = {"SSL_CERT_FILE": str(tmp_path / "none.pem"), "ALL_PROXY": "socks5://me:secret@127.0.0.1:9"}
    command = [
        sys.executable,
        "-m",
        "engine",
        "try-model",
        "--model",
        "m",
        "--option",
        "base_url=http://127.0.0.1:9/v1",
    ]
    own = {name: place for name, place in os.environ.items() if "proxy" not in name.lower()}
    own |= {variable: value.get(variable, "ftp://me:secret@host"), "TILEWRIGHT_HOME": str(tmp_path)}
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert (done.returncode, told.count("\n"), variable in told) == (1, 1, True), told
    assert "secret" not in told
