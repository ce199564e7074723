"""What the reader of a candidate knows so far: scopes and what their names may stand for, attributes, parameters,
returns, who calls whom."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from engine.evaluation.screening.python.values import (
    NOTHING,
    UNKNOWN,
    Act,
    Arguments,
    Bound,
    Box,
    Function,
    Instance,
    Kind,
    Path,
    Piece,
    Reading,
    Text,
    Use,
    Values,
    loads,
    union,
)


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


NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


class State:
    """Monotone tables: each pass over the file may only add, so the passes come to an end.

    `outside` stands for whoever calls the model.
    """

    def __init__(self, module: ast.Module) -> None:
        self.reading = Reading()
        self.has_grown = False
        self.module = Scope(module, None)
        self.scope = self.module
        self.stars: set[str] = set()
        self.nothing_yet: Values = NOTHING
        self.caller: Function | None = None
        self.branches = 0
        self.waiting: list[Function] = []
        self.found: dict[Use, set[Function | None]] = {}
        self.edges: dict[Function | None, set[Function]] = {}
        self.parameters: dict[Function, dict[str, Values]] = {}
        self.returns: dict[Function, Values] = {}
        self.attributes: dict[Kind, dict[str, Values]] = {}
        self.bases: dict[Kind, Values] = {}
        self.functions: dict[ast.AST, Function] = {}
        self.kinds: dict[ast.ClassDef, Kind] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        self.outside = Function(ast.Lambda(NO_ARGUMENTS, ast.Constant(None)), None)

    def note(self, act: Act, name: str, node: ast.AST, **more: object) -> None:
        """Write down a use under the function that is being read."""
        use = replace(Use(act, name, getattr(node, "lineno", 0)), **more)  # type: ignore[arg-type]
        self.found.setdefault(use, set()).add(self.caller)

    def learn(self, table: dict[str, Values], name: str, values: Values) -> None:
        """Add alternatives to a table of this state."""
        self.has_grown |= grow(table, name, values)

    def bind(self, name: str, values: Values) -> None:
        """Assign in the scope being read."""
        self.has_grown |= self.scope.put(name, values, self.branches == 0)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Function:
        """The one value that stands for a definition; its body is read later."""
        if node not in self.functions:
            owner = self.scope.owner if self.scope.is_class else None
            self.functions[node] = Function(node, owner)
            self.scopes[node] = Scope(node, self.scope, self.scope.owner)
        return self.functions[node]

    def attribute_table(self, kind: Kind) -> dict[str, Values]:
        """Attributes stored on instances of a class, or on the class from outside."""
        return self.attributes.setdefault(kind, {})

    def ancestors(self, kind: Kind) -> list[Kind]:
        """The class and the candidate's own classes it derives from, nearest first."""
        line, seen = [kind], {kind}
        for current in line:
            for value in self.bases.get(current, NOTHING):
                if isinstance(value, Kind) and value not in seen:
                    seen.add(value)
                    line.append(value)
        return line

    def library_bases(self, kind: Kind) -> list[str]:
        """Full names of the imported classes that a class derives from."""
        values = union(self.bases.get(k, NOTHING) for k in self.ancestors(kind))
        return sorted(value.name for value in values if isinstance(value, Path))

    def member(self, kind: Kind, name: str) -> Values:
        """What a name means on a class, whoever defined it; empty when nobody of the candidate's did."""
        return union(
            union((self.attribute_table(k).get(name, NOTHING), self.scopes[k.node].ever.get(name, NOTHING)))
            for k in self.ancestors(kind)
            if k.node in self.scopes
        )

    def enter(self, function: Function, arguments: list[Values], named: dict[str, Values], is_loose: bool) -> Values:
        """Call a function of the candidate: its parameters learn these values. Returns what it returned so far."""
        if function not in self.edges.setdefault(self.caller, set()):
            self.edges[self.caller].add(function)
            self.has_grown = True
        table, spec = self.parameters.setdefault(function, {}), function.node.args
        names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
        if is_loose:
            everything = union((*arguments, *named.values()))
            for name in (*names, *(a.arg for a in spec.kwonlyargs)):
                self.learn(table, name, everything)
        for name, values in zip(names, arguments, strict=False):
            self.learn(table, name, values)
        if spec.vararg and arguments[len(names) :]:
            self.learn(table, spec.vararg.arg, union(arguments[len(names) :]))
        known = {*names, *(a.arg for a in spec.kwonlyargs)}
        for name, values in named.items():
            if name in known:
                self.learn(table, name, values)
            elif spec.kwarg:
                self.learn(table, spec.kwarg.arg, values)
        return self.returns.get(function, NOTHING)

    def keep(self, what: str, values: Values, node: ast.AST) -> None:
        """Something is stored where a later call can find it."""
        if self.caller is not None and any(load.is_result for load in loads(values)):
            self.note(Act.KEPT, what, node)

    def is_static(self, function: Function) -> bool:
        """True for a function that gets no first argument."""
        return self._is_decorated(function, "builtins.staticmethod")

    def is_of_class(self, function: Function) -> bool:
        """True for a function whose first argument is the class."""
        return self._is_decorated(function, "builtins.classmethod")

    def is_property(self, function: Function) -> bool:
        """True for a function that runs when its name is looked up."""
        return self._is_decorated(function, "builtins.property", "functools.cached_property")

    def _is_decorated(self, function: Function, *names: str) -> bool:
        node = function.node
        if isinstance(node, ast.Lambda):
            return False
        by_name = {name.rpartition(".")[2] for name in names}
        return any(
            (isinstance(d, ast.Name) and d.id in by_name and self.module.find(d.id) is None)
            or (isinstance(d, ast.Name | ast.Attribute) and is_path(self.values(d, quiet=True), *names))
            for d in node.decorator_list
        )

    def method_of(self, value: Function, on: Instance | Kind) -> Function | Bound:
        """A function found on a class, bound when it takes the instance."""
        return value if self.is_static(value) else Bound(value, on)

    def values(self, node: ast.expr, callee: bool = False, quiet: bool = False) -> Values:
        """What an expression may stand for."""
        raise NotImplementedError

    def special(self, values: Values, name: str, arguments: list[Values]) -> Values:
        """What a special method of the candidate's own classes gives: Python calls it for an operator."""
        found = []
        for value in values:
            if isinstance(value, Instance):
                for method in self.member(value.kind, name):
                    if isinstance(method, Function):
                        found.append(self.enter(method, [frozenset({value}), *arguments], {}, False))
        return union(found)

    def call(self, values: Values, given: Arguments, node: ast.expr) -> Values:
        """What calling these values may return."""
        raise NotImplementedError

    def text_of(self, node: ast.Constant) -> Values:
        """A string constant and where it stands."""
        if not isinstance(node.value, str):
            return UNKNOWN
        steps = node.end_lineno is not None and node.value.count("\n") == node.end_lineno - node.lineno
        return frozenset({Text((Piece(node.value, node.lineno, steps),))})
