"""What a kernel's `forward` does, read from its text: whether it is one call of a C++ function, and with what.

Then the function itself can be the operator. In any other case the operator is `forward`, in Python.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_TRITON = frozenset({"jit", "autotune", "heuristics"})


@dataclass(frozen=True, slots=True)
class DirectCall:
    """`forward` returns what one C++ function makes of its inputs, its state and plain numbers of its module."""

    library: int
    """Number of the `load_inline` call whose library has the function."""
    function: str
    arguments: tuple[tuple[str, str], ...]
    """As `Entry.arguments` of a package."""


def direct_call(
    module: ast.Module,
    libraries: Mapping[ast.Call, int],
    inputs: Collection[str],
    state: Collection[str],
    *,
    by_name: int = 0,
    strided: Collection[str] = (),
) -> DirectCall | None:
    """The call of `ModelNew.forward`, where it is one and hands over all inputs and the whole state; `libraries` are
    the load_inline calls by number. Of the inputs the last `by_name` are given by name, and `strided` of
    inputs and state are not contiguous."""
    model = next((n for n in module.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None)
    forward = _method(model, "forward") if model else None
    if model is None or forward is None:
        return None
    body = [node for node in forward.body if not _is_text(node)]
    if not body or not isinstance(body[-1], ast.Return) or not isinstance(body[-1].value, ast.Call):
        return None
    own = forward.args.args[0].arg
    names = {argument.arg: number for number, argument in enumerate(forward.args.args[1:])}
    if by_name and list(names) != list(inputs):
        return None
    aliases = dict[str, str]()
    for node in body[:-1]:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            return None
        path = _path(node.value, own, aliases)
        if path is None or node.targets[0].id in names:
            return None
        aliases[node.targets[0].id] = path
    called = body[-1].value
    target = _function(called.func, own, aliases, _libraries(module, model, libraries))
    if target is None or called.keywords:
        return None
    by_number = {number: name for name, number in zip(inputs, range(len(inputs)), strict=True)}
    arguments = list[tuple[str, str]]()
    for argument in called.args:
        if not strided:
            argument = _without_contiguous(argument)
        if isinstance(argument, ast.Name) and argument.id in names:
            arguments.append(("input", by_number.get(names[argument.id], "")))
        elif (path := _path(argument, own, aliases)) is not None:
            arguments.append(("state" if path in state else "constant", path))
        else:
            return None
    if {name for kind, name in arguments if kind == "input"} != set(inputs) or len(names) != len(inputs):
        return None
    if {name for kind, name in arguments if kind == "state"} != set(state) or len(set(arguments)) != len(arguments):
        return None
    return DirectCall(*target, tuple(arguments))


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == name), None)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _without_contiguous(node: ast.expr) -> ast.expr:
    """Where inputs and state were contiguous, what is handed over is: nothing else gets past a package's guards."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="contiguous"), args=[], keywords=[]):
            return value
    return node


def _path(node: ast.expr, own: str, aliases: Mapping[str, str]) -> str | None:
    """The path of an attribute of the module itself: `norm.weight`; None for anything else."""
    match node:
        case ast.Name(id=name) if name in aliases:
            return aliases[name]
        case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == own:
            return attribute
        case ast.Attribute(value=value, attr=attribute):
            path = _path(value, own, aliases)
            return None if path is None else f"{path}.{attribute}"
        case ast.Subscript(
            value=ast.Attribute(value=value, attr="_modules" | "_parameters" | "_buffers"),
            slice=ast.Constant(value=str(key)),
        ):
            if isinstance(value, ast.Name) and value.id == own:
                return key
            path = _path(value, own, aliases)
            return None if path is None else f"{path}.{key}"
    return None


def _libraries(
    module: ast.Module, model: ast.ClassDef, libraries: Mapping[ast.Call, int]
) -> dict[str, tuple[int, str | None]]:
    """Names that stand for a library, or for one of its functions; the module's attributes begin with a dot."""
    known = dict[str, tuple[int, str | None]]()
    made = _method(model, "__init__")
    for statement in (*module.body, *model.body, *(made.body if made else ())):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        name = ""
        if isinstance(target, ast.Name):
            name = f".{target.id}" if statement in model.body else target.id
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            name = f".{target.attr}"
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "staticmethod":
            value = value.args[0]
        if isinstance(value, ast.Call) and value in libraries:
            known[name] = (libraries[value], None)
        elif isinstance(value, ast.Name) and value.id in known:
            known[name] = known[value.id]
        elif isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id in known:
            known[name] = (known[value.value.id][0], value.attr)
    return known


def _function(
    node: ast.expr, own: str, aliases: Mapping[str, str], known: Mapping[str, tuple[int, str | None]]
) -> tuple[int, str] | None:
    """The library's number and the function that is called."""
    if isinstance(node, ast.Name) and node.id not in aliases:
        name, function = node.id, None
    elif (path := _path(node, own, aliases)) is not None:
        head, _, tail = path.partition(".")
        name, function = f".{head}", tail or None
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        name, function = node.value.id, node.attr
    else:
        return None
    if name not in known:
        return None
    library, own_function = known[name]
    if (own_function is None) == (function is None):
        return None
    return library, own_function or function or ""


def launches(module: ast.Module) -> Iterator[ast.expr]:
    """The names of Triton kernels where they are launched: `kernel` in `kernel[grid](…)`."""
    kernels = {
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef) and any(_decorator(word) in _TRITON for word in node.decorator_list)
    }
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name) as value)) if name in kernels:
                yield value


def hands_over_floats(module: ast.Module) -> bool:
    """Whether a Triton kernel may be launched with a number that is no integer.

    Triton takes such a number as float32; PyTorch's compiler, which sees through `triton_op`, hands over float64, and a
    kernel that is right alone then fails to compile.
    """
    names = {id(name) for name in launches(module)}
    floats = {
        target.id
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and _may_be_float(node.value, frozenset())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    given = [
        argument
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and id(node.func.value) in names
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
    ]
    return any(_may_be_float(argument, frozenset(floats)) for argument in given)


def _may_be_float(value: ast.expr, floats: frozenset[str]) -> bool:
    """By what stands in it: a fraction, a division, a root, `float` and `math`, a name of such a value, an attribute
    that is not known."""
    for node in ast.walk(value):
        match node:
            case ast.Constant(value=float()) | ast.BinOp(op=ast.Div()):
                return True
            case ast.Call(func=ast.Name(id="float")) | ast.Name(id="math"):
                return True
            case ast.Name(id=name) if name in floats:
                return True
    return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "self"


def _decorator(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
