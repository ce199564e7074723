"""Compiler flags: what every candidate gets, what a candidate may add, and which sets share a precompiled header."""

from __future__ import annotations

import re
from collections.abc import Sequence

BASE = (
    "-std=c++20",
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp",
    "-fPIC",
)
# cute::copy moves 128-bit words through recast pointers: with strict aliasing g++ returns wrong data without a warning.
LAST = ("-fno-strict-aliasing",)
OVERRULED = ("-fstrict-aliasing",)
# Line tables, so that a profile can tell lines; they change no instruction, and nothing of them is loaded.
QUIET = ("-w", "-g1", "-fdiagnostics-color=never", "-fmax-errors=12", "-ftemplate-backtrace-limit=4")

ALLOWED = re.compile(
    r"-(O[0-3s]?|Ofast|g\d?|f[a-z][\w=,.+-]*|m[\w=,.+-]+|D\w+(=[\w.+-]*)?|U\w+|W[\w=+,-]*|w|std=[\w+]+)"
)
REFUSED = re.compile(
    r"-f(plugin|dump|profile|auto-profile|sanitize|save|callgraph|instrument|lto|use-ld|pre-include)|-W[alp],"
)
SHARED_HEADER = (frozenset[str](), frozenset({"-ffast-math"}))


# What every extension is linked with, and where the linker would look for it.
LINKED = re.compile(
    r"-l(m|pthread|dl|rt|gomp|stdc\+\+|c10|torch(_cpu|_python)?)|-fopenmp|-pthread|-shared|-L.*|-Wl,-rpath.*"
)


class FlagRefused(ValueError):
    """A candidate asked for a flag that reaches beyond its own code."""


def allowed(extra: Sequence[str]) -> tuple[str, ...]:
    """The candidate's own flags, without those it gets anyway and those that ours overrule.

    Raises:
        FlagRefused: a flag may not be used.
    """
    words = [word for flag in extra for word in flag.split()]
    for word in words:
        if not ALLOWED.fullmatch(word) or REFUSED.match(word):
            raise FlagRefused(
                f"the flag {word!r} is not allowed in extra_cflags; "
                f"code generation flags (-O, -f, -m, -D, -std) are, include paths and plugins are not"
            )
    ours = (*BASE, *LAST, *OVERRULED)
    return tuple(word for word in words if word not in ours and not word.startswith(("-W", "-std=")))


def not_linked(extra: Sequence[str]) -> list[str]:
    """Those of the candidate's flags for the linker that would change what is linked."""
    return [word for flag in extra for word in flag.split() if not LINKED.fullmatch(word)]


def compile_flags(extra: Sequence[str]) -> tuple[str, ...]:
    """Everything that shapes the generated code, in order; the last word is ours."""
    return (*BASE, *extra, *LAST)


def has_shared_header(extra: Sequence[str]) -> bool:
    """True when this set is common enough to pay for a precompiled header once."""
    return frozenset(extra) in SHARED_HEADER
