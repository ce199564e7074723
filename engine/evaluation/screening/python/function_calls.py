"""What a call gives, which functions it reaches, and what it puts into containers and modules. Knows no rule."""

from __future__ import annotations

import ast

from engine.evaluation.screening.python import containers
from engine.evaluation.screening.python.library_calls import QUERIES, LibraryCalls
from engine.evaluation.screening.python.reader_state import Scope, root_name
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Act,
    Arguments,
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
    elements,
    loads,
    tensor,
    texts,
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


class Keeping(Calls):
    """Stores other than to names and attributes."""

    def register(self, func: ast.Attribute, receiver: Values, given: Arguments, node: ast.Call) -> None:
        """Buffers, parameters, modules and hooks of a module."""
        if "hook" in func.attr:
            before, self.caller = self.caller, self.outside
            handed = Arguments([UNKNOWN, tensor(Load.INPUT), tensor(Load.INPUT)], {}, True)
            self.call(given.at(0, "hook"), handed, node)
            self.caller = before
            self.note(Act.STORED, f"hook.{func.attr}", node)
            return
        for name in texts(given.at(0, "name")):
            values = given.at(1, "tensor") or given.at(1, "param") or given.at(1, "module")
            held = tensor(Load.WEIGHT) if loads(values) else values
            self.store_attribute(func.value, receiver, name, held, node)

    def grow_container(self, func: ast.Attribute, receiver: Values, given: Arguments, node: ast.Call) -> None:
        """A container gets new elements."""
        if not any(isinstance(v, Box) for v in receiver):
            return
        new = union((*given.plain, *(elements(v) for v in given.plain if any(isinstance(e, Box) for e in v))))
        if isinstance(func.value, ast.Name):
            old = union(elements(frozenset({v})) for v in receiver if isinstance(v, Box))
            is_ours = func.value.id in self.scope.now and func.value.id not in self.scope.shared
            home = self.scope if is_ours else self.home_of(func.value.id)
            self.learn(home.ever, func.value.id, box([union((old, new))]))
            if is_ours:
                self.scope.now[func.value.id] = union((receiver, box([union((old, new))])))
                return
        elif isinstance(func.value, ast.Attribute):
            self.store_attribute(
                func.value, self.values(func.value.value, quiet=True), func.value.attr, box([new]), node
            )
        self.keep(ast.unparse(func.value)[:60], new, node)

    def home_of(self, name: str) -> Scope:
        """The scope that defines a name."""
        scope = self.scope
        while scope.outer is not None and (scope.is_class or name not in scope.ever):
            scope = scope.outer
        return scope

    def store_item(self, target: ast.Subscript, values: Values) -> None:
        """`target[key] = values`."""
        key = self.values(target.slice)
        words = texts(key) or ["?"]
        for owner in self.values(target.value, callee=True):
            match owner:
                case Path(name=name):
                    for word in words:
                        self.note(Act.STORED, name, target, argument=word, detail="item")
                case Names(path=path) if path:
                    for word in words:
                        self.note(Act.STORED, f"{path}.{word}", target)
                case Tensor():
                    self.taint(target.value, values)
                case _:
                    self._keep_item(target, values)

    def _keep_item(self, target: ast.Subscript, values: Values) -> None:
        name = root_name(target)
        scope = self.scope
        is_local = isinstance(target.value, ast.Name) and name in scope.now and not self._is_parameter(name)
        if isinstance(target.value, ast.Name):
            held = box([union((elements(self.scope.find(target.value.id) or NOTHING), values))])
            home = self.home_of(target.value.id)
            self.learn(home.ever, target.value.id, held)
            if is_local:
                scope.now[target.value.id] = union((scope.now[target.value.id], held))
        elif isinstance(target.value, ast.Attribute):
            owner = self.values(target.value.value, quiet=True)
            self.store_attribute(target.value.value, owner, target.value.attr, box([values]), target)
            return
        if not is_local:
            self.keep(name or "?", values, target)

    def _is_parameter(self, name: str | None) -> bool:
        if self.caller is None:
            return False
        spec = self.caller.node.args
        return name in {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
