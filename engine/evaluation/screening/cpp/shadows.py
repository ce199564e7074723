"""Where in C++ a name that also names a tensor stands for a nearer variable that is none. Knows no rule.

Only what is surely no tensor counts: of types and values that cannot be read here, a name keeps its tensor.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from engine.evaluation.screening.cpp.tensors import chain_end, is_tensor_type
from engine.evaluation.screening.cpp.view import Named, View
from engine.evaluation.screening.operators import words

BUILT_IN = words("void bool char short int long float double signed unsigned wchar_t")
KNOWN = BUILT_IN | words(
    """size_t ssize_t ptrdiff_t intptr_t uintptr_t half bfloat16 dim3 cudaStream_t cudaError_t float2 float3 float4
    double2 double4 int2 int3 int4 uint2 uint4 half2 const volatile"""
)
KNOWN_PATTERN = re.compile(r"u?int(_fast|_least)?\d+_t|__m(64|128|256|512)[di]?|__half2?|__nv_bfloat162?")
LIBRARIES = re.compile(r"(std|cute|cutlass|at::vec)::[\w:]+")
HOLDS_TENSOR = frozenset({"Tensor", "TensorBase", "Variable", "auto", "decltype"})
SPECIFIERS = words("const static constexpr thread_local volatile mutable register typename struct alignas extern")
POINTERS = words("* & && const volatile __restrict__ __restrict restrict")
FOLLOWERS = words("= ; , ) { ( [ :")
CONTROL = words("if for while switch catch")
NO_NAMES = words(
    """return else case goto throw new delete do sizeof co_return co_await co_yield typename class struct union enum
    using namespace template operator public private protected and or not"""
)
AFTER_PARAMETERS = words("mutable noexcept const override final")
VALUE_WORDS = BUILT_IN | words("static_cast reinterpret_cast const_cast sizeof true false nullptr const")
MAKERS = words(
    """make_tensor make_gmem_ptr make_smem_ptr make_layout make_shape make_stride make_coord local_tile local_partition
    size get min max exp expf sqrt sqrtf fabs fabsf fmaf fma tanh tanhf log logf pow powf _ Int"""
)
MOST = 400


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


@dataclass(frozen=True, slots=True)
class Declared:
    """One variable: where its name is seen, and whether it is surely no tensor."""

    start: int
    end: int
    is_plain: bool


class Shadows:
    """The variables of one top-level part."""

    def __init__(self, view: View, types: Types, start: int, end: int, tensors: frozenset[str]) -> None:
        self._view, self._types, self._end, self._tensors = view, types, end, tensors
        self._table: dict[str, list[Declared]] = {}
        self._openers = self._opened(start, end)
        # A lambda with template parameters declares names where this reading would see variables.
        self._is_readable = not any(view.text(i) == "]" and view.text(i + 1) == "<" for i in range(start, end))
        for place in range(start, end if self._is_readable else start):
            self._read(place)

    def hides(self, named: Named) -> bool:
        """True when the name stands for something that is no tensor here."""
        return self._nearest(named.name, named.first) is True

    def _nearest(self, name: str, place: int) -> bool | None:
        """Whether the nearest variable of this name is plain; None without one."""
        many = self._table.get(name, ())
        if len(many) > MOST:
            return None
        inside = [each for each in many if each.start <= place < each.end]
        return max(inside, key=lambda each: each.start).is_plain if inside else None

    def _opened(self, start: int, end: int) -> dict[int, int]:
        """The bracket around each place."""
        found: dict[int, int] = {}
        stack = [-1]
        for place in range(start, end):
            while len(stack) > 1 and self._view.after(stack[-1]) - 1 <= place:
                stack.pop()
            found[place] = stack[-1]
            if place in self._view.pairs:
                stack.append(place)
        return found

    def _read(self, place: int) -> None:
        view, before = self._view, self._view.at(place - 1)
        is_labelled = before.text == ":" and view.text(place - 3) in (";", "{", "}")
        if (is_labelled or before.text in (";", "{", "}", "(", ",", ")", "]", "")) and view.at(place).is_name:
            if before.text != "," or view.text(self._openers[place]) == "(":
                self._declaration(place)
        elif before.text in ("[", ",", "&") and view.text(place + 1) == "=" and self._is_capture(place):
            self._learn(view.text(place), place, self._is_plain_value(place + 2))
        if view.at(place).is_name and before.is_name and before.text not in NO_NAMES | SPECIFIERS | VALUE_WORDS:
            self._unread(place)
        named = view.named_at(place)
        if named is not None and (is_tensor_type(view, named) or named.name == "auto"):
            self._unread(self._after_pointers(named.last + 1))
        elif view.text(place) == "decltype":
            self._unread(self._after_pointers(view.after(place + 1)))

    def _unread(self, place: int) -> None:
        """A variable of a type not read: it is no tensor for certain only where a declaration says so."""
        name = self._view.text(place)
        if self._view.at(place).is_name and not any(each.start == place for each in self._table.get(name, ())[-4:]):
            self._learn(name, place, False)

    def _declaration(self, place: int) -> None:
        view = self._view
        while view.text(place) in SPECIFIERS:
            place = view.after(place + 1) if view.text(place) == "alignas" else place + 1
        end = self._after_type(place)
        if end is None:
            return
        is_auto = view.text(place) == "auto"
        is_plain = not is_auto and self._types.is_plain(place, end)
        for name, value in self._declarators(end):
            is_value = is_auto and value is not None and self._is_plain_value(value)
            seen = end if view.text(name + 1) in ("]", ",") and view.text(end) == "[" else name
            self._learn(view.text(name), seen, is_plain or is_value)

    def _after_type(self, place: int) -> int | None:
        view = self._view
        if view.text(place) in BUILT_IN:
            while view.text(place) in BUILT_IN or view.text(place) == "const":
                place += 1
            return place
        if view.text(place) in NO_NAMES or not view.at(place).is_name:
            return None
        while view.at(place).is_name:
            place += 1
            if view.text(place) == "(" and view.text(place - 1) == "decltype":
                place = view.after(place)
            if view.text(place) == "<":
                place = self._after_angle(place)
            if view.text(place) != "::":
                return place
            place += 1
        return None

    def _after_angle(self, place: int) -> int:
        depth, start = 0, place
        while place < self._end and place - start < MOST:
            depth += {"<": 1, ">": -1, ">>": -2}.get(self._view.text(place), 0)
            place += 1
            if depth <= 0 or self._view.text(place) in (";", "{"):
                break
        return place

    def _after_pointers(self, place: int) -> int:
        while self._view.text(place) in POINTERS:
            place += 1
        return place

    def _declarators(self, place: int) -> Iterator[tuple[int, int | None]]:
        """(place of the name, place of its value) for each variable of one declaration."""
        view = self._view
        is_list = view.text(self._openers.get(place, -1)) != "(" or self._is_control(self._openers[place])
        while True:
            place = self._after_pointers(place)
            if view.text(place) == "[" and view.text(view.after(place)) == "=":
                yield from ((i, view.after(place) + 1) for i in range(place, view.after(place)) if view.at(i).is_name)
                return
            following = view.text(place + 1)
            if not view.at(place).is_name or view.text(place) in NO_NAMES or following not in FOLLOWERS:
                return
            yield place, place + 2 if following in ("=", ":") else None
            place = self._after_value(place + 1)
            if view.text(place) != "," or not is_list:
                return
            place += 1

    def _after_value(self, place: int) -> int:
        while place < self._end and self._view.text(place) not in (",", ";", ")", "}", "]"):
            place = self._view.after(place) if place in self._view.pairs else place + 1
        return place

    def _is_plain_value(self, place: int) -> bool:
        """True when everything that a value is made of is known and no tensor."""
        view, end = self._view, self._after_value(place)
        if view.text(place) == "[" or view.opened & {"at", "torch"} or end - place > MOST:
            return False
        return all(self._is_plain_part(named) for named in view.names_between(place, end) if not view.is_member(named))

    def _is_plain_part(self, named: Named) -> bool:
        view, nearest = self._view, self._nearest(named.name, named.first)
        if nearest is not None and nearest:
            return True
        if named.name in self._tensors:
            return chain_end(view, named.last + 1) is not None
        if nearest is not None or named.leaf in view.declared:
            return False
        is_known = named.name in VALUE_WORDS | MAKERS or named.name.startswith(("std::", "cute::"))
        return is_known or self._types.is_plain(named.first, named.last + 1)

    def _learn(self, name: str, place: int, is_plain: bool) -> None:
        start, end = self._seen(place)
        if end > start:
            self._table.setdefault(name, []).append(Declared(start, end, is_plain))

    def _seen(self, place: int) -> tuple[int, int]:
        """From where to where a variable declared here is seen."""
        view, opener = self._view, self._openers.get(place, -1)
        bracket = view.text(opener)
        if bracket == "{":
            return (opener if self._is_class(opener) else place), view.after(opener)
        if bracket == "(":
            return place, self._after_body(opener)
        if bracket == "[":
            following = view.after(opener)
            return place, self._after_body(following if view.text(following) == "(" else opener)
        return place, place

    def _after_body(self, opener: int) -> int:
        """The end of the body that belongs to a bracket of parameters; the bracket's own end without one."""
        view, close = self._view, self._view.after(opener)
        place = close
        while view.text(place) in AFTER_PARAMETERS:
            place += 1
        if view.text(place) == "->":
            while place < self._end and view.text(place) not in ("{", ";", ")", ","):
                place += 1
        elif view.text(place) == ":" and not self._is_control(opener):
            place = self._after_members(place)
        if view.text(place) == "{":
            return view.after(place)
        return self._after_statement(close) if self._is_control(opener) else close

    def _after_members(self, place: int) -> int:
        """The body after `: a(1), b{2}`."""
        view = self._view
        while view.text(place) in (":", ",") and view.at(place + 1).is_name and place + 2 in view.pairs:
            place = view.after(place + 2)
        return place

    def _after_statement(self, place: int) -> int:
        view = self._view
        while place < self._end and view.text(place) not in (";", "}"):
            if view.text(place) == "{":
                return view.after(place)
            place = view.after(place) if place in view.pairs else place + 1
        return place + 1

    def _is_control(self, opener: int) -> bool:
        return self._view.text(opener - 1) in CONTROL or self._view.text(opener - 2) in CONTROL

    def _is_capture(self, place: int) -> bool:
        opener = self._openers.get(place, -1)
        return self._view.text(opener) == "[" and self._view.text(self._view.after(opener)) in ("(", "{", "mutable")

    def _is_class(self, opener: int) -> bool:
        place = opener - 1
        while place >= 0 and opener - place < 40 and self._view.text(place) not in (";", "{", "}", "(", ")"):
            if self._view.text(place) in ("struct", "class", "union"):
                return True
            place -= 1
        return False
