"""What a candidate puts into containers and registers on modules. Knows no rule."""

from __future__ import annotations

import ast

from engine.evaluation.screening.arguments import Arguments
from engine.evaluation.screening.calls import Calls
from engine.evaluation.screening.scopes import Scope, root_name
from engine.evaluation.screening.uses import Act
from engine.evaluation.screening.values import (
    NOTHING,
    UNKNOWN,
    Box,
    Load,
    Names,
    Path,
    Tensor,
    Values,
    box,
    elements,
    loads,
    tensor,
    texts,
    union,
)


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
