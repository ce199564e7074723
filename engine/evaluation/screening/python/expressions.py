"""What an expression of a candidate may stand for, operators between values among them. Knows no rule."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from engine.evaluation.screening import operators
from engine.evaluation.screening.python.containers import (
    TEXT_METHODS,
    contents,
    is_operator,
    join,
    operands,
    text_method,
)
from engine.evaluation.screening.python.function_calls import Keeping
from engine.evaluation.screening.python.reader_state import defaults
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Act,
    Arguments,
    Box,
    Extension,
    Instance,
    Layer,
    Names,
    Number,
    Path,
    Tensor,
    Text,
    Values,
    box,
    elements,
    loads,
    tensor,
    texts,
    union,
)


class Arithmetic(Keeping):
    """Operator by operator."""

    def binary(self, node: ast.BinOp, callee: bool) -> Values:
        """`a + b`."""
        left, right = self.values(node.left), self.values(node.right)
        method = operators.METHOD_OF[type(node.op).__name__]
        is_own = any(isinstance(v, Instance) for v in (*left, *right))
        if is_own:
            self.special(right, f"__r{method}__", [left])
        if (found := [*operands(left), *operands(right)]) and not is_own:
            self.note(Act.COMPUTED, type(node.op).__name__, node, is_result=max(found).is_result)
            return tensor(max(found))
        if own := self.special(left, f"__{method}__", [right]):
            return own
        is_text = any(isinstance(v, Text) for v in (*left, *right))
        if isinstance(node.op, ast.Add) and is_text:
            return join([left, right])
        if isinstance(node.op, ast.Mod | ast.Mult) and is_text:
            spread = [item for v in right if isinstance(v, Box) for item in v.items]
            return join([left, *(spread or [right])], is_whole=False)
        if isinstance(node.op, ast.Add) and any(isinstance(v, Box) for v in left):
            return box([i for v in (*left, *right) if isinstance(v, Box) for i in v.items])
        if isinstance(node.op, ast.BitOr | ast.Mult) and any(isinstance(v, Box) for v in (*left, *right)):
            boxes = frozenset(v for v in (*left, *right) if isinstance(v, Box))
            return boxes if isinstance(node.op, ast.Mult) else union((left, right))
        return NUMBER

    def unary(self, node: ast.UnaryOp, callee: bool) -> Values:
        """`-a`."""
        values = self.values(node.operand)
        if (found := loads(values)) and not isinstance(node.op, ast.Not):
            self.note(Act.COMPUTED, type(node.op).__name__, node, is_result=max(found).is_result)
            return tensor(max(found))
        return NUMBER

    def compare(self, node: ast.Compare, callee: bool) -> Values:
        """`a < b`."""
        sides = [self.values(side) for side in (node.left, *node.comparators)]
        is_none = any(isinstance(side, ast.Constant) and side.value is None for side in node.comparators)
        is_math = any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq) for op in node.ops)
        is_equality = all(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        found = [load for side in sides for load in (operands(side) if is_equality else loads(side))]
        if found and is_math and not is_none:
            self.note(Act.COMPUTED, type(node.ops[0]).__name__, node, is_result=max(found).is_result)
            return tensor(max(found))
        return NUMBER


class Expressions(Arithmetic):
    """Expression by expression."""

    def values(self, node: ast.expr, callee: bool = False, quiet: bool = False) -> Values:
        """What a node may stand for; quiet: without writing down uses."""
        if quiet:
            kept, self.found = self.found, {}
            try:
                return self.values(node, callee)
            finally:
                self.found = kept
        handler = self.HANDLERS.get(type(node))
        if handler is None:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.values(child)
            return UNKNOWN
        found: Values = handler(self, node, callee)
        return found

    def _constant(self, node: ast.Constant, callee: bool) -> Values:
        if isinstance(node.value, str):
            return self.text_of(node)
        is_whole = isinstance(node.value, int) and not isinstance(node.value, bool)
        return frozenset({Number(node.value)}) if is_whole and abs(node.value) < 1 << 62 else NUMBER  # type: ignore

    def _name(self, node: ast.Name, callee: bool) -> Values:
        found = self.scope.find(node.id)
        if found is None and node.id in ("__builtins__", "__loader__", "__spec__"):
            self.note(Act.LOADED, f"builtins.{node.id}", node)
            return frozenset({Path("builtins")})
        if found is None:
            if not hasattr(builtins, node.id):
                return self._from_star(node, callee)
            if not callee:
                self.note(Act.LOADED, f"builtins.{node.id}", node)
            return frozenset({Path(f"builtins.{node.id}")})
        if not callee:
            for value in found:
                if isinstance(value, Path):
                    self.note(Act.LOADED, value.name, node)
        return found or self.nothing_yet

    def _from_star(self, node: ast.Name, callee: bool) -> Values:
        return union(self.attribute(frozenset({Path(star)}), node.id, node, callee) for star in self.stars) or UNKNOWN

    def _attribute_node(self, node: ast.Attribute, callee: bool) -> Values:
        return self.attribute(self.values(node.value, callee=True), node.attr, node, callee)

    def _call_node(self, node: ast.Call, callee: bool) -> Values:
        if self._is_fold_of_numbers(node) and is_operator(self.values(node.args[0], callee=True, quiet=True)):
            return NUMBER
        plain = [self.values(a.value if isinstance(a, ast.Starred) else a) for a in node.args]
        named = {k.arg or "**": self.values(k.value) for k in node.keywords}
        is_loose = any(isinstance(a, ast.Starred) for a in node.args) or "**" in named
        if is_loose:
            plain = [union((elements(v), v)) for v in plain]
            named = {k: elements(v) if k == "**" else v for k, v in named.items()}
        given = Arguments(plain, named, is_loose)
        if isinstance(node.func, ast.Attribute):
            receiver = self.values(node.func.value, callee=True)
            if node.func.attr in TEXT_METHODS and any(isinstance(v, Text) for v in receiver):
                return text_method(receiver, node.func.attr, given)
            if node.func.attr in ("append", "extend", "add", "insert", "setdefault", "update", "register_buffer"):
                self.grow_container(node.func, receiver, given, node)
            if node.func.attr.startswith("register_") or node.func.attr == "add_module":
                self.register(node.func, receiver, given, node)
            return self.call(self.attribute(receiver, node.func.attr, node.func, callee=True), given, node)
        return self.call(self.values(node.func, callee=True), given, node)

    def _is_fold_of_numbers(self, node: ast.Call) -> bool:
        """`functools.reduce(operator.mul, x.shape)`: a function of numbers is no operator on tensors."""
        leaf = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if leaf != "reduce" or len(node.args) < 2 or node.keywords:
            return False
        path = frozenset({Path("functools.reduce")})
        return self.values(node.func, callee=True, quiet=True) == path and all(
            isinstance(v, Number) for a in node.args[1:] for v in contents(self.values(a))
        )

    def _choice(self, node: ast.IfExp | ast.BoolOp, callee: bool) -> Values:
        if isinstance(node, ast.IfExp):
            self.values(node.test)
            return union((self.values(node.body), self.values(node.orelse)))
        return union([self.values(value) for value in node.values])

    def _container(self, node: ast.List | ast.Tuple | ast.Set, callee: bool) -> Values:
        items = [self.values(e.value if isinstance(e, ast.Starred) else e) for e in node.elts]
        return box(elements(i) if isinstance(e, ast.Starred) else i for e, i in zip(node.elts, items, strict=True))

    def _dictionary(self, node: ast.Dict, callee: bool) -> Values:
        for key in node.keys:
            if key is not None:
                self.values(key)
        return box([union([self.values(value) for value in node.values])])

    def _subscript(self, node: ast.Subscript, callee: bool) -> Values:
        owner, key = self.values(node.value, callee=True), self.values(node.slice)
        found: list[Values] = [self.special(owner, "__getitem__", [key])]
        for value in owner:
            match value:
                case Names():
                    found.append(self.from_names(value, key, node, callee))
                case Box() if isinstance(node.slice, ast.Slice):
                    found.append(box([value.all]))
                case Box() if len(key) == 1:
                    place = getattr(next(iter(key)), "value", None)
                    is_known = isinstance(place, int) and -len(value.items) <= place < len(value.items)
                    found.append(value.items[place] if is_known and place is not None else value.all)
                case Path(name="sys.modules"):
                    self.note(Act.LOADED, "sys.modules", node)
                    found.append(self.imported(texts(key)))
                case Path(name=name):
                    self.note(Act.LOADED, name, node, argument=next(iter(texts(key)), None))
                    found.append(UNKNOWN)
                case Text():
                    found.append(frozenset({Text(value.pieces, False, True)}))
                case Tensor() | Extension() | Instance() | Layer() | Number():
                    found.append(frozenset({value}))
                case _:
                    found.append(UNKNOWN)
        return union(found) or self.nothing_yet

    def _joined_string(self, node: ast.JoinedStr, callee: bool) -> Values:
        return join([self.values(p.value if isinstance(p, ast.FormattedValue) else p) for p in node.values])

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, callee: bool
    ) -> Values:
        for clause in node.generators:
            self.assign(clause.target, elements(self.values(clause.iter)))
            for test in clause.ifs:
                self.values(test)
        return box([self.values(node.value if isinstance(node, ast.DictComp) else node.elt)])

    def _lambda(self, node: ast.Lambda, callee: bool) -> Values:
        function = self.function(node)
        for name, default in defaults(node.args):
            self.learn(self.parameters.setdefault(function, {}), name, self.values(default))
        self.waiting.append(function)
        return frozenset({function})

    def _walrus(self, node: ast.NamedExpr, callee: bool) -> Values:
        values = self.values(node.value)
        self.assign(node.target, values)
        return values

    def _inner(self, node: Any, callee: bool) -> Values:
        return self.values(node.value) if node.value is not None else NUMBER

    def _yield(self, node: ast.Yield | ast.YieldFrom, callee: bool) -> Values:
        values = self.values(node.value) if node.value is not None else NOTHING
        if self.caller is not None:
            self.returns[self.caller] = union((self.returns.get(self.caller, NOTHING), box([values])))
        return UNKNOWN

    def assign(self, target: ast.expr, values: Values) -> None:
        """Give a target values."""
        raise NotImplementedError

    HANDLERS: ClassVar[Mapping[type, Callable[..., Values]]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute_node,
        ast.Call: _call_node,
        ast.BinOp: Arithmetic.binary,
        ast.UnaryOp: Arithmetic.unary,
        ast.Compare: Arithmetic.compare,
        ast.IfExp: _choice,
        ast.BoolOp: _choice,
        ast.List: _container,
        ast.Tuple: _container,
        ast.Set: _container,
        ast.Dict: _dictionary,
        ast.Subscript: _subscript,
        ast.JoinedStr: _joined_string,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Lambda: _lambda,
        ast.NamedExpr: _walrus,
        ast.Starred: _inner,
        ast.Await: _inner,
        ast.FormattedValue: _inner,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
    }
