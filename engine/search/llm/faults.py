"""What it is called when an endpoint gives no usable reply, in the endpoint's own words where it has any. Knows what a
client raises and what endpoints say, not what was asked."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import openai

from engine.errors import CallError
from storage.run.models import CallFailure

QUOTED = 400
_BUSY = (408, 409, 425)
_SPENT = ("insufficient_quota", "billing_hard_limit_reached")
_WORDS = ("error", "message", "detail", "msg", "error_description", "errors", "reason", "title")
_UNSHOWN = re.compile(r"<(style|script)\b.*?(</\1>|\Z)|<[^>]*>?", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"[1-5]\d\d", re.ASCII)
_DELAY = re.compile(r'"retryDelay": ?"(\d{1,6}(?:\.\d{1,9})?)s"')


def call_error(error: openai.OpenAIError | httpx2.HTTPError, has_text: bool) -> CallError:
    """The failure behind a client's error. `has_text` tells that a part of the reply had arrived."""
    if isinstance(error, openai.APIStatusError):
        return _status(error)
    if isinstance(error, (openai.APIConnectionError, httpx2.HTTPError)):
        return _connection(error, has_text)
    return CallError(CallFailure.SERVER_ERROR, f"the call failed: {error}"[:QUOTED], is_charged=has_text)


def told_error(body: object, has_text: bool) -> CallError:
    """An error that came in the place of a reply, or of the rest of one, with a status that says nothing of it."""
    fields = _fields(body)
    code = next((int(field) for field in fields if isinstance(field, int | str) and _CODE.fullmatch(f"{field}")), 500)
    where = "reported an error in the middle of its reply" if has_text else "answered with an error"
    message = f"the endpoint {where}: {words_in(body) or '(no words)'}"
    failure, is_lasting = _meaning(code, fields)
    return CallError(failure, message, is_charged=has_text, is_lasting=is_lasting, retry_after_s=_delay(body))


def not_a_stream(kind: str, text: str) -> CallError:
    """The endpoint answered with something else than a reply, such as the page of a proxy."""
    message = (
        f"the endpoint answered with {kind or 'no content type'} instead of a reply: {_shown(text) or '(nothing)'}"
    )
    return CallError(CallFailure.MALFORMED, message, is_lasting="html" in kind, text=text[: 100 * QUOTED])


def malformed(error: Exception) -> CallError:
    """An event of the stream that is no JSON or not of the protocol."""
    why = "it nests too deep" if isinstance(error, RecursionError) else f"{type(error).__name__}: {error}"
    reason = f"the endpoint sent an event that cannot be read ({why})"[:QUOTED]
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


def words_in(body: object, depth: int = 4) -> str:
    """What an endpoint says of its error, however it wraps it; the whole body where no part is known for the words."""
    words = _words_in(body, depth)
    return _shown(words or (_as_text(body) if body else ""))


def _as_text(body: object) -> str:
    try:
        return json.dumps(body, ensure_ascii=False, default=str)
    except RecursionError:
        return "(an answer nested without end)"


def _words_in(body: object, depth: int) -> str:
    if isinstance(body, str):
        return body
    if not depth:
        return ""
    if isinstance(body, list):
        return next(filter(None, (_words_in(part, depth - 1) for part in body[:8])), "")
    if isinstance(body, Mapping):
        return next(filter(None, (_words_in(body.get(name), depth - 1) for name in _WORDS)), "")
    return ""


def _shown(text: str) -> str:
    """In one line, of a page what a person would read."""
    text = text[: 100 * QUOTED]
    plain = _UNSHOWN.sub(" ", text) if text.lstrip().startswith("<") else text
    return " ".join(plain.split())[:QUOTED]


def _fields(body: object) -> list[object]:
    """What stands for the kind of an error."""
    if isinstance(body, list):
        body = next(iter(body), None)
    inner = body.get("error") if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping) else body
    return [inner.get(name) for name in ("code", "status", "type")] if isinstance(inner, Mapping) else []


def _meaning(code: int, fields: list[object]) -> tuple[CallFailure, bool]:
    """(what it is called, whether another try would fail alike)."""
    is_spent = any(field in _SPENT for field in fields if isinstance(field, str))
    if (code == 429 or "rate_limit_exceeded" in fields) and not is_spent:
        return CallFailure.RATE_LIMITED, False
    if (code >= 500 or code in _BUSY) and not is_spent:
        return CallFailure.SERVER_ERROR, False
    return CallFailure.REJECTED, True


def _status(error: openai.APIStatusError) -> CallError:
    code, body = error.status_code, error.body
    status = f"HTTP {code}: {words}" if (words := words_in(body)) else f"HTTP {code}"
    failure, is_lasting = _meaning(code, [error.code, error.type, *_fields(body)])
    wait = retry_after(error.response.headers, time.time())
    opening = {CallFailure.RATE_LIMITED: "too many requests", CallFailure.SERVER_ERROR: "endpoint error"}
    what = opening.get(failure, "the endpoint rejected the call")
    return CallError(
        failure,
        f"{what}, {status}{_advice(code, error.response.headers)}",
        is_lasting=is_lasting,
        retry_after_s=_delay(body) if wait is None else wait,
    )


def _advice(code: int, headers: Mapping[str, str]) -> str:
    if 300 <= code < 400:
        address = headers.get("location", "")[:QUOTED] or "(no address)"
        return f". It names another address, {address}, which is not followed: set base_url, or OPENAI_BASE_URL, to it"
    if code in (404, 405):
        return ". Check the address, which ends in /v1 for most servers, and the model's name"
    return ""


def _delay(body: object) -> float | None:
    """Seconds to wait, as Google's endpoints say it within the body."""
    match = _DELAY.search(_as_text(body)) if isinstance(body, list | dict) else None
    return float(match[1]) if match else None


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
    if "too long" in str(cause):
        return CallError(CallFailure.ENDLESS, "the call was cancelled: the endpoint sends headers without end")
    where = "in the middle of its reply" if has_text else "before it answered"
    return CallError(CallFailure.DROPPED, f"the endpoint closed the connection {where}", is_charged=True)
