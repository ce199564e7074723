"""C++ text into tokens: splices, comments, raw strings, digraphs and directives as the compiler sees them. No rule."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


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


_SIMPLE = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


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
