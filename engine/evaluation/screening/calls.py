"""What a call gives and which functions it reaches. Knows no rule."""

from __future__ import annotations

import ast

from engine.evaluation.screening import containers
from engine.evaluation.screening.arguments import Arguments
from engine.evaluation.screening.library_calls import QUERIES, LibraryCalls
from engine.evaluation.screening.uses import Act
from engine.evaluation.screening.values import (
    NUMBER,
    UNKNOWN,
    Bound,
    Box,
    Extension,
    Function,
    Getter,
    Instance,
    Kind,
    Layer,
    Load,
    Method,
    Names,
    Number,
    Parent,
    Path,
    Tensor,
    Text,
    Unknown,
    Value,
    Values,
    box,
    loads,
    tensor,
    union,
)


class Calls(LibraryCalls):
    """Calling every kind of value."""

    def call(self, values: Values, given: Arguments, node: ast.Call | ast.expr) -> Values:
        """What calling these values may return."""
        return union(self._call(value, given, node) for value in values) or self.nothing_yet

    def _call(self, value: Value, given: Arguments, node: ast.expr) -> Values:
        match value:
            case Path(name=name):
                return self._call_path(name, given, node)
            case Method(name=name, load=load):
                return self._call_method(name, load, given, node)
            case Extension():
                return self._call_kernel(given, node)
            case Function():
                return self.enter(value, given.plain, given.named, given.is_loose)
            case Bound(function=function, first=first):
                return self.enter(function, [frozenset({first}), *given.plain], given.named, given.is_loose)
            case Kind():
                return self._make(value, given, node)
            case Instance():
                return self._call_instance(value, given, node)
            case Layer(name=name):
                return self._call_path(f"{name}.__call__", given, node)
            case Box():
                return self._call_box(value, given, node)
            case Names():
                return self.from_names(value, given.at(0), node)
            case Getter():
                return self._call_getter(value, given, node)
            case Text() if given.load is not None:
                return box([union(given.all)])
            case Tensor() | Number() | Text() | Parent():
                return frozenset({value})
            case Unknown():
                self.note(Act.UNCLEAR, "", node, is_result=bool(given.load and given.load.is_result))
                self._pass_on(given, node)
                return UNKNOWN

    def _call_getter(self, getter: Getter, given: Arguments, node: ast.expr) -> Values:
        found = self.from_getter(getter, given.at(0), node)
        return union((found, self.call(found, Arguments(given.plain[1:], {}, False), node)))

    def _call_box(self, value: Box, given: Arguments, node: ast.expr) -> Values:
        """A container's method, or layers in a row."""
        inside = value.all
        workers = frozenset(v for v in inside if isinstance(v, Layer | Instance))
        if workers and given.load is not None:
            return self.call(workers, given, node)
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        return containers.method(value, node.func.attr if is_method else "", given.plain)  # type: ignore[attr-defined]

    def _call_instance(self, value: Instance, given: Arguments, node: ast.expr) -> Values:
        found: list[Value] = []
        for name in ("__call__", "forward"):
            found += [self.method_of(f, value) for f in self.member(value.kind, name) if isinstance(f, Function)]
            others = frozenset(f for f in self.member(value.kind, name) if not isinstance(f, Function))
            found += list(others)
        if found:
            return self.call(frozenset(found), given, node)
        bases = [b for b in self.library_bases(value.kind) if b.startswith("torch.nn.") and b != "torch.nn.Module"]
        return union(self._call_path(f"{base}.__call__", given, node) for base in bases) or UNKNOWN

    def _make(self, kind: Kind, given: Arguments, node: ast.expr) -> Values:
        self.note(Act.CALLED, f"class.{kind.node.name}", node)
        me = Instance(kind)
        for name in ("__init__", "__new__", "__post_init__"):
            for method in self.member(kind, name):
                if isinstance(method, Function):
                    self.enter(method, [frozenset({me}), *given.plain], given.named, given.is_loose)
        return frozenset({me})

    def _call_kernel(self, given: Arguments, node: ast.expr) -> Values:
        self.note(Act.KERNEL, "", node, is_result=bool(given.load and given.load.is_result))
        if isinstance(node, ast.Call):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                if Load.BLANK in loads(self.values(argument, quiet=True)):
                    self.taint(argument, tensor(Load.KERNEL))
        return tensor(Load.KERNEL)

    def _call_method(self, name: str, load: Load, given: Arguments, node: ast.expr) -> Values:
        most = max(load, given.load) if given.load is not None else load
        detail = " ".join(sorted({v.name for values in given.all for v in values if isinstance(v, Path)}))
        self.note(
            Act.CALLED, f"torch.Tensor.{name}", node, is_result=most.is_result, argument=given.text, detail=detail
        )
        is_in_place = name.endswith("_") or name == "__setitem__"
        if is_in_place and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.taint(node.func.value, tensor(most))
        if name in QUERIES or name.startswith("is_"):
            return NUMBER
        if name in containers.SEQUENCES:
            return box([tensor(most)])
        return tensor(Load.BLANK if name.startswith("new_") else most)
