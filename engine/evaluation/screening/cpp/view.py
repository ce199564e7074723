"""Expanded C++ tokens seen as names with their namespaces, calls, functions and top-level parts. Knows no rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from engine.evaluation.screening.cpp.lexer import Sort, Token
from engine.evaluation.screening.operators import words

OPENING, CLOSING = "([{", ")]}"
NOT_TYPES = words("""return else case goto throw new delete do sizeof co_return co_await co_yield typeof""")
NO_TOKEN = Token(Sort.MARK, "", 0)


@dataclass(frozen=True, slots=True)
class Named:
    """A name with its namespaces, aliases resolved, and the places of its first and last token."""

    name: str
    first: int
    last: int

    @property
    def leaf(self) -> str:
        """The name without namespaces."""
        return self.name.rpartition("::")[2]

    @property
    def is_plain(self) -> bool:
        """True without namespaces."""
        return "::" not in self.name


@dataclass(slots=True)
class View:
    """One translation unit."""

    tokens: Sequence[Token]
    aliases: dict[str, str] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    pairs: dict[int, int] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> View:
        """With everything filled in."""
        view = cls(merged(tokens))
        view._pair()
        view._find_aliases()
        view._find_functions()
        return view

    def at(self, place: int) -> Token:
        """The token at a place, an empty mark outside."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else NO_TOKEN

    def text(self, place: int) -> str:
        """Its text; empty for strings, which could look like marks."""
        token = self.at(place)
        return token.text if token.sort is not Sort.TEXT else ""

    def after(self, place: int) -> int:
        """The place after the bracket that opens here."""
        return self.pairs.get(place, len(self.tokens) - 1) + 1

    def names(self) -> Iterator[Named]:
        """Every name, with namespaces joined."""
        return self.names_between(0, len(self.tokens))

    def names_between(self, start: int, end: int) -> Iterator[Named]:
        """The names of one part."""
        place = start
        while place < end:
            named = self.named_at(place)
            if named is not None:
                yield named
                place = named.last
            place += 1

    def named_at(self, place: int) -> Named | None:
        """The name that begins here."""
        if not self.at(place).is_name:
            return None
        first, parts = place, [self.at(place).text]
        while self.text(place + 1) == "::" and self.at(place + 2).is_name:
            place += 2
            parts.append(self.at(place).text)
        return Named(self.resolved(parts), first, place)

    def resolved(self, parts: Sequence[str]) -> str:
        """Aliases of the first part taken away."""
        head, seen = parts[0], set()
        while head in self.aliases and head not in seen:
            seen.add(head)
            head = self.aliases[head]
        return "::".join((head, *parts[1:]))

    def is_member(self, named: Named) -> bool:
        """True after a dot or an arrow."""
        return self.text(named.first - 1) in (".", "->") or (
            self.text(named.first - 1) == "template" and self.text(named.first - 2) in (".", "->")
        )

    def is_used_as_function(self, named: Named) -> bool:
        """True when it is called, or taken as a value."""
        following, before = self.text(named.last + 1), self.text(named.first - 1)
        if before == "::":
            before = self.text(named.first - 2)
        if following == "(":
            return True
        if following == "<":
            return before in ("=", "(", ",", "return", "&", "{", ";", "}")
        return before in ("=", "(", ",", "&", "return", "{") and following in (";", ")", ",", "}")

    def is_declaration(self, named: Named) -> bool:
        """True for `Type name(` : a declaration or definition, not a call."""
        before = self.at(named.first - 1)
        is_type = (before.is_name and before.text not in NOT_TYPES) or before.text in ("*", "&", ">", "&&")
        return self.text(named.last + 1) == "(" and is_type and (before.is_name or self._is_type_mark(named.first - 1))

    def _is_type_mark(self, place: int) -> bool:
        """A `*`, `&` or `>` at the end of a type: before it stands a name or another mark, before that no operand."""
        while self.text(place) in ("*", "&", "&&", "const"):
            place -= 1
        if self.text(place) == ">":
            return True
        return self.at(place).is_name and self.text(place - 1) in (
            "",
            ";",
            "}",
            "{",
            ")",
            "const",
            "static",
            "inline",
            "::",
        )

    def parts(self) -> Iterator[tuple[int, int]]:
        """(start, end) of each top-level declaration or function; namespaces are looked through."""
        start = place = 0
        while place < len(self.tokens):
            text = self.text(place)
            if text == "{" and self._is_transparent(start, place):
                start = place = place + 1
                continue
            if text in OPENING and text:
                place = self.after(place)
                if text == "{" and self.text(place) != ";":
                    yield start, place
                    start = place
                continue
            place += 1
            if text in (";", "}"):
                yield start, place
                start = place
        if start < len(self.tokens):
            yield start, len(self.tokens)

    def _is_transparent(self, start: int, place: int) -> bool:
        words = [self.at(i).text for i in range(start, place)]
        if "namespace" in words:
            return True
        return words[-2:] in (["extern", "C"], ["extern", "C++"])

    def _pair(self) -> None:
        stack: list[int] = []
        for place, token in enumerate(self.tokens):
            if token.sort is not Sort.MARK or not token.text:
                continue
            if token.text in OPENING:
                stack.append(place)
            elif token.text in CLOSING and stack:
                self.pairs[stack.pop()] = place

    def _find_aliases(self) -> None:
        for place in range(len(self.tokens)):
            word = self.text(place)
            if word not in ("namespace", "using", "typedef"):
                continue
            end = place
            while end < len(self.tokens) and self.text(end) not in (";", "{"):
                end += 1
            words = [self.text(i) for i in range(place + 1, end)]
            if (word == "namespace" and "=" in words[1:2]) or (word == "using" and "=" in words[1:2]):
                self.aliases[words[0]] = "".join(w for w in words[2:] if w not in ("typename", "const")).removeprefix(
                    "::"
                )
            elif word == "using" and words[:1] == ["namespace"]:
                self.opened.add("".join(words[1:]).removeprefix("::"))
            elif word == "using" and "::" in words:
                self.aliases[words[-1]] = "".join(words).removeprefix("::")
            elif word == "typedef" and len(words) > 1 and words[-1].isidentifier():
                self.aliases[words[-1]] = "".join(words[:-1]).removeprefix("::")

    def _find_functions(self) -> None:
        for place, token in enumerate(self.tokens):
            if not token.is_name:
                continue
            following = self.text(place + 1)
            named = Named(token.text, place, place)
            if following == "(" and self.is_declaration(named):
                self.declared.add(token.text)
                end = self.after(place + 1)
                while (
                    self.text(end) in ("const", "noexcept", "override", "final") or self.at(end).text == "__restrict__"
                ):
                    end += 1
                if self.text(end) in ("{", "->"):
                    self.defined.add(token.text)
            elif following in ("=", "{") and (self.text(place - 1) == "auto" or self.text(place - 2) == "auto"):
                self.declared.add(token.text)
                self.defined.add(token.text)


def merged(tokens: Sequence[Token]) -> list[Token]:
    """Neighbouring strings as one, as the compiler joins them."""
    out: list[Token] = []
    for token in tokens:
        if token.sort is Sort.TEXT and out and out[-1].sort is Sort.TEXT:
            out[-1] = Token(Sort.TEXT, out[-1].text + token.text, out[-1].line)
        else:
            out.append(token)
    return out
