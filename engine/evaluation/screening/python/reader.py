"""Reads a candidate's Python without running it, statement by statement, until nothing new is learnt. Knows no rule and
not in which order functions run."""

from __future__ import annotations

import ast
from dataclasses import replace

from engine.evaluation.screening.python.containers import join, operands
from engine.evaluation.screening.python.expressions import Expressions
from engine.evaluation.screening.python.reader_state import Scope, defaults
from engine.evaluation.screening.python.values import (
    NOTHING,
    NUMBER,
    UNKNOWN,
    Act,
    Arguments,
    Box,
    Function,
    Instance,
    Kind,
    Load,
    Path,
    Reading,
    Text,
    Values,
    box,
    elements,
    tensor,
    union,
)


class Statements(Expressions):
    """Statement by statement."""

    def _body(self, node: ast.AST, body: list[ast.stmt], scope: Scope, function: Function | None) -> None:
        before = self._move(scope, function)
        for statement in body:
            self._statement(statement)
        self._move_back(before)

    def _branch(self, *bodies: list[ast.stmt]) -> None:
        self.branches += 1
        for body in bodies:
            for statement in body:
                self._statement(statement)
        self.branches -= 1

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node)
            case ast.ClassDef():
                self._define_class(node)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.Assign(targets=targets, value=value):
                values = self.values(value)
                for target in targets:
                    self.assign(target, values)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.assign(target, self.values(value))
            case ast.AugAssign():
                self._augment(node)
            case ast.Return(value=value):
                values = self.values(value) if value is not None else NUMBER
                if self.caller is not None:
                    self._return(self.caller, values)
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=value):
                self.values(value)
            case ast.If(test=test, body=body, orelse=orelse) | ast.While(test=test, body=body, orelse=orelse):
                self.values(test)
                self._branch(body, orelse)
            case ast.For() | ast.AsyncFor():
                values = elements(self.values(node.iter))
                self.branches += 1
                self.assign(node.target, values)
                self.branches -= 1
                self._branch(node.body, node.orelse)
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Try() | ast.TryStar():
                self._branch(node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody)
            case ast.Match():
                self._match(node)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                is_global = isinstance(node, ast.Global)
                for name in names:
                    self.scope.shared[name] = self.module if is_global else self._outer_home(name)
            case ast.Delete(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Attribute | ast.Subscript):
                        self.assign(target, NUMBER)
            case ast.Assert(test=test):
                self.values(test)
            case ast.Raise(exc=value) if value is not None:
                self.values(value)
            case _:
                pass

    def _outer_home(self, name: str) -> Scope:
        scope = self.scope.outer
        while scope is not None and scope.outer is not None and (scope.is_class or name not in scope.ever):
            scope = scope.outer
        return scope or self.module

    def _match(self, node: ast.Match) -> None:
        subject = self.values(node.subject)
        for case in node.cases:
            for inner in ast.walk(case.pattern):
                name = getattr(inner, "name", None) or getattr(inner, "rest", None)
                if isinstance(name, str):
                    self.bind(name, union((subject, elements(subject))))
            if case.guard is not None:
                self.values(case.guard)
            self._branch(case.body)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            values = self.values(item.context_expr)
            values = union((values, self.special(values, "__enter__", [])))
            if item.optional_vars is not None:
                self.assign(item.optional_vars, values)
        for statement in node.body:
            self._statement(statement)

    def _augment(self, node: ast.AugAssign) -> None:
        old, new = self.values(node.target), self.values(node.value)
        if found := [*operands(old), *operands(new)]:
            self.note(Act.COMPUTED, type(node.op).__name__, node, is_result=max(found).is_result)
            self.assign(node.target, tensor(max(found)))
        elif any(isinstance(v, Text) for v in old):
            self.assign(node.target, join([old, new], is_whole=not self.branches))
        elif any(isinstance(v, Box) for v in old):
            self.assign(node.target, box([union((elements(old), elements(new)))]))
        else:
            self.assign(node.target, NUMBER)

    def assign(self, target: ast.expr, values: Values) -> None:
        """Give a target values."""
        match target:
            case ast.Name(id=name):
                if self.scope.home(name) is not self.scope:
                    self.keep(name, values, target)
                self.bind(name, values)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                exact = next((v.items for v in values if isinstance(v, Box)), ())
                is_exact = len(values) == 1 and len(exact) == len(parts)
                for place, part in enumerate(parts):
                    self.assign(part, exact[place] if is_exact else elements(values))
            case ast.Starred(value=inner):
                self.assign(inner, box([values]))
            case ast.Attribute(value=owner, attr=name):
                self.store_attribute(owner, self.values(owner, callee=True), name, values, target)
            case ast.Subscript():
                self.store_item(target, values)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        function = self.function(node)
        for name, default in defaults(node.args):
            self.learn(self.parameters.setdefault(function, {}), name, self.values(default))
        self.waiting.append(function)
        result: Values = frozenset({function})
        for decorator in reversed(node.decorator_list):
            values, before = self.values(decorator, callee=True), self.caller
            self.caller = function
            for value in values:
                if isinstance(value, Path) and not value.name.startswith("builtins."):
                    self.note(Act.CALLED, value.name, decorator, detail="decorator")
                elif not isinstance(value, Path):
                    self.caller = before
                    result |= self.call(frozenset({value}), Arguments([result], {}, False), decorator)
                    self.caller = function
            self.caller = before
        self.bind(node.name, result)

    def _define_class(self, node: ast.ClassDef) -> None:
        kind = self.kinds.setdefault(node, Kind(node))
        self.bases[kind] = union((self.bases.get(kind, NOTHING), *(self.values(b, callee=True) for b in node.bases)))
        for keyword in node.keywords:
            self.values(keyword.value)
        for decorator in node.decorator_list:
            for value in self.values(decorator, callee=True):
                if isinstance(value, Path):
                    self.note(Act.CALLED, value.name, decorator, detail="decorator")
        scope = self.scopes.setdefault(node, Scope(node, self.scope, kind))
        scope.now = {}
        self.bind(node.name, frozenset({kind}))
        self._body(node, node.body, scope, self.caller)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                self.note(Act.IMPORTED, alias.name, node)
                name = alias.asname or alias.name.partition(".")[0]
                self.bind(name, frozenset({Path(alias.name if alias.asname else name)}))
            elif alias.name == "*":
                self.note(Act.IMPORTED, f"{node.module}.*", node, detail=node.module or "")
                self.stars.add(node.module or "")
            else:
                module = "." * node.level + (node.module or "")
                self.note(Act.IMPORTED, f"{module}.{alias.name}" if module else alias.name, node, detail=module)
                self.bind(alias.asname or alias.name, frozenset({Path(f"{module}.{alias.name}")}))

    def _move(self, scope: Scope, function: Function | None) -> tuple[Scope, Function | None, int]:
        before = (self.scope, self.caller, self.branches)
        self.scope, self.caller, self.branches = scope, function, 0
        return before

    def _move_back(self, before: tuple[Scope, Function | None, int]) -> None:
        self.scope, self.caller, self.branches = before

    def _return(self, function: Function, values: Values) -> None:
        old = self.returns.get(function, NOTHING)
        self.returns[function] = union((old, values))
        self.has_grown |= self.returns[function] != old


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
