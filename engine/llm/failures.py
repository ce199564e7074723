"""What went wrong on the way to an endpoint, as our own words. Knows the client's errors, not who calls."""

from __future__ import annotations

import email.utils
import math
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import openai

from engine.errors import CallError
from storage.models import CallFailure

QUOTED = 400
_BUSY = (408, 409, 425)
_SPENT = ("insufficient_quota", "billing_hard_limit_reached")


def call_error(error: openai.OpenAIError, has_text: bool) -> CallError:
    """The failure behind a client's error. `has_text` tells that a part of the reply had arrived."""
    if isinstance(error, openai.APIStatusError):
        return _status(error)
    if isinstance(error, openai.APIConnectionError):
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
    said, code = f"HTTP {error.status_code}: {_said(error)}", error.status_code
    wait = retry_after(error.response.headers, time.time())
    if code == 429 and error.code not in _SPENT and error.type not in _SPENT:
        return CallError(CallFailure.RATE_LIMITED, f"too many requests, {said}", retry_after_s=wait)
    if code >= 500 or code in _BUSY:
        return CallError(CallFailure.SERVER_ERROR, f"endpoint error, {said}", retry_after_s=wait)
    return CallError(CallFailure.REJECTED, f"the endpoint rejected the call, {said}", is_lasting=True)


def _connection(error: openai.APIConnectionError, has_text: bool) -> CallError:
    cause: Any = error.__cause__
    if isinstance(cause, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
        return CallError(CallFailure.UNREACHABLE, f"the endpoint cannot be reached: {cause}")
    if isinstance(cause, (httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)):
        return CallError(
            CallFailure.REJECTED, "the call cannot be sent: the address or the key is malformed", is_lasting=True
        )
    if isinstance(error, openai.APITimeoutError):
        return CallError(CallFailure.TIMED_OUT, "no data for too long in the middle of the reply" if has_text else
                         "the endpoint accepted the call but sent no reply", is_charged=True)  # fmt: skip
    where = "in the middle of its reply" if has_text else "before it answered"
    return CallError(CallFailure.DROPPED, f"the endpoint closed the connection {where}", is_charged=True)


def _said(error: openai.OpenAIError) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    return " ".join(str(message or getattr(error, "message", error)).split())[:QUOTED]
