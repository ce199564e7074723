"""Chat completions: what is asked, and what the pieces of a streamed answer mean. Knows the protocol, no connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.llm import Message, Purpose
from engine.llm.draft import Draft
from engine.llm.edit_schema import for_chat
from storage.models import ModelOptions, PatchForm, TokenUsage

PATH = "chat/completions"


def request(messages: list[Message], purpose: Purpose, options: ModelOptions, is_openai: bool) -> dict[str, Any]:
    """The fields of one request."""
    fields: dict[str, Any] = {
        "model": options.model,
        "messages": [{"role": m.role, "content": m.text} for m in messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if options.reasoning_effort:
        fields["reasoning_effort"] = options.reasoning_effort
    if options.temperature is not None:
        fields["temperature"] = options.temperature
    if limit := purpose.output_limit or options.max_output:
        fields["max_completion_tokens" if is_openai else "max_tokens"] = limit
    return fields | (for_chat(options.patches or PatchForm.TEXT) if purpose.wants_edits else {})


def pieces(events: Iterable[Mapping[str, Any]], draft: Draft) -> Iterator[str]:
    """The pieces of the reply; everything else goes into the draft. A whole answer in one event is read too.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: an event that is not of this protocol.
    """
    for event in events:
        if usage := event.get("usage"):
            draft.usage = usage_of(usage)
        for choice in (event.get("choices") or [])[:1]:
            draft.finish = choice.get("finish_reason") or draft.finish
            said = choice.get("delta") or choice.get("message") or {}
            draft.refusal += said.get("refusal") or ""
            if content := said.get("content"):
                yield _text(content)
            for number, tool in enumerate(said.get("tool_calls") or []):
                arguments = (tool.get("function") or {}).get("arguments") or ""
                yield draft.arguments(tool.get("index") or number, arguments)


def usage_of(usage: Mapping[str, Any]) -> TokenUsage:
    """What the endpoint counted; what it leaves out is not known."""
    read, written = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return TokenUsage(
        input=_count(usage.get("prompt_tokens")),
        output=_count(usage.get("completion_tokens")),
        cached=_count(read.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))),
        reasoning=_count(written.get("reasoning_tokens")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    if not isinstance(content, str):
        raise TypeError(f"content is no text: {type(content).__name__}")
    return content
