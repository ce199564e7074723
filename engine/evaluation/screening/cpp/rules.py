"""Judges the C++ of a candidate. Knows tokens and tables, not how the text was put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.evaluation.screening import operators
from engine.evaluation.screening.cpp import computing
from engine.evaluation.screening.cpp import tensors as cpp_tensors
from engine.evaluation.screening.cpp.lexer import Directive, Sort, Token, TooLong, expanded, tokenize
from engine.evaluation.screening.cpp.names import (
    CALL_TABLES,
    CLOCKS,
    LIBRARY_HEADERS,
    NARROW_TYPES,
    OUTSIDE_CALLS,
    OUTSIDE_HEADERS,
    PLAIN_TABLES,
    PRECISION,
)
from engine.evaluation.screening.cpp.view import Named, View
from engine.evaluation.screening.finding import Rule
from storage.policy import Policy

ASSEMBLY = re.compile(
    r"\bsyscall\b|\bsysenter\b|\bint\s+\$?0x80|(?:^|[;\n])\s*\.(?:byte|word|short|long|quad|octa|incbin|ascii|asciz|string"
    r"|section|globl|symver|set|macro|include|rept|value|2byte|4byte|8byte|hword|inst|fill|zero)\b"
)
OUTSIDE_PATHS = re.compile(r"/(proc|sys|dev|etc|root|home|var|run)(/|$)")
COPYABLE = ("__device__", "__global__", "static", "inline", "template", "constexpr", "class", "struct")


@dataclass(frozen=True, slots=True)
class Breach:
    """A finding in C++; the line is that of the C++ text."""

    rule: Rule
    line: int
    message: str
    is_refusal: bool


@dataclass(slots=True)
class Unit:
    """One C++ text, read."""

    found: Sequence[Token | Directive]
    views: list[View] = field(default_factory=list)
    is_readable: bool = True

    @classmethod
    def of(cls, source: str) -> Unit:
        """Tokenised and expanded, in every version its conditional macros allow."""
        unit = cls(tokenize(source))
        try:
            unit.views = [View.of(tokens) for tokens in expanded(unit.found)]
        except (TooLong, RecursionError):
            unit.is_readable = False
        return unit

    @property
    def own(self) -> frozenset[str]:
        """Functions it declares."""
        return frozenset(name for view in self.views for name in view.declared)


def breaches(unit: Unit, own: frozenset[str], policy: Policy) -> list[Breach]:
    """All breaches of one text, each once."""
    if not unit.is_readable:
        return [Breach(Rule.DYNAMIC, 1, "the macros of this C++ expand without end; write the code out", True)]
    found = set(_directives(unit.found))
    for view in unit.views:
        for examine in (_plain_names, _calls, _texts, _threads, _clocks):
            found |= set(examine(view))
        found |= set(_library(view, own, policy)) | set(_precision(view, policy)) | set(_cache(view))
    return sorted(found, key=lambda b: (b.line, b.rule, b.message))


def _directives(found: Sequence[Token | Directive]) -> Iterator[Breach]:
    for item in found:
        if isinstance(item, Token):
            if item.text == "\\" and item.sort is Sort.MARK:
                yield Breach(Rule.DYNAMIC, item.line, "a stray backslash in the C++ text hides what it says", True)
            continue
        if item.keyword not in ("include", "include_next", "import", "embed"):
            continue
        match = re.search(r'[<"]([^>"\n]*)[>"]', item.text)
        if match is None or item.keyword == "embed":
            yield Breach(Rule.DYNAMIC, item.line, "#include needs a header's name, not a macro", True)
        elif LIBRARY_HEADERS.search(match[1]):
            yield Breach(
                Rule.LIBRARY,
                item.line,
                f"includes <{match[1]}>, a numerical library; the kernel must compute itself",
                True,
            )
        elif OUTSIDE_HEADERS.fullmatch(match[1]):
            yield Breach(Rule.OUTSIDE, item.line, f"includes <{match[1]}>, which a kernel has no use for", False)
        elif match[1].startswith(("/", "~")) or ".." in match[1]:
            yield Breach(
                Rule.OUTSIDE, item.line, f"includes a file of this machine, {match[1]}; use library headers", True
            )


def _plain_names(view: View) -> Iterator[Breach]:
    for named in view.names():
        for rule, pattern, is_refusal, what in PLAIN_TABLES:
            if pattern.fullmatch(named.leaf):
                yield Breach(rule, _line(view, named), f"C++ `{named.name}` {what}", is_refusal)
        if named.name.startswith(("py::module", "pybind11::module")) and _imports(view, named):
            yield Breach(
                Rule.DYNAMIC, _line(view, named), f"C++ `{named.name}` imports Python modules; leave it out", True
            )
        elif re.match(r"(py|pybind11)::(exec|eval|eval_file|globals|getattr|setattr)$", named.name):
            yield Breach(
                Rule.DYNAMIC, _line(view, named), f"C++ `{named.name}` runs Python from C++; leave it out", True
            )
        elif _is_looked_up(view, named):
            yield Breach(
                Rule.DYNAMIC, _line(view, named), "C++ `.attr()` reaches Python objects by name; leave it out", True
            )
        elif named.name.startswith(("std::filesystem", "boost::", "std::experimental::filesystem")):
            yield Breach(
                Rule.OUTSIDE, _line(view, named), f"C++ `{named.name}` reaches files; a kernel needs none", True
            )
        elif named.leaf == "constructor" and view.text(named.first - 1) in ("(", "::", "["):
            yield Breach(Rule.MACHINERY, _line(view, named), "code that runs when the library is loaded", False)


def _imports(view: View, named: Named) -> bool:
    return named.leaf in ("import", "import_") or view.text(named.last + 2) == "import"


def _is_looked_up(view: View, named: Named) -> bool:
    """`x.attr("name")`, unless it is assigned to, as a module's own attributes are."""
    opening = named.last + 1
    is_call = named.leaf == "attr" and view.is_member(named) and view.text(opening) == "("
    return is_call and view.text(view.after(opening)) != "="


def _calls(view: View) -> Iterator[Breach]:
    for named in view.names():
        head = named.name.rpartition("::")[0]
        if head not in ("", "std", "at", "torch", "c10") or view.is_member(named):
            continue
        is_own = head == "" and named.leaf in view.defined and not _is_global(view, named)
        if is_own or not (view.is_used_as_function(named) or _is_type(named)):
            continue
        for rule, pattern, is_refusal, what in CALL_TABLES:
            if pattern.fullmatch(named.leaf) and not (head and rule is Rule.PROCESSES and head != "std"):
                yield Breach(rule, _line(view, named), f"C++ `{named.name}` {what}", is_refusal)
        is_bare = head == "" and named.leaf not in view.declared
        if is_bare and OUTSIDE_CALLS.fullmatch(named.leaf) and view.text(named.last + 1) == "(":
            yield Breach(
                Rule.OUTSIDE,
                _line(view, named),
                f"C++ `{named.leaf}()` reaches files or the network; a kernel needs none",
                True,
            )


def _is_global(view: View, named: Named) -> bool:
    return view.text(named.first - 1) == "::"


def _is_type(named: Named) -> bool:
    return named.leaf.endswith("fstream") or named.leaf == "filebuf"


def _texts(view: View) -> Iterator[Breach]:
    for place, token in enumerate(view.tokens):
        if token.sort is Sort.TEXT:
            if re.search(r"\b(aten|prims|prim|quantized|mkldnn|onednn)::\w", token.text):
                yield Breach(
                    Rule.LIBRARY, token.line, f"names the library operator {token.text[:60]!r} in a string", True
                )
            elif OUTSIDE_PATHS.match(token.text):
                yield Breach(Rule.OUTSIDE, token.line, f"names a path of this machine, {token.text[:60]!r}", True)
        elif token.text in ("asm", "__asm__", "__asm") and token.is_name:
            end = place + 1
            while end < len(view.tokens) and view.text(end) != "(" and view.text(end) != "{":
                end += 1
            inside = "\n".join(t.text for t in view.tokens[end : view.after(end)] if t.sort is Sort.TEXT)
            if ASSEMBLY.search(inside.lower()):
                yield Breach(
                    Rule.MACHINERY, token.line, "inline assembly with a system call or raw data; leave it out", True
                )


def _threads(view: View) -> Iterator[Breach]:
    if not any(token.text in ("thread", "jthread") and token.is_name for token in view.tokens):
        return
    tensors = frozenset().union(*(cpp_tensors.tensors_in(view, start, end) for start, end in view.parts()))
    for named in view.names():
        if named.leaf == "detach" and view.is_member(named) and view.text(named.first - 2) not in tensors:
            yield Breach(
                Rule.PROCESSES, _line(view, named), "detaches a thread; join every thread before returning", True
            )


def _clocks(view: View) -> Iterator[Breach]:
    """Own definitions of functions that the evaluator itself uses."""
    for start, end in view.parts():
        for named in view.names_between(start, end):
            if view.text(named.last + 1) != "(" or named.leaf in ("__attribute__", "visibility"):
                continue
            head = _without_attributes([view.text(i) for i in range(start, named.first)])
            is_hidden = any(word in COPYABLE for word in head) or "(" in head or "{" in head or "=" in head
            if named.is_plain and named.leaf in CLOCKS and head and not is_hidden and named.leaf in view.defined:
                message = f"defines its own `{named.leaf}`, which the process around it uses; give it another name"
                yield Breach(Rule.MACHINERY, _line(view, named), message, True)
            break


def _without_attributes(head: list[str]) -> list[str]:
    """The words before a function's name, less `__attribute__((...))`, which says nothing about who can see it."""
    kept, depth, is_inside = [], 0, False
    for word in head:
        is_inside = is_inside or word == "__attribute__"
        depth += (word == "(") - (word == ")") if is_inside else 0
        if not is_inside:
            kept.append(word)
        is_inside = is_inside and not (word == ")" and depth == 0)
    return kept


def _library(view: View, own: frozenset[str], policy: Policy) -> Iterator[Breach]:
    for computed in computing.computing(view, own):
        if not operators.is_allowed(computed.name, policy.library_operators):
            message = f"C++ `{computed.what}` lets PyTorch compute; write the computation in the kernel"
            yield Breach(Rule.LIBRARY, computed.line, message, True)


def _precision(view: View, policy: Policy) -> Iterator[Breach]:
    if policy.precision not in ("fp32", "tf32"):
        return
    seen: dict[str, int] = {}
    for named in view.names():
        is_cast = NARROW_TYPES.fullmatch(named.leaf) and view.text(named.first - 2) in ("to", "toType", "dtype")
        if not (PRECISION.fullmatch(named.leaf) or is_cast) or (policy.precision == "tf32" and "float32" in named.leaf):
            continue
        is_variable = named.leaf == "half" and not (
            view.at(named.last + 1).is_name or view.text(named.first - 1) == "<"
        )
        if not is_variable and not (named.leaf == "Half" and named.is_plain):
            seen.setdefault(named.leaf, _line(view, named))
    if seen:
        names = ", ".join(f"`{name}`" for name in sorted(seen)[:4])
        yield Breach(Rule.PRECISION, min(seen.values()), f"C++ uses {names}; outputs must be {policy.precision}", False)


def _cache(view: View) -> Iterator[Breach]:
    for name, line in cpp_tensors.remembered(view):
        yield Breach(Rule.CACHE, line, f"the tensor `{name}` outlives a call; results must be computed anew", False)


def _line(view: View, named: Named) -> int:
    return view.at(named.first).line
