"""The Responses protocol: what is asked, and what the events of a streamed answer mean. Knows no connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.errors import CallError
from engine.llm import Message, Purpose
from engine.llm.draft import Draft
from engine.llm.edit_schema import for_responses
from storage.models import CallFailure, ModelOptions, PatchForm, TokenUsage

PATH = "responses"
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def request(messages: list[Message], purpose: Purpose, options: ModelOptions, is_openai: bool) -> dict[str, Any]:
    """The fields of one request. Nothing is kept on the other side."""
    fields: dict[str, Any] = {
        "model": options.model,
        "input": [{"role": m.role, "content": m.text} for m in messages],
        "stream": True,
        "store": False,
    }
    if options.reasoning_effort:
        fields["reasoning"] = {"effort": options.reasoning_effort}
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if limit := purpose.output_limit or options.max_output:
        fields["max_output_tokens"] = limit
    return fields | (for_responses(options.patches or PatchForm.TEXT) if purpose.wants_edits else {})


def pieces(events: Iterable[Mapping[str, Any]], draft: Draft) -> Iterator[str]:
    """The pieces of the reply; everything else goes into the draft. A whole answer in one event is read too.

    Raises:
        CallError: the endpoint says that it failed.
        KeyError, TypeError, ValueError, AttributeError: an event that is not of this protocol.
    """
    for event in events:
        kind = event.get("type")
        if kind == "response.output_text.delta":
            yield _text(event["delta"])
        elif kind == "response.function_call_arguments.delta":
            yield draft.arguments(int(event["output_index"]), _text(event["delta"]))
        elif kind == "response.refusal.delta":
            draft.refusal += _text(event["delta"])
        elif kind == "error":
            raise _failed(event, draft)
        elif kind in _ENDS:
            _end(event["response"], draft)
        elif event.get("object") == "response":
            yield from _whole(event, draft)
            _end(event, draft)


def _end(response: Mapping[str, Any], draft: Draft) -> None:
    if usage := response.get("usage"):
        draft.usage = _usage(usage)
    if response.get("status") == "failed":
        raise _failed(response.get("error") or {}, draft)
    cut = (response.get("incomplete_details") or {}).get("reason")
    draft.finish = "length" if cut == "max_output_tokens" else cut or "stop"


def _whole(response: Mapping[str, Any], draft: Draft) -> Iterator[str]:
    for number, item in enumerate(response.get("output") or []):
        if item.get("type") == "function_call":
            yield draft.arguments(number, _text(item["arguments"]))
        for part in item.get("content") or [] if item.get("type") == "message" else []:
            draft.refusal += part.get("refusal") or ""
            yield _text(part.get("text") or "")


def _failed(error: Mapping[str, Any], draft: Draft) -> CallError:
    is_limit = error.get("code") == "rate_limit_exceeded"
    failure = CallFailure.RATE_LIMITED if is_limit else CallFailure.SERVER_ERROR
    return CallError(
        failure,
        f"the endpoint reported an error in the middle of its reply: {error.get('message') or error}",
        is_charged=not draft.is_empty,
    )


def _usage(usage: Mapping[str, Any]) -> TokenUsage:
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return TokenUsage(
        input=usage.get("input_tokens"),
        output=usage.get("output_tokens"),
        cached=read.get("cached_tokens"),
        reasoning=written.get("reasoning_tokens"),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value
