"""Any OpenAI-compatible endpoint, through the openai package. Knows the connection, not what the text is about."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from engine.errors import CallError, ModelError
from engine.search.llm import Completion, Message, OnText, Purpose, Terms, environment
from engine.search.llm.faults import call_error, malformed, told_error, words_in
from engine.search.llm.prices import Price
from engine.search.llm.protocols import Chat, Draft, Ending, Responses, Scrubber, Wire
from engine.search.llm.server_events import Answer
from engine.search.llm.watched_client import Watch, watched_client
from storage.run.models import CallFailure, ModelOptions, WireProtocol

TIMEOUT_S = 1800.0
SILENCE_S = 600.0
CONNECT_S = 15.0
WINDOW = 128_000
REPLY_ROOM = 32_000
_DISPENSABLE = ("stream_options", "response_format", "tools", "tool_choice")
_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")  # what an output limit is called
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_COUNT = re.compile(r"(?<![\w.-])(\d{2,9})(?![\w-]|\.\d)( \(exclusive\))?")


class EndpointModel:
    """Streams replies from one endpoint. One call is one request; what comes of it is told, whatever it is."""

    def __init__(self, options: ModelOptions, address: str, key: str, price: Price | None = None) -> None:
        """Raises ModelError when the address is none. It may hold a password, so that the message does not quote it."""
        self.name = options.model or environment.configured_model()
        self._options = replace(options, model=self.name)
        self._price = price or Price()
        self._watch = Watch()
        silence = options.silence_s or SILENCE_S
        timeout = httpx2.Timeout(silence, connect=CONNECT_S, pool=CONNECT_S)
        try:
            parts = urlsplit(address)
            (parts.hostname or "").encode("idna")
            client = watched_client(self._watch, timeout, address)
            self._client = openai.OpenAI(api_key=key, base_url=address, max_retries=0, http_client=client)
        except (ValueError, httpx2.InvalidURL):
            raise ModelError(
                "the address of the model endpoint is malformed: correct base_url, or OPENAI_BASE_URL"
            ) from None
        self._secrets = (key, parts.password or "", parts.query)
        self._is_openai = parts.hostname == urlsplit(environment.OPENAI).hostname
        self._refused: set[str] = set()
        self._limit_name = ""  # what this endpoint calls the output limit, where it does not take the usual name
        self._longest: int | None = None  # output limit, as the endpoint has named it

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
            longest_reply=min(filter(None, (price.max_output, self._longest)), default=None),
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
        protocol: Wire = Responses() if self._speaks_responses else Chat()
        fields = self._accepted(
            protocol.request([_sendable(m) for m in messages], purpose, self._options, self._is_openai)
        )
        try:
            for piece in self._pieces(protocol, fields, draft):
                draft.add(piece)
            self._see_that_it_ended(draft)
        except (openai.OpenAIError, httpx2.HTTPError, CallError) as error:
            if listener.error is not None:
                raise listener.error from None
            if not (draft.finish and isinstance(error, (openai.APIConnectionError, httpx2.HTTPError))):
                # Without its cause: the chain may quote the request, and with it the key.
                raise self._failure(error, fields, draft, scrubber) from None
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

    def _accepted(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a request as this endpoint takes them, as far as it has told."""
        accepted = {name: value for name, value in fields.items() if name not in self._refused}
        for name in _LIMITS:
            if name in accepted:
                limit = accepted.pop(name)
                accepted[self._limit_name or name] = min(limit, self._longest or limit)
        return accepted

    def _pieces(self, protocol: Wire, fields: dict[str, Any], draft: Draft) -> Iterator[str]:
        with self._open(protocol.path, fields) as stream:
            answer = Answer(stream.response)
            try:
                yield from protocol.pieces(_replies(answer, draft), draft)
            except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
                raise malformed(error) from None
            if answer.is_whole and not draft.finish:
                draft.finish = Ending.WHOLE

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
        if not draft.finish:
            raise CallError(CallFailure.DROPPED, "the reply ended in the middle", is_charged=True)
        if draft.refusal or draft.ending is Ending.FILTERED:
            why = draft.refusal or "its content filter stopped the reply"
            raise CallError(
                CallFailure.REFUSED, f"{self.name} refused to reply: {why}", is_charged=True, is_lasting=True
            )
        if draft.ending is Ending.BROKEN:
            message = f"the endpoint did not finish the reply: it says {draft.finish!r}"
            raise CallError(CallFailure.SERVER_ERROR, message, is_charged=not draft.is_empty)
        if draft.is_empty and draft.ending is not Ending.CUT:
            thought = f"{draft.thought:,} characters of reasoning and no answer" if draft.thought else "an empty reply"
            raise CallError(CallFailure.EMPTY, f"{self.name} sent {thought}", is_charged=True)

    def _failure(self, error: Exception, fields: Mapping[str, Any], draft: Draft, scrubber: Scrubber) -> CallError:
        failed = error if isinstance(error, CallError) else self._call_error_of(error, fields, draft)
        return CallError(
            failed.failure,
            scrubber.whole(str(failed)),
            is_charged=failed.is_charged,
            is_lasting=failed.is_lasting,
            retry_after_s=failed.retry_after_s,
            text=draft.close() or scrubber.whole(draft.refusal or failed.text),
            usage=draft.usage,
        )

    def _call_error_of(self, error: Exception, fields: Mapping[str, Any], draft: Draft) -> CallError:
        """The failure behind a client's error; what the endpoint does not take is sent otherwise from now on."""
        assert isinstance(error, (openai.OpenAIError, httpx2.HTTPError))
        failed = call_error(error, has_text=not draft.is_empty)
        if failed.failure is not CallFailure.REJECTED or not isinstance(error, openai.APIStatusError):
            return failed
        change = self._adapted(words_in(error.body), error.param or "", fields)
        return CallError(CallFailure.REJECTED, f"{failed}; retrying {change}") if change else failed

    def _adapted(self, words: str, about: str, fields: Mapping[str, Any]) -> str:
        """What the next request has otherwise because of what the endpoint says about a field; empty for nothing."""
        name = next((field for field in _LIMITS if field in fields), "")
        if (
            name
            and "context length" not in words
            and any(field in f"{words} {about}" for field in (name, "maxOutputTokens"))
        ):
            if longest := _largest_below(fields[name], words):
                self._longest = longest
                return f"with at most {longest:,} tokens of output"
            if not self._limit_name and (other := _OTHER_NAME.get(name)):
                self._limit_name = other
                return f"with {other}"
        disliked = [field for field in _DISPENSABLE if field in words and field not in self._refused]
        if about == "stream" and about in fields:
            disliked = [about, "stream_options"]
        self._refused |= set(disliked)
        return f"without {', '.join(disliked)}" if disliked else ""

    def _completion(self, draft: Draft, seconds: float) -> Completion:
        usage, text = draft.usage, draft.close()
        return Completion(
            text=text,
            model=self.name,
            finish_reason=draft.ending,
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


def _replies(answer: Answer, draft: Draft) -> Iterator[Mapping[str, Any]]:
    """The events of an answer; an error among them, or in its place, is raised."""
    for event in answer.events():
        is_other = answer.is_whole and not {"choices", "output", "usage"} & event.keys()
        if event.get("error") or event.get("object") == "error" or is_other:
            raise told_error(event, has_text=not draft.is_empty)
        yield event


def _largest_below(limit: int, words: str) -> int | None:
    """The largest number of tokens below a limit that an endpoint names, where it names any."""
    counts = [int(match[1]) - bool(match[2]) for match in _COUNT.finditer(re.sub(r"(?<=\d),(?=\d{3})", "", words))]
    return max((count for count in counts if count < limit), default=None)


def _sendable(message: Message) -> Message:
    """The message with what no JSON can carry replaced."""
    return replace(message, text=message.text.encode("utf-8", "replace").decode())
