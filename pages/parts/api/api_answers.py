"""What routes for machines answer: JSON with a version, errors that say what to do, no path of this machine."""

from __future__ import annotations

import hashlib
import json
import math
import re
import secrets
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from storage import folder

LONGEST_PAGE = 1000
# The index counts versions from zero each time that a server starts.
_started = secrets.token_hex(4)


class ApiError(Exception):
    """A request that cannot be met: an HTTP status, what is wrong, and what to do about it."""

    def __init__(self, status: int, error: str, remedy: str) -> None:
        super().__init__(error)
        self.status, self.error, self.remedy = status, error, remedy

    def response(self) -> Response:
        """The error as JSON."""
        return _json({"error": self.error, "remedy": self.remedy}, self.status, {"Cache-Control": "no-store"})


def tag(request: Request, token: str) -> str:
    """The ETag of a request while the change token of what it shows is the same."""
    seen = f"{_started} {token} {request.url.path}?{request.url.query}"
    return f'"{hashlib.sha256(seen.encode()).hexdigest()[:24]}"'


def is_known(request: Request, etag: str) -> bool:
    """True when the asker has this version already."""
    return etag in [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]


def unchanged(etag: str) -> Response:
    """There is nothing new."""
    return Response(status_code=304, headers={"ETag": etag, "Cache-Control": "no-cache"})


def answer(body: dict[str, Any], etag: str) -> Response:
    """A result."""
    return _json(body, 200, {"ETag": etag, "Cache-Control": "no-cache"})


def number(request: Request, name: str, default: int, most: int | None = None) -> int:
    """A whole number of the query that is not negative.

    Raises:
        ApiError: it is no such number, or larger than allowed.
    """
    text = request.query_params.get(name, str(default))
    limit = 2**53 if most is None else most
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > limit:
        upto = "" if most is None else f" up to {most:,}"
        raise ApiError(400, f"{name}={text[:40]!r} cannot be used", f"{name} takes a whole number from 0{upto}")
    return int(text)


def moment(at: float | None) -> str | None:
    """Seconds since the epoch as ISO 8601 in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def without_paths(text: str) -> str:
    """The text with this machine's folders replaced by what they are."""
    for path, name in _places(str(folder.home()), str(Path.home())):
        text = path.sub(name, text)
    return text


@cache
def _places(home: str, user: str) -> list[tuple[re.Pattern[str], str]]:
    """The longest first: one may lie in the other."""
    code = str(Path(__file__).resolve().parents[3])
    named = {home: "<home>", str(Path(home).resolve()): "<home>", code: "<code>", user: "<user>"}
    ordered = sorted((path for path in named if len(path) > 1), key=len, reverse=True)
    return [(re.compile(re.escape(path) + r"(?![\w.-])"), named[path]) for path in ordered]


def _json(body: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    text = without_paths(json.dumps(_finite(body), ensure_ascii=False, allow_nan=False, indent=1))
    return Response(text.encode("utf-8", "replace"), status, headers, "application/json")


def _finite(value: Any) -> Any:
    """JSON has no word for NaN and infinity, journals do: they are told as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value
