"""What methods of lists, tuples, dictionaries, sets and deques give. Knows no rule."""

from __future__ import annotations

from engine.evaluation.screening.tables import words
from engine.evaluation.screening.values import NOTHING, NUMBER, Box, Load, Number, Path, Tensor, Values, box, union

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
