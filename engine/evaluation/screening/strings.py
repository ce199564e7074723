"""Methods of strings, folded as far as what they work on is known. Knows no syntax tree."""

from __future__ import annotations

from collections.abc import Iterable

from engine.evaluation.screening.arguments import Arguments
from engine.evaluation.screening.tables import words
from engine.evaluation.screening.values import NOTHING, UNKNOWN, Box, Number, Piece, Text, Values, texts, union

MAX_TEXT = 1_000_000
TEXT_METHODS = words(
    """format strip lstrip rstrip replace join lower upper removeprefix removesuffix expandtabs title capitalize
    swapcase ljust rjust center zfill encode decode translate splitlines split partition format_map substitute
    safe_substitute"""
)


SHOWING_METHODS = words("""format strip lstrip rstrip replace join format_map substitute safe_substitute""")


def join(parts: Iterable[Values], is_whole: bool = True) -> Values:
    """Texts put one after the other; a number becomes a placeholder, anything else hides what it says."""
    pieces: list[Piece] = []
    is_hidden = False
    for values in parts:
        for value in values:
            match value:
                case Text():
                    pieces += value.pieces
                    is_whole, is_hidden = is_whole and value.is_whole, is_hidden or value.is_hidden
                case Number(value=number):
                    pieces.append(Piece("0" if number is None else str(number), None))
                    is_whole = is_whole and number is not None
                case _:
                    pieces.append(Piece("0", None))
                    is_whole, is_hidden = False, True
        is_whole = is_whole and len(values) == 1
    if len(pieces) > 4000 or sum(len(piece.text) for piece in pieces) > MAX_TEXT:
        return UNKNOWN
    return frozenset({Text(tuple(pieces), is_whole, is_hidden)})


def text_method(receiver: Values, name: str, given: Arguments) -> Values:
    """What a method of a string returns."""
    if name == "join" and given.plain:
        return union(_joined(receiver, value) for value in given.at(0)) or UNKNOWN
    if name == "replace" and len(given.plain) >= 2:
        old, new = texts(given.at(0)), [v for v in given.at(1) if isinstance(v, Text) and not v.is_hidden]
        if len(old) == 1 and len(new) == len(given.at(1)) == 1:
            return frozenset(_replaced(v, old[0], new[0]) for v in receiver if isinstance(v, Text))
    if name in ("strip", "lstrip", "rstrip") and not given.plain:
        return receiver
    plain = [v for v in receiver if isinstance(v, Text)]
    if name == "format" and len(plain) == 1 and plain[0].is_whole and not given.named:
        return _formatted(plain[0], given.plain)
    if name in ("lower", "upper") and not given.plain:
        return frozenset(Text((Piece(getattr(v.text, name)(), None),), v.is_whole, v.is_hidden) for v in plain)
    is_hidden = name not in SHOWING_METHODS
    return join([receiver, *given.all, frozenset({Text((), False, is_hidden)})])


def _joined(glue: Values, value: object) -> Values:
    if not isinstance(value, Box):
        return join([glue, UNKNOWN])
    return join([part for item in value.items for part in (glue, item)][1:])


def _replaced(text: Text, old: str, inserted: Text) -> Text:
    """str.replace on each piece; a match across pieces makes it one piece."""
    whole, new = text.text, inserted.text
    is_whole = text.is_whole and inserted.is_whole
    if not old or whole.count(old) == sum(piece.text.count(old) for piece in text.pieces):
        pieces = (Piece(p.text.replace(old, new) if old else p.text, p.line, p.is_stepping) for p in text.pieces)
        return Text(tuple(pieces), is_whole, text.is_hidden)
    return Text((Piece(whole.replace(old, new), None),), is_whole, text.is_hidden)


def _formatted(text: Text, given: list[Values]) -> Values:
    """`"{}_{}".format(a, b)` where the fields are plain; else the parts, not whole."""
    parts = text.text.split("{}")
    if len(parts) != len(given) + 1 or any("{" in part or "}" in part for part in parts):
        return join([frozenset({text}), *given], is_whole=False)
    pieces = [frozenset({Text((Piece(part, None),))}) for part in parts]
    return join([v for pair in zip(pieces, [*given, NOTHING], strict=True) for v in pair][:-1])
