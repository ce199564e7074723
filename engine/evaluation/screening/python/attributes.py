"""What `a.b` may stand for, and what storing to it does. Knows no rule."""

from __future__ import annotations

import ast

from engine.evaluation.screening import operators
from engine.evaluation.screening.python import containers
from engine.evaluation.screening.python.reader_state import State, root_name
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Act,
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
    Value,
    Values,
    box,
    loads,
    tensor,
    texts,
    union,
)

SUBMODULES = frozenset({"children", "modules", "named_children", "named_modules", "_modules", "get_submodule"})
LAYER_TENSORS = ("weight", "bias", "running_", "in_proj", "out_proj")
TENSOR_NUMBERS = operators.LOOKS - {"grad", "storage", "untyped_storage", "tolist", "item"}


class Attributes(State):
    """Attribute access on every kind of value."""

    def attribute(self, values: Values, name: str, node: ast.AST, callee: bool = False) -> Values:
        """All that a named attribute of these values may be."""
        return union(self._attribute(value, name, node, callee) for value in values) or self.nothing_yet

    def _attribute(self, value: Value, name: str, node: ast.AST, callee: bool) -> Values:
        match value:
            case Path():
                return self._of_path(value, name, node, callee)
            case Tensor():
                return self._of_tensor(value, name, node, callee)
            case Instance(kind=kind):
                return self._of_instance(value, kind, name, node)
            case Kind():
                return self._of_kind(value, name)
            case Parent(kind=kind):
                return self._of_parent(kind, name)
            case Layer():
                return self._of_layer(value, name)
            case Box():
                return containers.attribute(value, name)
            case Extension() | Names():
                return frozenset({value})
            case Number():
                return NUMBER
            case Bound() | Function() if name.startswith("__"):
                self.note(Act.LOADED, f"function.{name}", node)
                return UNKNOWN
            case Method() if name in ("__call__", "__get__"):
                return frozenset({value})
            case _:
                self.note(Act.LOADED, f"?.{name}", node)
                return UNKNOWN

    def _of_path(self, value: Path, name: str, node: ast.AST, callee: bool) -> Values:
        if name == "__dict__":
            return frozenset({Names(value.name)})
        full = f"{value.name}.{name}"
        if operators.OWN_NAMESPACE.fullmatch(full) and "load_library" not in full:
            return frozenset({Extension()})
        if not callee:
            self.note(Act.LOADED, full, node)
        return frozenset({Path(full)})

    def _of_tensor(self, value: Tensor, name: str, node: ast.AST, callee: bool) -> Values:
        if name == "__class__":
            return frozenset({Path("torch.Tensor")})
        if name == "__dict__":
            return frozenset({Names("torch.Tensor")})
        if not callee:
            if name in TENSOR_NUMBERS or name.startswith("is_"):
                return NUMBER
            if name in operators.LAYOUT | {"grad"}:
                return frozenset({value, Method(name, value.load)})
            self.note(Act.LOADED, f"torch.Tensor.{name}", node, is_result=value.load.is_result)
        return frozenset({Method(name, value.load)})

    def _of_instance(self, value: Instance, kind: Kind, name: str, node: ast.AST) -> Values:
        if name == "__class__":
            return frozenset({kind})
        if name == "__dict__":
            return box([union(self.attribute_table(kind).values())])
        if name in SUBMODULES and not self.member(kind, name):
            return box(
                [
                    v
                    for v in self.attribute_table(kind).values()
                    if any(isinstance(e, Layer | Instance | Box) for e in v)
                ]
            )
        found = []
        for each in self.member(kind, name):
            if isinstance(each, Function) and self.is_property(each):
                found.append(self.enter(each, [frozenset({value})], {}, False))
            else:
                is_own = isinstance(each, Function) and each.owner is not None
                found.append(frozenset({self.method_of(each, value) if is_own else each}))  # type: ignore[arg-type]
        found += [self._from_library(base, name) for base in self.library_bases(kind)] if not found else []
        found += [self._from_getattr(value, kind)] if not found else []
        return union(found)

    def _from_getattr(self, value: Instance, kind: Kind) -> Values:
        handlers = [each for each in self.member(kind, "__getattr__") if isinstance(each, Function)]
        return union(self.enter(each, [frozenset({value}), UNKNOWN], {}, False) for each in handlers) or UNKNOWN

    def _from_library(self, base: str, name: str) -> Values:
        if base == "torch.nn.Module":
            return NUMBER if name == "training" else frozenset({Path(f"torch.nn.Module.{name}")})
        if base.startswith("torch.nn."):
            return self._of_layer(Layer(base), name)
        return frozenset({Path(f"{base}.{name}")})

    def _of_kind(self, kind: Kind, name: str) -> Values:
        found = self.member(kind, name)
        if name == "apply" and "torch.autograd.Function" in self.library_bases(kind):
            found = self.member(kind, "forward")
            return frozenset(Bound(f, kind) for f in found if isinstance(f, Function))
        if name == "__dict__":
            return box([union(self.scopes[kind.node].ever.values())])
        inherited = [frozenset[Value]({Path(f"{base}.{name}")}) for base in self.library_bases(kind)]
        of_class = frozenset(Bound(f, kind) for f in found if isinstance(f, Function) and self.is_of_class(f))
        plain = frozenset(f for f in found if not (isinstance(f, Function) and self.is_of_class(f)))
        return of_class | plain or union(inherited) or UNKNOWN

    def _of_parent(self, kind: Kind, name: str) -> Values:
        me, found = Instance(kind), []
        for ancestor in self.ancestors(kind)[1:]:
            own = self.scopes[ancestor.node].ever.get(name, NOTHING) if ancestor.node in self.scopes else NOTHING
            found += [frozenset[Value]({Bound(f, me)}) for f in own if isinstance(f, Function)]
        return union(found) or union(self._from_library(base, name) for base in self.library_bases(kind)) or UNKNOWN

    def _of_layer(self, layer: Layer, name: str) -> Values:
        if name.startswith(LAYER_TENSORS):
            return tensor(Load.WEIGHT)
        if name == "__class__":
            return frozenset({Path(layer.name)})
        if name.startswith(("forward", "_")):
            return frozenset({Path(f"{layer.name}.{name}")})
        if name in ("parameters", "buffers", "state_dict", "named_parameters", "children", "modules"):
            return frozenset({Path(f"torch.nn.Module.{name}")})
        return frozenset({Number(), Path(f"torch.nn.Module.{name}")})

    def store_attribute(self, target: ast.expr, owner: Values, name: str, values: Values, node: ast.AST) -> None:
        """`owner.name = values`."""
        for value in owner:
            match value:
                case Instance(kind=kind):
                    self.learn(self.attribute_table(kind), name, values)
                    self.keep(f"self.{name}", values, node)
                case Kind():
                    self.learn(self.attribute_table(value), name, values)
                    self.keep(f"{value.node.name}.{name}", values, node)
                case Path():
                    self.note(Act.STORED, f"{value.name}.{name}", node)
                case Extension():
                    self.note(Act.STORED, f"extension.{name}", node)
                case Tensor() if root_name(target):
                    self.taint(target, values)
                case Layer(name=layer) if name in ("forward", "__call__") or any(v for v in texts(values)):
                    self.note(Act.STORED, f"{layer}.{name}", node)
                case _:
                    self.note(Act.STORED, f"?.{name}", node)
                    self.keep(f"{root_name(target) or '?'}.{name}", values, node)

    def taint(self, target: ast.expr, values: Values) -> None:
        """A tensor that an expression names now also holds what these values hold."""
        if not (found := [load for load in loads(values) if load.is_result]):
            return
        self._spread(target, tensor(max(found)))

    def _spread(self, target: ast.expr, extra: Values) -> None:
        match target:
            case ast.Name(id=name):
                self.has_grown |= self.scope.put(name, extra, False)
            case ast.Attribute(value=owner, attr=name):
                for value in self.values(owner, quiet=True):
                    if isinstance(value, Instance):
                        self.learn(self.attribute_table(value.kind), name, extra)
            case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Call(func=ast.Attribute(value=inner)):
                self._spread(inner, containers.inside(self.values(inner, quiet=True), extra))

    def from_names(self, names: Names, key: Values, node: ast.AST, callee: bool = False) -> Values:
        """`vars(x)[key]`; an unknown key may be anything."""
        if not (words := texts(key)):
            self.note(Act.DYNAMIC, f"lookup in {names.path or 'globals()'}", node)
            return UNKNOWN
        if not names.path:
            return union(self.module.ever.get(word, NOTHING) for word in words) or UNKNOWN
        return union(self._of_path(Path(names.path), word, node, callee) for word in words)

    def from_getter(self, getter: Getter, values: Values, node: ast.AST) -> Values:
        """operator.attrgetter("a.b")(values)."""
        found = []
        for name in getter.names:
            current = values
            for part in name.split("."):
                current = self.attribute(current, part, node)
            found.append(current)
        return union(found)
