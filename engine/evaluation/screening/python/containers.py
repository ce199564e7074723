"""What methods of lists, tuples, dictionaries, sets, deques and strings give. Knows no rule and no syntax tree."""

from __future__ import annotations

from collections.abc import Iterable

from engine.evaluation.screening.operators import words
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Arguments,
    Box,
    Load,
    Number,
    Path,
    Piece,
    Tensor,
    Text,
    Values,
    box,
    texts,
    union,
)

SILENT = words(
    """append appendleft extend extendleft insert remove reverse sort rotate clear add discard move_to_end index count
    update intersection_update difference_update isdisjoint issubset issuperset __len__ __contains__"""
)
COPIES = words("copy values items keys union difference intersection symmetric_difference elements")
PICKS = words(
    """pop popleft popitem get setdefault __getitem__ __setitem__ __delitem__ __iter__ __next__ __add__ __mul__ __eq__
    __or__ fromkeys most_common"""
)
METHODS = SILENT | COPIES | PICKS
MAKERS = words("deque OrderedDict defaultdict ChainMap UserList UserDict Counter")
SEQUENCES = words("split split_with_sizes chunk tensor_split unbind hsplit vsplit dsplit")
MAX_TEXT = 1_000_000
TEXT_METHODS = words(
    """format strip lstrip rstrip replace join lower upper removeprefix removesuffix expandtabs title capitalize
    swapcase ljust rjust center zfill encode decode translate splitlines split partition format_map substitute
    safe_substitute"""
)
SHOWING_METHODS = words("""format strip lstrip rstrip replace join format_map substitute safe_substitute""")


def attribute(held: Box, name: str) -> Values:
    """A method stands for its container; under any other name there may be what it holds."""
    return frozenset({held}) if name in METHODS else union((frozenset({held}), held.all))


def method(held: Box, name: str, given: list[Values]) -> Values:
    """What calling a method gives."""
    if name in SILENT:
        return NUMBER
    if name in COPIES:
        return union((frozenset({held}), *(frozenset(v for v in g if isinstance(v, Box)) for g in given)))
    return union((held.all, frozenset({held}), *given[1:]))


def operands(values: Values) -> list[Load]:
    """What the tensors among the values hold; those inside a container are not computed with."""
    return [value.load for value in values if isinstance(value, Tensor)]


def contents(values: Values) -> Values:
    """The values, with each container replaced by what it holds."""
    return union(value.all if isinstance(value, Box) else frozenset({value}) for value in values)


def is_operator(values: Values) -> bool:
    """True for functions of the module `operator` alone."""
    return bool(values) and all(isinstance(v, Path) and v.name.startswith("operator.") for v in values)


def is_box(values: Values) -> bool:
    """True when one alternative is a container."""
    return any(isinstance(value, Box) for value in values)


def inside(outer: Values, values: Values) -> Values:
    """What an element's new values make of what it was taken from."""
    parts = [box([values])] if is_box(outer) else []
    has_other = any(not isinstance(value, Box | Number) for value in outer) or not outer
    return union((*parts, values if has_other else NOTHING))


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
