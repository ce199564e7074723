"""Which C++ types are surely no tensor of PyTorch's. Knows no rule, no scope and no value."""

from __future__ import annotations

import re
from collections import Counter

from engine.evaluation.screening.cpp_view import View
from engine.evaluation.screening.tables import words

BUILT_IN = words("void bool char short int long float double signed unsigned wchar_t")
KNOWN = BUILT_IN | words(
    """size_t ssize_t ptrdiff_t intptr_t uintptr_t half bfloat16 dim3 cudaStream_t cudaError_t float2 float3 float4
    double2 double4 int2 int3 int4 uint2 uint4 half2 const volatile"""
)
KNOWN_PATTERN = re.compile(r"u?int(_fast|_least)?\d+_t|__m(64|128|256|512)[di]?|__half2?|__nv_bfloat162?")
LIBRARIES = re.compile(r"(std|cute|cutlass|at::vec)::[\w:]+")
HOLDS_TENSOR = frozenset({"Tensor", "TensorBase", "Variable", "auto", "decltype"})


class Types:
    """The types of one translation unit."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._classes = frozenset(self._plain_classes())
        self._aliases = {name: text for name, text in view.aliases.items() if name not in self._unclear_names()}

    def is_plain(self, start: int, end: int) -> bool:
        """True when every name of the type written from start to end is known."""
        found, place = False, start
        while place < end:
            if not self._view.at(place).is_name:
                place += 1
                continue
            parts = [self._view.text(place)]
            while self._view.text(place + 1) == "::" and place + 2 < end:
                place += 2
                parts.append(self._view.text(place))
            place += 1
            found = True
            if not self._is_known(parts):
                return False
        return found

    def _is_known(self, parts: list[str], depth: int = 0) -> bool:
        name = "::".join(parts)
        if name in KNOWN or KNOWN_PATTERN.fullmatch(name) or name in self._classes:
            return name not in self._view.aliases
        if LIBRARIES.fullmatch(name):
            return True
        if len(parts) == 1 and name in self._aliases and depth < 4:
            inner = re.findall(r"[A-Za-z_][\w:]*", self._aliases[name])
            return bool(inner) and all(self._is_known(each.split("::"), depth + 1) for each in inner)
        return False

    def _plain_classes(self) -> list[str]:
        """Classes without bases and without a tensor inside."""
        view, found = self._view, []
        for place in range(len(view.tokens) - 2):
            if view.text(place) in ("struct", "class", "union") and view.text(place + 2) == "{":
                inside = {view.text(i) for i in range(place, min(view.after(place + 2), place + 4000))}
                if not inside & HOLDS_TENSOR:
                    found.append(view.text(place + 1))
        return [name for name, count in Counter(found).items() if count == 1]

    def _unclear_names(self) -> set[str]:
        """Names that a template takes as a parameter, or that two aliases share."""
        view = self._view
        words = [(view.text(i), view.text(i - 1), view.text(i + 1)) for i in range(1, len(view.tokens))]
        unclear = {name for name, before, _ in words if before in ("class", "typename", "...")}
        given = Counter(name for name, before, after in words if before == "using" or after == ";")
        return unclear | {name for name, count in given.items() if count > 1 and name in view.aliases}
