"""A model's prose without the marks of Markdown, to be set as plain text. Pure."""

from __future__ import annotations

import re

_HEADING = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)
# Bold only where it stands as a word does: `2**3**4` and `**options` are code.
_BOLD = re.compile(r"(?<![\w*])\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*(?![\w*])")


def unmarked(text: str) -> str:
    """The text with headings and bold words as plain ones; everything else, code above all, as it was."""
    return _BOLD.sub(r"\1", _HEADING.sub("", text))
