"""The languages in which kernels are written, by name. Knows no toolchain: CuTe is built for both.

A language has no parts of its own yet: what prompts and screening say of CuTe stands in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import EngineError

DEFAULT = "cute"
LANGUAGES: Mapping[str, str] = {"cute": "CuTe, the tensor and layout library of CUTLASS, in C++"}


def check_language(name: str) -> None:
    """Raises EngineError for a language that there is not."""
    if name not in LANGUAGES:
        raise EngineError(f"unknown language {name!r}: use {', '.join(LANGUAGES)}")
