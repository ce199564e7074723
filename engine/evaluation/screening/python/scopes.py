"""Names and what they may stand for: now, in straight-line code, and ever, for code that runs later."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from engine.evaluation.screening.python.values import NOTHING, Box, Kind, Path, Values, union


@dataclass(slots=True, eq=False)
class Scope:
    """One module, class or function body.

    Attributes:
        now: values in the order of execution, overwritten by a plain assignment.
        ever: everything a name was ever given, for functions that run at an unknown time.
        given: names whose values come from outside (parameters).
    """

    node: ast.AST
    outer: Scope | None
    owner: Kind | None = None
    now: dict[str, Values] = field(default_factory=dict)
    ever: dict[str, Values] = field(default_factory=dict)
    given: dict[str, Values] = field(default_factory=dict)
    shared: dict[str, Scope] = field(default_factory=dict)

    @property
    def is_class(self) -> bool:
        """True for a class body."""
        return isinstance(self.node, ast.ClassDef)

    @property
    def module(self) -> Scope:
        """The outermost scope."""
        return self if self.outer is None else self.outer.module

    def home(self, name: str) -> Scope:
        """The scope that an assignment here writes to."""
        return self.shared.get(name, self)

    def find(self, name: str) -> Values | None:
        """Values of a name seen from here, None when nobody defines it."""
        if name in self.shared:
            return self.shared[name].ever.get(name, NOTHING)
        if name in self.now:
            return self.now[name]
        if name in self.ever:
            return self.ever[name]
        outer = self.outer
        while outer is not None:
            if not outer.is_class and name in outer.ever:
                return outer.ever[name]
            outer = outer.outer
        return None

    def put(self, name: str, values: Values, is_certain: bool) -> bool:
        """Give a name values; returns whether anything new was learnt."""
        home = self.home(name)
        if home is self:
            self.now[name] = values if is_certain else union((self.now.get(name, NOTHING), values))
        return grow(home.ever, name, values)


def grow(table: dict[str, Values], name: str, values: Values) -> bool:
    """Add alternatives to an entry; True when there were new ones. Nested containers stop growing at some depth."""
    old = table.get(name, NOTHING)
    if values <= old and name in table:
        return False
    table[name] = union((old, frozenset(v for v in values if depth(v) <= 4)))
    return table[name] != old


def depth(value: object) -> int:
    """How deeply containers are nested."""
    if not isinstance(value, Box):
        return 0
    return 1 + max((depth(inner) for items in value.items for inner in items), default=0)


def root_name(node: ast.expr) -> str | None:
    """The name at the start of `a.b[c].d`, if it is one."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def dotted(node: ast.expr) -> str:
    """`a.b.c` as text, for messages."""
    return ast.unparse(node)[:80]


def is_path(values: Values, *names: str) -> bool:
    """True when one alternative is one of these full names."""
    return any(isinstance(value, Path) and value.name in names for value in values)


def defaults(spec: ast.arguments) -> list[tuple[str, ast.expr]]:
    """Parameters with their default expressions."""
    plain = [*spec.posonlyargs, *spec.args]
    pairs = list(zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True))
    pairs += [(a, d) for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None]
    return [(argument.arg, default) for argument, default in pairs]
