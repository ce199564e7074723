"""Functions, methods and operators by which C++ lets PyTorch compute. Says what and where, judges nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from engine.evaluation.screening import operators
from engine.evaluation.screening.cpp.names import COMPUTING_NAMESPACES
from engine.evaluation.screening.cpp.shadows import Shadows, Types
from engine.evaluation.screening.cpp.tensors import (
    FREE_CPP_METHODS,
    LAST_OF_CHAIN,
    chain,
    chain_end,
    global_tensors,
    is_about_device,
    is_computing_function,
    tensors_in,
)
from engine.evaluation.screening.cpp.view import Named, View
from engine.evaluation.screening.operators import words

ARITHMETIC = words("""+ - * / % += -= *= /= %= <= >= < > == !=""")
KEYWORDS = words(
    """if while for switch return sizeof decltype alignof typeid catch static_assert noexcept defined assert printf
    swap static_cast reinterpret_cast const_cast dynamic_cast move forward make_tuple tie operator throw explicit"""
)


@dataclass(frozen=True, slots=True)
class Computed:
    """An operator that PyTorch computes, and where."""

    name: str
    what: str
    line: int


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of one part."""

    names: frozenset[str]
    shadows: Shadows

    def has(self, named: Named) -> bool:
        """True when a name stands for a tensor where it is written."""
        return named.is_plain and named.name in self.names and not self.shadows.hides(named)


def computing(view: View, own: frozenset[str]) -> Iterator[Computed]:
    """Everything PyTorch would compute. `own`: names of functions declared anywhere in the candidate's C++."""
    yield from _functions(view)
    types, everywhere = Types(view), global_tensors(view)
    for start, end in view.parts():
        if tensors := tensors_in(view, start, end) | everywhere:
            shadows = Shadows(view, types, start, end, tensors)
            yield from _on_tensors(view, start, end, Tensors(tensors, shadows), own)


def _functions(view: View) -> Iterator[Computed]:
    for named in view.names():
        name = named.name
        if COMPUTING_NAMESPACES.match(name):
            if is_computing_function(name):
                yield Computed(_path(name), name, view.at(named.first).line)
        elif is_computing_function(name) and view.is_used_as_function(named) and not view.is_member(named):
            yield Computed(_path(name), name, view.at(named.first).line)


def _path(name: str) -> str:
    """`at::conv2d` as `torch.conv2d`, so that a task's allowed operators apply to both languages."""
    parts = name.split("::")
    leaf = parts[2] if parts[:2] == ["at", "_ops"] and len(parts) > 2 else parts[-1]
    return f"torch.{leaf}"


def _on_tensors(view: View, start: int, end: int, tensors: Tensors, own: frozenset[str]) -> Iterator[Computed]:
    for named in view.names_between(start, end):
        line = view.at(named.first).line
        if tensors.has(named) and not view.is_member(named):
            yield from _methods(view, named.last + 1, named.name)
            yield from _arithmetic(view, named)
        elif is_about_device(named.name) and named.leaf not in own:
            continue
        elif re.match(r"(at|torch)::[a-z]", named.name) and view.text(named.last + 1) == "(":
            yield from _methods(view, view.after(named.last + 1), named.name)
        elif _is_lookup(view, named, tensors, own):
            yield Computed(f"torch.{named.leaf}", f"{named.name}() on a tensor", line)


def _methods(view: View, place: int, owner: str) -> Iterator[Computed]:
    for method, at in chain(view, place):
        if not (operators.is_free_method(method) or method in FREE_CPP_METHODS or method.startswith("is_")):
            yield Computed(f"torch.Tensor.{method}", f"{owner}.{method}()", view.at(at).line)
        if method in LAST_OF_CHAIN or method.startswith("is_"):
            return


def _arithmetic(view: View, named: Named) -> Iterator[Computed]:
    place = named.last + 1
    before, further = view.text(named.first - 1), view.at(named.first - 2)
    while view.text(place) == "[":
        place = view.after(place)
    following = view.text(place)
    is_operand_before = further.is_name or further.sort == "number" or further.text in (")", "]")
    is_left = following in ARITHMETIC and before not in ("&", "*", "::") and not _is_declarator(view, named)
    is_right = before in ("+", "-", "*", "/", "%", "+=", "-=", "*=", "/=") and following not in (".", "->", "(")
    is_right = is_right and (before == "-" or is_operand_before) and not _is_declarator(view, named)
    if is_left or is_right:
        mark = following if is_left else before
        yield Computed("operator." + mark, f"{named.name} {mark} ... on tensors", view.at(named.first).line)


def _is_declarator(view: View, named: Named) -> bool:
    """`torch::Tensor* x`, `Tensor x = ...`: the name is being declared."""
    place = named.first - 1
    while view.text(place) in ("*", "&", "&&", "const"):
        place -= 1
    return view.at(place).is_name and view.text(place) in ("Tensor", "auto", "TensorBase", "Variable")


def _is_lookup(view: View, named: Named, tensors: Tensors, own: frozenset[str]) -> bool:
    """An undeclared function called on a tensor: C++ finds PyTorch's by its argument."""
    is_call = view.text(named.last + 1) == "(" and named.is_plain and not view.is_member(named)
    if not is_call or named.name in own or not re.fullmatch(r"_?[a-z][a-z0-9_]*", named.name):
        return False
    if operators.is_free_method(named.name) or named.name in KEYWORDS or view.is_declaration(named):
        return False
    return any(_is_tensor_argument(view, place, tensors) for place in _argument_starts(view, named.last + 1))


def _argument_starts(view: View, place: int) -> Iterator[int]:
    end = view.after(place) - 1
    yield place + 1
    place += 1
    while place < end:
        if view.text(place) in ("(", "[", "{"):
            place = view.after(place)
            continue
        if view.text(place) == ",":
            yield place + 1
        place += 1


def _is_tensor_argument(view: View, place: int, tensors: Tensors) -> bool:
    named = view.named_at(place)
    if named is None or not tensors.has(named):
        return False
    following = view.text(named.last + 1)
    return following in (",", ")") or (following in (".", "[") and chain_end(view, named.last + 1) is None)
