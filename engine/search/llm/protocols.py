"""The two protocols of OpenAI-compatible endpoints: what is asked, also for edits as a JSON schema, and what the events
of a streamed answer mean. Knows no connection, and not what an edit does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import quote

from engine.errors import CallError
from engine.search.llm import Message, OnText, Purpose, tools
from engine.search.llm.faults import told_error
from storage.run.models import CallFailure, ModelOptions, PatchForm, TokenUsage

MARK = "[key removed]"
SHORTEST = 6


class Scrubber:
    """Replaces every secret in a text by a mark. Shorter secrets than six characters are left: they hide nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        given = [secret for secret in secrets if len(secret) >= SHORTEST]
        self._secrets = sorted({form for secret in given for form in (secret, quote(secret, safe=""))}, key=len)[::-1]
        self._held = ""

    def whole(self, text: str) -> str:
        """A whole text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MARK)
        return text

    def feed(self, piece: str) -> str:
        """What of the text so far is certain to hold no secret and was not given out before."""
        text = self.whole(self._held + piece)
        kept = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def rest(self) -> str:
        """What was held back: it turned out to be no secret."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, secret: str) -> int:
    """Length of the longest end of the text with which the secret begins, the whole secret excluded."""
    for length in range(min(len(secret) - 1, len(text)), 0, -1):
        if text.endswith(secret[:length]):
            return length
    return 0


LONGEST = 2_000_000
LONGEST_REFUSAL, LONGEST_FINISH = 10_000, 80
MOST_TOKENS = 10**9


class Ending(StrEnum):
    """How a reply ended, whatever an endpoint calls it. BROKEN: as no whole reply does."""

    WHOLE = "stop"
    CUT = "length"
    FILTERED = "content_filter"
    BROKEN = "broken"


_ENDINGS = {
    Ending.WHOLE: "stop tool_calls function_call tool_use tool_call end_turn stop_sequence eos eos_token end complete "
    "completed done finish finished",
    Ending.CUT: "length max_tokens max_output_tokens max_completion_tokens model_length max_length token_limit",
    Ending.FILTERED: "content_filter content_filtered safety recitation refusal blocklist prohibited_content sensitive",
}
_ENDING_OF = {word: ending for ending, words in _ENDINGS.items() for word in words.split()}


class Draft:
    """Collects a reply, passes each piece on without secrets, and breaks off a reply that does not end.

    `finish` stays empty until the endpoint says why the reply ended; `refusal` is what it said instead of answering,
    `thought` how many characters of reasoning came beside the answer.
    """

    def __init__(self, on_text: OnText, scrubber: Scrubber) -> None:
        self.finish = ""
        self.refusal = ""
        self.thought = 0
        self.usage: TokenUsage | None = None
        self._on_text = on_text
        self._scrubber = scrubber
        self._pieces: list[str] = []
        self._length = 0
        self._tool: int | None = None
        self._is_named = False
        self._half = ""

    @property
    def is_empty(self) -> bool:
        """True while nothing has arrived."""
        return not self._length and not self.refusal

    @property
    def ending(self) -> Ending:
        """How the reply ended, from what the endpoint calls it."""
        return _ENDING_OF.get(self.finish.lower(), Ending.BROKEN)

    def refuse(self, words: str) -> None:
        """Take what is said instead of an answer."""
        self.refusal = (self.refusal + words)[:LONGEST_REFUSAL]

    def add(self, piece: str) -> None:
        """Take the next piece.

        Raises:
            CallError: the reply is longer than any useful one.
        """
        self._length += len(piece)
        self._pass_on(self._scrubber.feed(piece))
        if self._length > LONGEST:
            raise CallError(
                CallFailure.ENDLESS,
                f"the reply was cancelled: it is longer than {LONGEST:,} characters",
                is_charged=True,
            )

    def arguments(self, number: int, text: str, name: str = "") -> str:
        """A piece of a tool call's arguments as a piece of the reply: all calls in one fenced block, one a line; with
        the tool's name where it is one that a turn may call."""
        if number == self._tool:
            return text
        opening = "\n```json\n" if self._tool is None else f"{self._closing}\n"
        self._tool, self._is_named = number, name in tools.TOOLS
        return opening + (tools.opening(name) if self._is_named else "") + text

    @property
    def _closing(self) -> str:
        return tools.CLOSING if self._is_named else ""

    def close(self) -> str:
        """The whole reply without secrets: what was passed on, joined."""
        if self._tool is not None:
            self._pass_on(self._scrubber.feed(f"{self._closing}\n```\n"))
            self._tool = None
        self._pass_on(self._scrubber.rest(), is_last=True)
        return "".join(self._pieces)

    def _pass_on(self, text: str, *, is_last: bool = False) -> None:
        """The first half of a character waits for the second one; a half alone becomes U+FFFD."""
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff" and not is_last:
            text, self._half = text[:-1], text[-1]
        if text:
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self._pieces.append(whole)
            self._on_text(whole)


NAME = "line_edits"
ABOUT = "Edit the numbered listing. All line numbers refer to the listing as shown; edits are applied together."

_LINES = {"type": "array", "items": {"type": "string"}}
_EDIT = {
    "action": {"type": "string", "enum": ["replace", "delete", "insert"]},
    "line_number": {"type": "integer"},
    "num_lines": {"type": "integer", "description": "0 for an insert"},
    "old_code": _LINES,
    "new_code": _LINES,
    "why": {"type": "string"},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "what is changed and why, in one sentence"},
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": _EDIT, "required": list(_EDIT), "additionalProperties": False},
        },
    },
    "required": ["summary", "edits"],
    "additionalProperties": False,
}
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class Wire(Protocol):
    """One protocol. `path` is what is asked under the endpoint's address."""

    path: str

    def request(
        self, messages: list[Message], purpose: Purpose, options: ModelOptions, is_openai: bool
    ) -> dict[str, Any]:
        """The fields of one request."""
        ...

    def pieces(self, events: Iterable[Mapping[str, Any]], draft: Draft) -> Iterator[str]:
        """The pieces of the reply; everything else goes into the draft. A whole answer in one event is read too.

        Raises:
            CallError: the endpoint says that it failed.
            KeyError, TypeError, ValueError, AttributeError: an event that is not of this protocol.
        """
        ...


class Chat:
    """Chat completions."""

    path = "chat/completions"

    def request(
        self, messages: list[Message], purpose: Purpose, options: ModelOptions, is_openai: bool
    ) -> dict[str, Any]:
        """The fields of one request."""
        fields: dict[str, Any] = {
            "model": options.model,
            "messages": tools.on_the_wire(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if options.reasoning_effort:
            fields["reasoning_effort"] = options.reasoning_effort
        if options.temperature is not None:
            fields["temperature"] = options.temperature
        if limit := purpose.output_limit or options.max_output:
            fields["max_completion_tokens" if is_openai else "max_tokens"] = limit
        if purpose.tools_left is not None:
            return fields | tools.declared(purpose.tools_left)
        return fields | (_chat_edits(options.patches or PatchForm.TEXT) if purpose.wants_edits else {})

    def pieces(self, events: Iterable[Mapping[str, Any]], draft: Draft) -> Iterator[str]:
        """The pieces of the reply."""
        for event in events:
            if usage := event.get("usage"):
                draft.usage = _chat_usage(usage)
            for choice in filter(None, (event.get("choices") or [])[:1]):
                draft.finish = f"{choice.get('finish_reason') or draft.finish}"[:LONGEST_FINISH]
                delta = choice.get("delta") or choice.get("message") or {}
                draft.refuse(delta.get("refusal") or "")
                draft.thought += len(f"{delta.get('reasoning_content') or delta.get('reasoning') or ''}")
                if content := delta.get("content") or choice.get("text"):
                    yield _chat_text(content)
                for number, tool in enumerate(delta.get("tool_calls") or []):
                    called = tool.get("function") or {}
                    index = tool.get("index") or number
                    yield draft.arguments(index, called.get("arguments") or "", called.get("name") or "")


class Responses:
    """The Responses protocol. Nothing is kept on the other side."""

    path = "responses"

    def request(
        self, messages: list[Message], purpose: Purpose, options: ModelOptions, is_openai: bool
    ) -> dict[str, Any]:
        """The fields of one request."""
        fields: dict[str, Any] = {
            "model": options.model,
            "input": [{"role": "user" if m.role == tools.ROLE else m.role, "content": m.text} for m in messages],
            "stream": True,
            "store": False,
        }
        if options.reasoning_effort:
            fields["reasoning"] = {"effort": options.reasoning_effort}
        if options.temperature is not None:
            fields["temperature"] = options.temperature
        if limit := purpose.output_limit or options.max_output:
            fields["max_output_tokens"] = limit
        return fields | (_responses_edits(options.patches or PatchForm.TEXT) if purpose.wants_edits else {})

    def pieces(self, events: Iterable[Mapping[str, Any]], draft: Draft) -> Iterator[str]:
        """The pieces of the reply."""
        for event in events:
            kind = event.get("type")
            if kind == "response.output_text.delta":
                yield _responses_text(event["delta"])
            elif kind == "response.function_call_arguments.delta":
                yield draft.arguments(int(event["output_index"]), _responses_text(event["delta"]))
            elif kind == "response.refusal.delta":
                draft.refuse(_responses_text(event["delta"]))
            elif kind in _THOUGHTS:
                draft.thought += len(_responses_text(event["delta"]))
            elif kind == "error":
                raise told_error(event, not draft.is_empty)
            elif kind in _ENDS:
                _end(event["response"], draft)
            elif event.get("object") == "response":
                yield from _whole(event, draft)
                _end(event, draft)


def _chat_usage(usage: Mapping[str, Any]) -> TokenUsage:
    """What the endpoint counted; what it leaves out is not known."""
    read, written = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    return TokenUsage(
        input=_count(usage.get("prompt_tokens")),
        output=_count(usage.get("completion_tokens")),
        cached=_count(read.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))),
        reasoning=_count(written.get("reasoning_tokens")),
    )


def _count(value: Any) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if is_count else None


def _chat_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    if not isinstance(content, str):
        raise TypeError(f"content is no text: {type(content).__name__}")
    return content


def _end(response: Mapping[str, Any], draft: Draft) -> None:
    if usage := response.get("usage"):
        draft.usage = _responses_usage(usage)
    if response.get("status") == "failed":
        raise told_error(response.get("error") or response, not draft.is_empty)
    cut = (response.get("incomplete_details") or {}).get("reason")
    draft.finish = f"{cut or 'stop'}"[:LONGEST_FINISH]


def _whole(response: Mapping[str, Any], draft: Draft) -> Iterator[str]:
    for number, item in enumerate(response.get("output") or []):
        if item.get("type") == "function_call":
            yield draft.arguments(number, _responses_text(item["arguments"]))
        for part in item.get("content") or [] if item.get("type") == "message" else []:
            draft.refuse(part.get("refusal") or "")
            yield _responses_text(part.get("text") or "")


def _responses_usage(usage: Mapping[str, Any]) -> TokenUsage:
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return TokenUsage(
        input=_count(usage.get("input_tokens")),
        output=_count(usage.get("output_tokens")),
        cached=_count(read.get("cached_tokens")),
        reasoning=_count(written.get("reasoning_tokens")),
    )


def _responses_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value


def _chat_edits(form: PatchForm) -> dict[str, Any]:
    """Request fields of chat completions that ask for edits in this form."""
    match form:
        case PatchForm.JSON_SCHEMA:
            schema = {"name": NAME, "schema": SCHEMA, "strict": True}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case PatchForm.TOOL:
            tool = {"name": NAME, "description": ABOUT, "parameters": SCHEMA}
            return {"tools": [{"type": "function", "function": tool}]}
        case PatchForm.TEXT:
            return {}


def _responses_edits(form: PatchForm) -> dict[str, Any]:
    """Request fields of the Responses protocol that ask for edits in this form."""
    match form:
        case PatchForm.JSON_SCHEMA:
            return {"text": {"format": {"type": "json_schema", "name": NAME, "schema": SCHEMA, "strict": True}}}
        case PatchForm.TOOL:
            return {"tools": [{"type": "function", "name": NAME, "description": ABOUT, "parameters": SCHEMA}]}
        case PatchForm.TEXT:
            return {}
