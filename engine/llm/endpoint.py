"""Any OpenAI-compatible endpoint, through the openai package. Knows the connection, not what the text is about."""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from engine.errors import CallError, ModelError
from engine.llm import Completion, Message, OnText, Purpose, Terms, environment
from engine.llm.prices import Price
from engine.llm.protocols import Chat, Draft, Responses, Scrubber, Wire
from engine.llm.watched_client import Watch, watched_client
from storage.models import CallFailure, ModelOptions, WireProtocol

TIMEOUT_S = 1800.0
SILENCE_S = 600.0
CONNECT_S = 15.0
WINDOW = 128_000
REPLY_ROOM = 32_000
_DISPENSABLE = ("stream_options", "response_format", "tools", "tool_choice")


class EndpointModel:
    """Streams replies from one endpoint. One call is one request; what comes of it is told, whatever it is."""

    def __init__(self, options: ModelOptions, address: str, key: str, price: Price | None = None) -> None:
        """Raises ModelError when the address is none. It may hold a password, so that the message does not quote it."""
        self.name = options.model or environment.configured_model()
        self._options = replace(options, model=self.name)
        self._price = price or Price()
        self._watch = Watch()
        silence = options.silence_s or SILENCE_S
        client = watched_client(self._watch, httpx2.Timeout(silence, connect=CONNECT_S, pool=CONNECT_S))
        try:
            place = urlsplit(address)
            (place.hostname or "").encode("idna")
            self._client = openai.OpenAI(api_key=key, base_url=address, max_retries=0, http_client=client)
        except (ValueError, httpx2.InvalidURL):
            raise ModelError(
                "the address of the model endpoint is malformed: correct base_url, or OPENAI_BASE_URL"
            ) from None
        self._secrets = (key, place.password or "", place.query)
        self._is_openai = place.hostname == urlsplit(environment.OPENAI).hostname
        self._refused: set[str] = set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def terms(self, purpose: Purpose) -> Terms:
        """What a call costs and how much fits into it."""
        options, price = self._options, self._price
        window = options.window or price.window or WINDOW
        room = purpose.output_limit or options.max_output or min(price.max_output or REPLY_ROOM, REPLY_ROOM)
        return Terms(
            model=self.name,
            window=window,
            reply_room=min(room, window // 2),
            output_limit=options.max_output,
            longest_reply=price.max_output,
            input_price=None if price.input is None else price.input / 1e6,
            output_price=None if price.output is None else price.output / 1e6,
        )

    def complete(self, messages: list[Message], purpose: Purpose, on_text: OnText) -> Completion:
        """One streamed reply.

        Raises:
            CallError: the endpoint cannot be reached, rejects, refuses, breaks off, goes silent or sends nothing.
        """
        scrubber, started = Scrubber(self._secrets), time.monotonic()
        listener = _Listener(on_text)
        draft = Draft(listener, scrubber)
        self._watch.ask = self._asking(listener, started + (self._options.timeout_s or TIMEOUT_S))
        try:
            for piece in self._pieces([_sendable(m) for m in messages], purpose, draft):
                draft.add(piece)
            self._see_that_it_ended(draft)
        except (openai.OpenAIError, httpx2.HTTPError, CallError) as error:
            if listener.error is not None:
                raise listener.error from None
            if not (draft.finish and isinstance(error, (openai.APIConnectionError, httpx2.HTTPError))):
                # Without its cause: the chain may quote the request, and with it the key.
                raise self._failure(error, draft, scrubber) from None
        finally:
            self._watch.ask = lambda: None
        return self._completion(draft, time.monotonic() - started)

    def _asking(self, on_text: OnText, deadline: float) -> Callable[[], None]:
        def ask() -> None:
            on_text("")
            if time.monotonic() > deadline:
                limit = self._options.timeout_s or TIMEOUT_S
                message = f"no complete reply within {limit:g} seconds"
                raise CallError(CallFailure.TIMED_OUT, message, is_charged=True)

        return ask

    def _pieces(self, messages: list[Message], purpose: Purpose, draft: Draft) -> Iterator[str]:
        protocol: Wire = Responses() if self._speaks_responses else Chat()
        fields = protocol.request(messages, purpose, self._options, self._is_openai)
        accepted = {name: value for name, value in fields.items() if name not in self._refused}
        with self._open(protocol.path, accepted) as stream:
            try:
                yield from protocol.pieces(_events(stream), draft)
            except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
                raise malformed(error) from None

    @property
    def _speaks_responses(self) -> bool:
        protocol = self._options.protocol or WireProtocol.AUTO
        return self._is_openai if protocol is WireProtocol.AUTO else protocol is WireProtocol.RESPONSES

    def _open(self, path: str, fields: dict[str, Any]) -> openai.Stream[Any]:
        opened: Any = self._client.post(
            f"/{path}", body=fields, cast_to=object, stream=True, stream_cls=openai.Stream[object]
        )
        stream: openai.Stream[Any] = opened
        return stream

    def _see_that_it_ended(self, draft: Draft) -> None:
        if draft.refusal or draft.finish == "content_filter":
            why = draft.refusal or "its content filter stopped the reply"
            raise CallError(
                CallFailure.REFUSED, f"{self.name} refused to reply: {why}", is_charged=True, is_lasting=True
            )
        if not draft.finish:
            raise CallError(CallFailure.DROPPED, "the reply ended in the middle", is_charged=True)
        if draft.is_empty and draft.finish != "length":
            raise CallError(CallFailure.EMPTY, f"{self.name} sent an empty reply", is_charged=True)

    def _failure(self, error: Exception, draft: Draft, scrubber: Scrubber) -> CallError:
        found = error if isinstance(error, CallError) else self._call_error_of(error, draft)
        return CallError(
            found.failure,
            scrubber.whole(str(found)),
            is_charged=found.is_charged,
            is_lasting=found.is_lasting,
            retry_after_s=found.retry_after_s,
            text=draft.close() or scrubber.whole(draft.refusal or found.text),
            usage=draft.usage,
        )

    def _call_error_of(self, error: Exception, draft: Draft) -> CallError:
        """The failure behind a client's error; a field that the endpoint does not take is left out from now on."""
        assert isinstance(error, (openai.OpenAIError, httpx2.HTTPError))
        found = call_error(error, has_text=not draft.is_empty)
        disliked = [name for name in _DISPENSABLE if name in str(found) and name not in self._refused]
        if found.failure is not CallFailure.REJECTED or not disliked:
            return found
        self._refused |= set(disliked)
        return CallError(CallFailure.REJECTED, f"{found}; retrying without {', '.join(disliked)}")

    def _completion(self, draft: Draft, seconds: float) -> Completion:
        usage, text = draft.usage, draft.close()
        return Completion(
            text=text,
            model=self.name,
            finish_reason="stop" if draft.finish in ("tool_calls", "function_call") else draft.finish,
            seconds=seconds,
            input_tokens=usage.input if usage else None,
            output_tokens=usage.output if usage else None,
            cached_tokens=usage.cached if usage else None,
            reasoning_tokens=usage.reasoning if usage else None,
            cost_usd=self._price.cost(usage) if usage else None,
        )


class _Listener:
    """Passes pieces on and keeps what the caller raised: between the two stand clients that take it for their own."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self.error: BaseException | None = None

    def __call__(self, piece: str) -> None:
        """Pass a piece on."""
        try:
            self._on_text(piece)
        except BaseException as error:
            self.error = error
            raise


def _events(stream: openai.Stream[Any]) -> Iterator[Mapping[str, Any]]:
    """The events of an answer, streamed or, where an endpoint does not stream, all in one."""
    kind = stream.response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or "html" in kind:
        text = stream.response.read().decode("utf-8", "replace")
        if not text.lstrip().startswith("{"):
            raise not_a_stream(kind, text)
        yield json.loads(text)
        return
    count = 0
    for count, event in enumerate(stream, 1):  # noqa: B007
        if not isinstance(event, Mapping):
            raise TypeError(f"an event is {type(event).__name__}, not an object")
        yield event
    if not count:
        raise not_a_stream(kind, "")


def _sendable(message: Message) -> Message:
    """The message with what no JSON can carry replaced."""
    return replace(message, text=message.text.encode("utf-8", "replace").decode())


QUOTED = 400
_BUSY = (408, 409, 425)
_SPENT = ("insufficient_quota", "billing_hard_limit_reached")


def call_error(error: openai.OpenAIError | httpx2.HTTPError, has_text: bool) -> CallError:
    """The failure behind a client's error. `has_text` tells that a part of the reply had arrived."""
    if isinstance(error, openai.APIStatusError):
        return _status(error)
    if isinstance(error, (openai.APIConnectionError, httpx2.HTTPError)):
        return _connection(error, has_text)
    if isinstance(error, openai.APIError) and error.code == "rate_limit_exceeded":
        return CallError(CallFailure.RATE_LIMITED, _said(error), is_charged=has_text)
    return CallError(
        CallFailure.SERVER_ERROR,
        f"the endpoint reported an error in the middle of its reply: {_said(error)}",
        is_charged=has_text,
    )


def not_a_stream(kind: str, text: str) -> CallError:
    """The endpoint answered with something else than a reply, such as the page of a proxy."""
    said = " ".join(text.split())[:QUOTED]
    message = f"the endpoint answered with {kind or 'no content type'} instead of a reply: {said or '(nothing)'}"
    return CallError(CallFailure.MALFORMED, message, is_lasting="html" in kind, text=text[: 100 * QUOTED])


def malformed(error: Exception) -> CallError:
    """An event of the stream that is no JSON or not of the protocol."""
    reason = f"the endpoint sent an event that cannot be read ({type(error).__name__}: {error})"[:QUOTED]
    return CallError(CallFailure.MALFORMED, reason, is_charged=True)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the endpoint asks to wait, from its headers; None when it does not say. `now` is Unix time."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _status(error: openai.APIStatusError) -> CallError:
    code, reason = error.status_code, _said(error)
    said = f"HTTP {code}" if reason in ("", f"Error code: {code}") else f"HTTP {code}: {reason}"
    wait = retry_after(error.response.headers, time.time())
    if code == 429 and error.code not in _SPENT and error.type not in _SPENT:
        return CallError(CallFailure.RATE_LIMITED, f"too many requests, {said}", retry_after_s=wait)
    if code >= 500 or code in _BUSY:
        return CallError(CallFailure.SERVER_ERROR, f"endpoint error, {said}", retry_after_s=wait)
    advice = (
        ". Check the address, which ends in /v1 for most servers, and the model's name" if code in (404, 405) else ""
    )
    return CallError(CallFailure.REJECTED, f"the endpoint rejected the call, {said}{advice}", is_lasting=True)


def _connection(error: openai.APIConnectionError | httpx2.HTTPError, has_text: bool) -> CallError:
    """The client wraps only what breaks while it sends or streams, not what breaks while a whole answer is read."""
    cause: Any = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return CallError(CallFailure.UNREACHABLE, f"the endpoint cannot be reached: {cause}")
    if isinstance(cause, (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)):
        return CallError(
            CallFailure.REJECTED, "the call cannot be sent: the address or the key is malformed", is_lasting=True
        )
    if isinstance(error, (openai.APITimeoutError, httpx2.TimeoutException)):
        return CallError(CallFailure.TIMED_OUT, "no data for too long in the middle of the reply" if has_text else
                         "the endpoint accepted the call but sent no reply", is_charged=True)  # fmt: skip
    where = "in the middle of its reply" if has_text else "before it answered"
    return CallError(CallFailure.DROPPED, f"the endpoint closed the connection {where}", is_charged=True)


def _said(error: openai.OpenAIError) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(message or getattr(error, "message", error)).split())[:QUOTED]
