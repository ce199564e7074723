"""What an expression may stand for, what a call passes on, and one record for each thing done. Knows no rule."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

MAX_ALTERNATIVES = 24
MAX_BOX = 500


class Load(IntEnum):
    """What a tensor holds, from least to most."""

    BLANK = 0
    WEIGHT = 1
    INPUT = 2
    KERNEL = 3

    @property
    def is_result(self) -> bool:
        """True for what depends on the inputs of a call."""
        return self >= Load.INPUT


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text, the line of the file on which it begins, and whether its lines are lines of the file."""

    text: str
    line: int | None
    is_stepping: bool = True


@dataclass(frozen=True, slots=True)
class Text:
    """A folded string. Not whole: a number in it is not known and stands as `0`. Hidden: text in it is not known."""

    pieces: tuple[Piece, ...]
    is_whole: bool = True
    is_hidden: bool = False

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, a size, a dtype, None: nothing that could compute."""

    value: int | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """Something imported or built in, by its full name: `torch.nn.functional.relu`."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor, by what it holds."""

    load: Load


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a tensor, not yet called."""

    name: str
    load: Load


@dataclass(frozen=True, slots=True)
class Extension:
    """A built extension or one of its functions."""


@dataclass(frozen=True, slots=True)
class Layer:
    """An instance of a class of torch.nn."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function or lambda of the candidate; `owner` is the class whose body defines it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    owner: Kind | None


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A class of the candidate."""

    node: ast.ClassDef


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class of the candidate."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Bound:
    """A function with its first argument in place."""

    function: Function
    first: Instance | Kind


@dataclass(frozen=True, slots=True)
class Parent:
    """What super() gives."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class Names:
    """The dictionary behind `vars(x)`, `x.__dict__` or `globals()` (empty path)."""

    path: str


@dataclass(frozen=True, slots=True)
class Box:
    """A list, tuple, set or dictionary: the values of its places, keys left out. `size` counts those inside too."""

    items: tuple[Values, ...]
    size: int = 1

    @property
    def all(self) -> Values:
        """What any place may hold."""
        return union(self.items)


@dataclass(frozen=True, slots=True)
class Getter:
    """operator.attrgetter or methodcaller of known names."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything at all."""


Value = (
    Text
    | Number
    | Path
    | Tensor
    | Method
    | Extension
    | Layer
    | Function
    | Kind
    | Instance
    | Bound
    | Parent
    | Names
    | Box
    | Getter
    | Unknown
)
Values = frozenset[Value]
NOTHING: Values = frozenset()
UNKNOWN: Values = frozenset({Unknown()})
NUMBER: Values = frozenset({Number()})


def box(items: Iterable[Values]) -> Values:
    """A container; a long one forgets which value stands where, a huge or deep one what it holds."""
    places = tuple(items)
    places = places if len(places) <= 64 else (union(places),)
    inner = [value.size for values in places for value in values if isinstance(value, Box)]
    size = 1 + len(places) + sum(inner)
    return frozenset({Box((UNKNOWN,), 2) if size > MAX_BOX else Box(places, size)})


def elements(values: Values) -> Values:
    """What iterating or indexing gives."""
    found: list[Values] = []
    for value in values:
        match value:
            case Box():
                found.append(value.all)
            case Text():
                found.append(frozenset({Text(value.pieces, False, True)}))
            case Tensor() | Number() | Unknown() | Extension() | Layer():
                found.append(frozenset({value}))
            case _:
                found.append(UNKNOWN)
    return union(found)


def tensor(load: Load) -> Values:
    """The values of a tensor."""
    return frozenset({Tensor(load)})


def union(many: Iterable[Values]) -> Values:
    """All alternatives, bounded in number: texts are dropped first."""
    found: Values = frozenset().union(*many)
    if len(found) <= MAX_ALTERNATIVES:
        return found
    rest = frozenset(v for v in found if not isinstance(v, Text | Number))
    return frozenset(list(rest)[: 8 * MAX_ALTERNATIVES]) | UNKNOWN


def loads(values: Values) -> list[Load]:
    """What the tensors among the values hold."""
    found = [value.load for value in values if isinstance(value, Tensor)]
    for value in values:
        if isinstance(value, Box):
            found += loads(value.all)
    return found


def texts(values: Values) -> list[str]:
    """The whole texts among the values."""
    return sorted(value.text for value in values if isinstance(value, Text) and value.is_whole)


class Arguments:
    """The values a call passes on."""

    def __init__(self, plain: list[Values], named: dict[str, Values], is_loose: bool) -> None:
        self.plain, self.named, self.is_loose = plain, named, is_loose

    @property
    def all(self) -> list[Values]:
        """Places, then names."""
        return [*self.plain, *self.named.values()]

    def at(self, place: int, name: str = "") -> Values:
        """One argument by place or name."""
        return self.plain[place] if place < len(self.plain) else self.named.get(name, NOTHING)

    @property
    def load(self) -> Load | None:
        """The most that a tensor among them holds; None without tensors."""
        return max((load for values in self.all for load in loads(values)), default=None)

    @property
    def text(self) -> str | None:
        """The first argument, if it is a known string."""
        found = texts(self.at(0)) if self.plain else []
        return found[0] if found else None


class Act(StrEnum):
    """How something is used."""

    LOADED = "loaded"
    CALLED = "called"
    COMPUTED = "computed"
    STORED = "stored"
    IMPORTED = "imported"
    KEPT = "kept"
    DYNAMIC = "dynamic"
    KERNEL = "kernel"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Use:
    """One act.

    Attributes:
        act: how.
        name: full dotted name of what; `torch.Tensor.relu` for methods of tensors.
        line: in the candidate's file.
        is_forward: it may run inside a call of the model.
        is_result: what it works on depends on the call's inputs.
        argument: folded text of the first argument or of the key stored to, where known.
        detail: further words, by act.
    """

    act: Act
    name: str
    line: int
    is_forward: bool = False
    is_result: bool = False
    argument: str | None = None
    detail: str = ""


@dataclass(slots=True)
class Reading:
    """All that the reader found."""

    uses: list[Use] = field(default_factory=list)
    sources: list[Text] = field(default_factory=list)
    returned: Values = frozenset()
    has_model: bool = False
    has_build: bool = False
    model_bases: tuple[str, ...] = ()
    called_classes: frozenset[str] = frozenset()
    made_classes: frozenset[str] = frozenset()
