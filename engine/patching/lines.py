"""A source as lines that remember how they ended. Knows no edits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines without their ends, and the ends beside them; the last end is empty where the file ends without one.

    Only a line feed ends a line: what else Python calls a line boundary is text here, as it is for compilers.
    """

    texts: tuple[str, ...]
    ends: tuple[str, ...]

    @classmethod
    def of(cls, source: str) -> Lines:
        """A source taken apart; `text` gives it back."""
        parts = source.split("\n")
        last = parts.pop()
        ends = ["\r\n" if part.endswith("\r") else "\n" for part in parts]
        texts = [part.removesuffix("\r") for part in parts]
        if last:
            texts, ends = [*texts, last], [*ends, ""]
        return cls(tuple(texts), tuple(ends))

    @property
    def text(self) -> str:
        """The whole source."""
        return "".join(text + end for text, end in zip(self.texts, self.ends, strict=True))

    def put(self, line: int, count: int, new: Sequence[str], otherwise: str = "\n") -> Lines:
        """New lines in the place of `count` lines from `line` on; they end as the lines do that they stand among.

        `otherwise` is how they end where no line is left that tells.
        """
        at, after = line - 1, line - 1 + count
        near = (*self.ends[at : at + 1], *self.ends[max(at - 1, 0) : at], *self.ends[:1])
        end = next(filter(None, near), otherwise)
        ends = [*self.ends[:at], *([end] * len(new)), *self.ends[after:]]
        if self.ends and not self.ends[-1]:  # the file ended without a line feed, and goes on to
            ends = [e or end for e in ends[:-1]] + ([""] if ends else [])
        return Lines((*self.texts[:at], *new, *self.texts[after:]), tuple(ends))


def listing(lines: Sequence[str], first: int = 1) -> str:
    """Numbered lines, as prompts show them."""
    return "\n".join(f"{n:4d} | {line}" for n, line in enumerate(lines, first))


def numbered(source: str) -> str:
    """The listing of a source, which edits refer to."""
    return listing(Lines.of(source).texts)
