"""Expands macros, pasting included, so that names put together by the preprocessor are seen. Knows no rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.evaluation.screening.tokens import Directive, Sort, Token, tokenize

MAX_EXPANDED = 600_000
MAX_VERSIONS = 4
MAX_DEPTH = 60


class TooLong(Exception):
    """The expansion explodes."""


@dataclass(frozen=True, slots=True)
class Macro:
    """One definition; `parameters` is None for an object-like macro."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    is_variadic: bool = False


def definitions(found: Sequence[Token | Directive]) -> dict[str, list[Macro]]:
    """Every definition of every macro: conditions are not evaluated, so all branches count."""
    macros: dict[str, list[Macro]] = {}
    for item in found:
        if isinstance(item, Directive) and item.keyword == "define" and item.tokens:
            macro = _define(item)
            if macro not in macros.setdefault(macro.name, []):
                macros[macro.name].append(macro)
    return macros


def expanded(found: Sequence[Token | Directive]) -> list[list[Token]]:
    """The tokens without directives, expanded; once for each set of alternative definitions.

    Raises:
        TooLong: the expansion explodes.
    """
    macros, plain = definitions(found), [token for token in found if isinstance(token, Token)]
    versions = min(MAX_VERSIONS, max((len(many) for many in macros.values()), default=1))
    chosen = [
        {name: many[max(0, len(many) - 1 - version)] for name, many in macros.items()} for version in range(versions)
    ]
    return [Expansion(table).run(plain) for table in chosen]


class Expansion:
    """One run with one definition for each name."""

    def __init__(self, macros: Mapping[str, Macro]) -> None:
        self._macros = macros
        self._count = 0

    def run(self, tokens: Sequence[Token]) -> list[Token]:
        """Everything expanded."""
        return self._expand(list(tokens), frozenset(), 0)

    def _expand(self, tokens: list[Token], hidden: frozenset[str], depth: int) -> list[Token]:
        out: list[Token] = []
        place = 0
        while place < len(tokens):
            token = tokens[place]
            macro = self._macros.get(token.text) if token.is_name and token.text not in hidden else None
            if macro is None or depth > MAX_DEPTH:
                out.append(token)
                place += 1
                continue
            arguments, after = _arguments(tokens, place + 1) if macro.parameters is not None else ([], place + 1)
            if arguments is None:
                out.append(token)
                place += 1
                continue
            body = self._substitute(macro, arguments, token.line, hidden, depth)
            self._count += len(body)
            if self._count > MAX_EXPANDED:
                raise TooLong
            inner = self._expand(body, hidden | {macro.name}, depth + 1)
            place = after
            if inner and inner[-1].is_name and inner[-1].text in self._macros and inner[-1].text != macro.name:
                # A macro that expands to the name of a function-like macro takes its arguments from what follows.
                tokens = [inner[-1], *tokens[place:]]
                inner, place = inner[:-1], 0
                depth += 1
            out += inner
        return out

    def _substitute(
        self, macro: Macro, arguments: list[list[Token]], line: int, hidden: frozenset[str], depth: int
    ) -> list[Token]:
        table = _bind(macro, arguments)
        out: list[Token] = []
        body = macro.body
        place = 0
        while place < len(body):
            token = body[place]
            follows = body[place + 1].text if place + 1 < len(body) else ""
            if token.text == "#" and follows in table:
                out.append(Token(Sort.TEXT, " ".join(t.text for t in table[follows]), line))
                place += 2
                continue
            if token.text == "##" and token.sort is Sort.MARK and place + 1 < len(body):
                right = table.get(follows, [body[place + 1]]) if body[place + 1].is_name else [body[place + 1]]
                _paste(out, right, line)
                place += 2
                continue
            if token.is_name and token.text in table:
                raw = table[token.text]
                out += raw if follows == "##" else self._expand(list(raw), hidden, depth + 1)
            else:
                out.append(Token(token.sort, token.text, line))
            place += 1
        return out


def _paste(out: list[Token], right: Sequence[Token], line: int) -> None:
    if not right:
        return
    if not out:
        out += right
        return
    joined = [token for token in tokenize(out.pop().text + right[0].text) if isinstance(token, Token)]
    out += [Token(token.sort, token.text, line) for token in joined]
    out += right[1:]


def _bind(macro: Macro, arguments: list[list[Token]]) -> dict[str, list[Token]]:
    names = macro.parameters or ()
    table = {name: arguments[i] if i < len(arguments) else [] for i, name in enumerate(names)}
    if macro.is_variadic:
        rest: list[Token] = []
        for argument in arguments[len(names) :]:
            if rest:
                rest.append(Token(Sort.MARK, ",", argument[0].line if argument else 0))
            rest += argument
        table["__VA_ARGS__"] = rest
    return table


def _arguments(tokens: Sequence[Token], place: int) -> tuple[list[list[Token]] | None, int]:
    """Arguments of a call that begins at `place`, and where it ends; None when there is no call."""
    if place >= len(tokens) or tokens[place].text != "(":
        return None, place
    found: list[list[Token]] = [[]]
    depth = 0
    for at in range(place, len(tokens)):
        token = tokens[at]
        is_mark = token.sort is Sort.MARK
        if is_mark and token.text in "([{":
            depth += 1
            if depth == 1:
                continue
        elif is_mark and token.text in ")]}":
            depth -= 1
            if depth == 0:
                return found, at + 1
        if is_mark and token.text == "," and depth == 1:
            found.append([])
        else:
            found[-1].append(token)
    return None, place


def _define(item: Directive) -> Macro:
    name, rest = item.tokens[0].text, list(item.tokens[1:])
    if not item.is_call:
        return Macro(name, None, tuple(rest))
    close = next((i for i, token in enumerate(rest) if token.text == ")"), len(rest))
    inside = [token.text for token in rest[1:close] if token.text != ","]
    names = tuple(text for text in inside if text != "...")
    return Macro(name, names, tuple(rest[close + 1 :]), "..." in inside)
