"""C++ text into tokens as the compiler sees them: splices, comments, raw strings, digraphs, directives, macros.

Macros are expanded, pasting included, so that names put together by the preprocessor are seen. Knows no rule.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_TOKENS = 400_000
_RAW = re.compile(r'(?:u8|u|U|L)?R"([^()\\\s"]{0,16})\(')
_LEXEME = re.compile(
    r"""(?P<space>[ \t\v\f\r]+)
    |(?P<newline>\n)
    |(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<text>(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z))
    |(?P<character>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z))
    |(?P<number>\.?[0-9](?:[eEpP][+-]|'(?=\w)|[\w.])*)
    |(?P<name>(?:[^\W\d]|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})(?:\w|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})*)
    |(?P<mark><<=|>>=|<=>|\.\.\.|->\*|%:%:|::|\#\#|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=
        |\.\*|<:|:>|<%|%>|%:|.)""",
    re.VERBOSE | re.DOTALL,
)
_DIGRAPHS = {"<:": "[", ":>": "]", "<%": "{", "%>": "}", "%:": "#", "%:%:": "##"}
_NAMED_MARKS = {"and": "&&", "or": "||", "not": "!", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~"}
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})")
_SIMPLE = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
MAX_EXPANDED = 600_000
MAX_VERSIONS = 4
MAX_DEPTH = 60


class Sort(StrEnum):
    """What a token is."""

    NAME = "name"
    NUMBER = "number"
    TEXT = "text"
    CHARACTER = "character"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` of a string is what stands between its quotes. `line` counts from 1 in its source."""

    sort: Sort
    text: str
    line: int

    @property
    def is_name(self) -> bool:
        """True for identifiers and keywords."""
        return self.sort is Sort.NAME


@dataclass(frozen=True, slots=True)
class Directive:
    """A `#` line: its keyword and the tokens after it. `is_call` for a macro whose name touches a parenthesis."""

    keyword: str
    tokens: tuple[Token, ...]
    text: str
    line: int
    is_call: bool = False


def tokenize(source: str) -> list[Token | Directive]:
    """Tokens and directives in order; never fails: what is not C++ becomes single marks."""
    pieces = Pieces(source)
    found: list[Token | Directive] = []
    line_start = True
    gathered: list[tuple[Token, int, int]] = []
    is_directive = False
    start = 0
    for sort, text, line, position in pieces.lexemes():
        if len(found) > MAX_TOKENS:
            break
        if sort == "newline":
            if is_directive:
                found.append(_directive(gathered, pieces.text[start:position]))
            line_start, is_directive, gathered = True, False, []
        elif line_start and text in ("#", "%:"):
            is_directive, line_start, start = True, False, position
            gathered = []
        else:
            token = (_token(sort, text, line), position, position + len(text))
            line_start = False
            if is_directive:
                gathered.append(token)
            else:
                found.append(token[0])
    if is_directive:
        found.append(_directive(gathered, pieces.text[start:]))
    return found


class Pieces:
    """A source with line continuations removed, and the way back to its lines. Raw strings keep theirs."""

    def __init__(self, source: str) -> None:
        self.text, self._cuts = _splice(source.replace("\r\n", "\n").replace("\r", "\n"))
        self._starts = [0]
        for match in re.finditer("\n", self.text):
            self._starts.append(match.end())

    def lexemes(self) -> Iterator[tuple[str, str, int, int]]:
        """(sort, text, line, position), without spaces and comments."""
        position = 0
        while position < len(self.text):
            raw = _RAW.match(self.text, position)
            if raw:
                end = self.text.find(f'){raw[1]}"', raw.end())
                stop = len(self.text) if end < 0 else end
                yield "raw", self.text[raw.end() : stop], self._line(position), position
                position = len(self.text) if end < 0 else end + len(raw[1]) + 2
                continue
            match = _LEXEME.match(self.text, position)
            if match is None:
                position += 1
                continue
            if match.lastgroup not in ("space", "comment"):
                yield str(match.lastgroup), match[0], self._line(position), position
            position = match.end()

    def _line(self, position: int) -> int:
        return bisect_right(self._starts, position) + bisect_right(self._cuts, position)


def _splice(source: str) -> tuple[str, list[int]]:
    """Text without backslash-newlines outside raw strings, and where in it they were."""
    kept: list[str] = []
    cuts: list[int] = []
    position = length = 0
    pattern = re.compile(r'\\[ \t]*\n|(?:u8|u|U|L)?R"([^()\\\s"]{0,16})\(')
    while match := pattern.search(source, position):
        if match[0].startswith("\\"):
            kept.append(source[position : match.start()])
            length += match.start() - position
            cuts.append(length)
            position = match.end()
        else:
            end = source.find(f'){match[1]}"', match.end())
            if end < 0:
                end = match.end()
            kept.append(source[position:end])
            length += end - position
            position = end
    kept.append(source[position:])
    return "".join(kept), cuts


def _token(sort: str, text: str, line: int) -> Token:
    if sort == "name":
        name = _ESCAPE.sub(lambda m: _char(m[1] or m[2]), text)
        return Token(Sort.MARK, _NAMED_MARKS[name], line) if name in _NAMED_MARKS else Token(Sort.NAME, name, line)
    if sort == "raw":
        return Token(Sort.TEXT, text, line)
    if sort == "text":
        return Token(Sort.TEXT, _unescaped(text.partition('"')[2].removesuffix('"')), line)
    if sort == "mark":
        return Token(Sort.MARK, _DIGRAPHS.get(text, text), line)
    return Token(Sort(sort), text, line)


def _char(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "?"


def _unescaped(text: str) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1]:
            return _char(match[1][-6:])
        if match[2]:
            return chr(int(match[2], 8) % 0x110000)
        return _SIMPLE.get(match[3], match[3])

    return re.sub(r"\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))", value, text, flags=re.DOTALL)


def _directive(gathered: list[tuple[Token, int, int]], text: str) -> Directive:
    tokens = tuple(token for token, _, _ in gathered)
    keyword = tokens[0].text if tokens else ""
    is_call = len(gathered) > 2 and tokens[2].text == "(" and gathered[1][2] == gathered[2][1]
    return Directive(keyword, tokens[1:], text, tokens[0].line if tokens else 0, is_call)


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
