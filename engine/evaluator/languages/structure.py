"""The C++ in a candidate's file: its words, its kernels, and what one version lost of the other's structure. Compares
texts; judges no result."""

from __future__ import annotations

import ast
import re
from collections import Counter
from dataclasses import dataclass

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?(\*/|\Z)", re.DOTALL)
_LINE_COMMENTS = re.compile(r"//[^\n]*")
INCLUDES = re.compile(r"^[ \t]*#[ \t]*include[^\n]*", re.MULTILINE)
NAME = re.compile(r"[A-Za-z_]\w*")
BUILDERS = frozenset({"load_inline", "load"})
FEW = 3
LEFT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Structure:
    """What a version is built from: words of its language, whether it builds C++, and how many kernels it has."""

    words: Counter[str]
    has_extension: bool
    kernels: int

    @property
    def uses(self) -> int:
        """How often the language's words are used."""
        return sum(self.words.values())


def structure(source: str, words: re.Pattern[str]) -> Structure:
    """The structure of one candidate's file, comments left out; a file that does not parse is read as it stands."""
    counts: Counter[str] = Counter()
    kernels, has_extension = 0, False
    for text in texts(source):
        names = NAME.findall(INCLUDES.sub(" ", text))
        counts.update(name for name in names if words.fullmatch(name))
        kernels += names.count("__global__")
        has_extension |= not BUILDERS.isdisjoint(names)
    return Structure(counts, has_extension, kernels)


def lost_structure(parent: str, child: str, words: re.Pattern[str], title: str) -> str:
    """What a child lost of its parent's structure, as a sentence; empty when it is still the same kind of kernel.

    `words` are those whose loss counts, `title` is what people call them.
    """
    old, new = structure(parent, words), structure(child, words)
    if old.has_extension and not new.has_extension:
        return "This version drops the custom kernel: no extension is built any more."
    if old.kernels and not new.kernels:
        return f"This version drops the CUDA kernels of its parent ({old.kernels} of them)."
    if old.uses < FEW or new.uses >= max(1.0, LEFT_SHARE * old.uses):
        return ""
    gone = ", ".join(name for name, _ in (old.words - new.words).most_common(4))
    how = f"strips the {title} structure" if not new.uses else f"loses most of the {title} structure"
    return f"This version {how} of its parent: {old.uses} uses became {new.uses} (gone: {gone})."


def texts(source: str) -> list[str]:
    """The strings of a file without the comments of C++, and the names that it calls; of a file that does not parse all
    of it."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [without_comments(re.sub(r'"""|\'\'\'', "\n", source))]
    strings = [
        node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    names = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    called = [
        f.attr if isinstance(f, ast.Attribute) else f.id for f in names if isinstance(f, ast.Attribute | ast.Name)
    ]
    return [*map(without_comments, strings), " ".join(called)]


def without_comments(text: str) -> str:
    """The text without the comments of C++; one that nothing ends is text."""
    return _COMMENTS.sub(_but_unended, text)


def _but_unended(comment: re.Match[str]) -> str:
    is_unended = comment[1] == "" and comment[0].startswith("/*")
    return _LINE_COMMENTS.sub(" ", comment[0]) if is_unended else " "


def is_python(source: str) -> bool:
    """Whether a file can be read as Python at all."""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
