"""Reads a candidate's Python without running it, statement by statement, until nothing new is learnt. Knows no rule."""

from __future__ import annotations

import ast
from dataclasses import replace

from engine.evaluation.screening.python.scopes import Scope, defaults
from engine.evaluation.screening.python.statements import Statements
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Arguments,
    Function,
    Instance,
    Kind,
    Load,
    Path,
    Reading,
    Values,
    box,
    elements,
    tensor,
    union,
)

MAX_PASSES = 10
FIRST_PASSES = 3
ENTRIES = ("forward", "__call__", "__getattr__", "__getattribute__", "_call_impl", "_wrapped_call_impl")
PLAIN_TYPES = frozenset({"int", "float", "bool", "str", "tuple", "Tuple", "Sequence"})


def read(module: ast.Module) -> Reading:
    """All uses in a file, each with whether a call of ModelNew may reach it."""
    reader = Reader(module)
    reader.run(module)
    return reader.result()


class Reader(Statements):
    """The order of reading, and who calls whom."""

    def run(self, module: ast.Module) -> None:
        """Pass over the file until the tables stop growing."""
        for number in range(MAX_PASSES):
            # What later lines define is not known in the first passes, which is not the same as unknowable.
            self.nothing_yet = NOTHING if number < FIRST_PASSES else UNKNOWN
            self.has_grown, self.found = False, {}
            self.reading = Reading()
            self.module.now = {}
            self._body(module, module.body, self.module, None)
            self._enter_model()
            done: set[Function] = set()
            while self.waiting:
                if (function := self.waiting.pop()) not in done:
                    done.add(function)
                    self._read_function(function)
            if not self.has_grown and number >= FIRST_PASSES:
                return

    def result(self) -> Reading:
        """The reading with reachability worked out."""
        inside = self._reached()
        for use, callers in self.found.items():
            is_forward = any(caller in inside for caller in callers)
            self.reading.uses.append(replace(use, is_forward=is_forward))
        models = self._models()
        self.reading.has_model = bool(models)
        self.reading.model_bases = tuple(
            name for m in models for name in (*self.library_bases(m), *(k.node.name for k in self.ancestors(m)[1:]))
        )
        forwards = [f for m in models for f in self.member(m, "forward") if isinstance(f, Function)]
        self.reading.returned = union(self.returns.get(f, NOTHING) for f in forwards)
        owners = [f.owner.node.name for f in inside if f and f.owner and not isinstance(f.node, ast.Lambda)]
        self.reading.called_classes = frozenset(owners)
        made = {u.name.removeprefix("class.") for u in self.reading.uses if u.name.startswith("class.")}
        self.reading.made_classes = frozenset(made)
        return self.reading

    def _reached(self) -> set[Function | None]:
        entries = {f for m in self._models() for n in ENTRIES for f in self.member(m, n) if isinstance(f, Function)}
        entries |= self.edges.get(self.outside, set())
        reached: set[Function | None] = {self.outside, *entries}
        line = list(entries)
        while line:
            for callee in self.edges.get(line.pop(), set()):
                if callee not in reached:
                    reached.add(callee)
                    line.append(callee)
        return reached

    def _models(self) -> list[Kind]:
        named = [v for v in self.module.ever.get("ModelNew", NOTHING) if isinstance(v, Kind)]
        return named or [kind for node, kind in self.kinds.items() if node.name == "ModelNew"]

    def _enter_model(self) -> None:
        """Somebody makes the model and calls it with tensors."""
        self.caller = self.outside
        node = ast.Constant(None, lineno=0)
        for model in self._models():
            me: Values = frozenset({Instance(model)})
            for name in ENTRIES:
                for entry in self.member(model, name):
                    if isinstance(entry, Function):
                        static = [] if entry.owner is None or self.is_static(entry) else [me]
                        count = len([*entry.node.args.posonlyargs, *entry.node.args.args]) - len(static)
                        self.enter(entry, [*static, *self._inputs(entry, len(static), count)], {}, False)
                        if entry.node.args.vararg:
                            table = self.parameters[entry]
                            self.learn(table, entry.node.args.vararg.arg, box([tensor(Load.INPUT)]))
                    elif name == "forward":
                        self.call(frozenset({entry}), Arguments([tensor(Load.INPUT)], {}, False), node)
            self.caller = None
            for init in self.member(model, "__init__"):
                if isinstance(init, Function):
                    self.enter(init, [me], {}, False)
            self.caller = self.outside
        self.caller = None

    def _inputs(self, entry: Function, skip: int, count: int) -> list[Values]:
        arguments = [*entry.node.args.posonlyargs, *entry.node.args.args][skip : skip + count]
        optional = {name for name, default in defaults(entry.node.args) if not _is_none(default)}
        # The first argument of a model is a tensor, whatever its annotation or default says.
        plain = {a.arg for a in arguments[1:] if a.arg in optional or _is_plain(a.annotation)}
        return [NUMBER if a.arg in plain else tensor(Load.INPUT) for a in arguments]

    def _read_function(self, function: Function) -> None:
        node, scope = function.node, self.scopes[function.node]
        scope.now, scope.shared = {}, {}
        table = self.parameters.get(function, {})
        spec = node.args
        owner_scope = scope.outer.owner if scope.outer else None
        scope.owner = function.owner or owner_scope
        for place, argument in enumerate([*spec.posonlyargs, *spec.args, *spec.kwonlyargs]):
            values = table.get(argument.arg, NOTHING)
            if place == 0 and function.owner is not None and not self.is_static(function):
                values = values or frozenset({Instance(function.owner)})
            if not values or values == UNKNOWN:
                values = self._from_annotation(argument.annotation)
            self._given(scope, argument.arg, values)
        for extra in (spec.vararg, spec.kwarg):
            if extra is not None:
                self._given(
                    scope, extra.arg, box([elements(table.get(extra.arg, UNKNOWN)) | table.get(extra.arg, UNKNOWN)])
                )
        if isinstance(node, ast.Lambda):
            before = self._move(scope, function)
            values = self.values(node.body)
            self._return(function, values)
            self._move_back(before)
        else:
            self._body(node, node.body, scope, function)

    def _given(self, scope: Scope, name: str, values: Values) -> None:
        scope.now[name] = values
        self.learn(scope.ever, name, values)

    def _from_annotation(self, node: ast.expr | None) -> Values:
        if node is None or _is_plain(node):
            return UNKNOWN
        found = self.values(node, quiet=True) if not isinstance(node, ast.Constant) else NOTHING
        is_tensor = any(isinstance(v, Path) and v.name == "torch.Tensor" for v in found)
        return tensor(Load.BLANK) if is_tensor else UNKNOWN


def _is_plain(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Name(id=name):
            return name in PLAIN_TYPES
        case ast.Constant(value=str(name)):
            return name in PLAIN_TYPES
        case ast.Subscript(value=ast.Name(id="Optional" | "List" | "list"), slice=inner):
            return _is_plain(inner)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return all(_is_none(side) or _is_plain(side) for side in (left, right))
        case ast.Subscript(value=inner):
            return _is_plain(inner)
        case _:
            return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
