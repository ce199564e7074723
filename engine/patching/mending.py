"""JSON as models get it slightly wrong, put right by rule. Knows no edits; what is mended is validated as ever."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A string to its end, a comma before a closing bracket, a comment.
_FAULTS = re.compile(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*[\]}])|(?<!:)//[^\n]*', re.DOTALL)
_ESCAPE = re.compile(r'\\(["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
# One string that has a line for itself, alone in a list or after its key.
_OWN_LINE = re.compile(r'^([ \t]*+(?:"\w{1,20}"[ \t]*+:[ \t]*+(?:\[[ \t]*+)?)?")(.*)("(?:[ \t]*+\])?(?:[ \t]*+,)?)$')
_KEY_LINE = re.compile(r'^[ \t]*+"\w{1,20}"[ \t]*+:')
_QUOTE = re.compile(r'\\.|"', re.DOTALL)


def mended(text: str) -> Iterator[str]:
    """The text as it may have been meant, the smaller mending first."""
    yield _FAULTS.sub(_mend, text)
    yield _FAULTS.sub(_mend, "\n".join(_quoted(line) for line in text.split("\n")))


def _mend(match: re.Match[str]) -> str:
    """Without commas before a closing bracket, without comments, and with backslashes that mean themselves doubled."""
    text = match[0]
    if not text.startswith('"'):
        return ""
    return _ESCAPE.sub(lambda m: m[0] if m[1] else r"\\", text)


def _quoted(line: str) -> str:
    """A line that is one string, with the quotes inside it escaped."""
    match = _OWN_LINE.match(line.rstrip())
    if match is None or (_KEY_LINE.match(line) and not _KEY_LINE.match(match[1])):
        return line
    inner = _QUOTE.sub(lambda m: m[0] if m[0] != '"' else '\\"', match[2])
    return match[1] + inner + match[3]
