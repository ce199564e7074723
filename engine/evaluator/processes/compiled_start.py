"""A candidate out of what torch.compile generates: its Triton kernels and the order of its calls, in a file that stands
alone. Works on texts; knows neither PyTorch nor Triton. Written for the files that Inductor of PyTorch 2.11 writes.

What the file needs of Inductor's run time is copied into it. Where something cannot be taken over, NoStart says what.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

COPIED = "inductor_"  # what begins the name of a function that is copied from Inductor's run time
HELPERS = "triton_helpers"
LIBRARIES = ("extern_kernels", "aten", "torch.ops")
CHECKS = ("assert_size_stride", "assert_alignment", "args.clear", "torch.cuda.set_device")
AXES = ("X", "Y", "Z")
MOST_TUNABLES = 6
TUNED = {"XBLOCK": "XBLOCK", "YBLOCK": "YBLOCK", "R0_BLOCK": "RBLOCK", "num_warps": "WARPS"}
LARGEST_BLOCK, LARGEST_WARPS = 4096, 16  # Inductor leaves out a mask only where every block up to this one fits
HEADER = """# What torch.compile (Inductor of PyTorch {version}) generated for this module, as it is: its
# Triton kernels, its block sizes and the order of its calls, each for the shapes that it names and for no other.
"""
OF_PYTORCH = "# Functions named inductor_* are copied from PyTorch (BSD-3-Clause licence).\n"


class NoStart(Exception):
    """Why what the compiler generates is no kernel to start from, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Launch:
    """With what Inductor launches one of its kernels: block sizes by name (XBLOCK), and options (num_warps)."""

    blocks: Mapping[str, int]
    options: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Generated:
    """One file that Inductor wrote. `arguments`: what stands for each argument of its call in a module's forward (`x`,
    `self.norm.weight`). `shapes` are those of forward's inputs; `returns` is `tensor`, `tuple` or `list`."""

    code: str
    launches: Mapping[str, Launch]
    arguments: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    returns: str


@dataclass(slots=True)
class _File:
    """The parts of the candidate, by name; `names` are taken."""

    helpers: Mapping[str, ast.FunctionDef]
    functions: dict[str, str] = field(default_factory=dict)
    constants: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def add(self, name: str, function: ast.FunctionDef) -> str:
        """Under its own name, or another where that is another function's."""
        for number in range(1000):
            function.name = name if not number else f"{name}_{number}"
            text = ast.unparse(function)
            if self.functions.setdefault(function.name, text) == text:
                return function.name
        raise NoStart("it has too many kernels of one name")


def standalone(task_source: str, generated: Sequence[Generated], helpers: str, version: str) -> str:
    """The candidate's source: `generated` at the task's own sizes first, then at its others.

    `helpers` is the text of Inductor's module of functions that its kernels call.

    Raises:
        NoStart: it cannot be had.
    """
    file = _File(
        {function.name: function for function in ast.parse(helpers).body if isinstance(function, ast.FunctionDef)}
    )
    module, inputs = ast.parse(task_source), inputs_of(task_source)
    if len({program.shapes for program in generated}) < len(generated):
        raise NoStart("two of the task's sizes have inputs of the same shapes")
    bodies = [_Calls(file, program, is_main=not number).body() for number, program in enumerate(generated)]
    return _written(file, module, inputs, generated, bodies, version)


class _Calls:
    """The launch code of one generated file, statement by statement."""

    def __init__(self, file: _File, generated: Generated, *, is_main: bool) -> None:
        self._file, self._generated, self._is_main = file, generated, is_main
        module = ast.parse(generated.code)
        self._kernels = dict(_kernels(module))
        self._call = _call_of(module)
        self._substitutes: dict[str, ast.expr] = {}
        self._made: set[str] = set()
        self._launched: dict[str, str] = {}

    def body(self) -> list[str]:
        """The statements of a forward.

        Raises:
            NoStart: one of them cannot be taken over.
        """
        return [line for node in self._call.body for line in self._statement(node)]

    def _statement(self, node: ast.stmt) -> Iterator[str]:
        match node:
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=guard))]) if "Guard" in ast.unparse(guard):
                for inner in node.body:
                    yield from self._statement(inner)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Name(id="args")):
                self._take_arguments([ast.unparse(name) for name in names])
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield from self._assigned(name, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="run")) as call):
                yield self._launch(name, call)
            case ast.Expr(value=ast.Call(func=function)) if ast.unparse(function) in CHECKS:
                return
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="zero_"))) if (
                name in self._made
            ):
                yield ast.unparse(node)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Delete(targets=targets):
                gone = [target.id for target in targets if isinstance(target, ast.Name) and target.id in self._made]
                if gone:
                    yield f"del {', '.join(gone)}"
            case ast.Return(value=value) if value is not None:
                yield self._returned(value)
            case _:
                raise NoStart(f"a line of its calls is of a kind that is not taken over: {ast.unparse(node)[:120]}")

    def _take_arguments(self, names: Sequence[str]) -> None:
        expressions = self._generated.arguments
        if len(names) != len(expressions):
            raise NoStart(f"its call takes {len(names)} tensors, where the module hands over {len(expressions)}")
        self._substitutes = {
            name: ast.parse(expression, mode="eval").body for name, expression in zip(names, expressions, strict=True)
        }

    def _assigned(self, name: str, value: ast.expr) -> Iterator[str]:
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "get_raw_stream":
            return
        if isinstance(value, ast.Name) and value.id == "args":
            raise NoStart("its call takes its tensors in a way that is not taken over")
        self._made.add(name)
        yield f"{name} = {ast.unparse(self._expression(value))}"

    def _expression(self, node: ast.expr) -> ast.expr:
        """Names of arguments as the module calls them, and Inductor's own functions as PyTorch's public ones."""
        match node:
            case ast.Name(id=name) if name in self._substitutes:
                return copy.deepcopy(self._substitutes[name])
            case ast.Name(id=name) if name in self._made:
                return node
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
                return node
            case ast.Call(func=ast.Name(id="empty_strided_cuda"), args=[size, stride, dtype]):
                text = f"torch.empty_strided({ast.unparse(size)}, {ast.unparse(stride)}, "
                return _parsed(f"{text}dtype={ast.unparse(dtype)}, device='cuda')")
            case ast.Call(func=ast.Name(id="reinterpret_tensor"), args=[of, size, stride, offset]):
                base = ast.unparse(self._expression(of))
                text = f"torch.as_strided({base}, {ast.unparse(size)}, {ast.unparse(stride)}"
                further = ast.unparse(offset)
                return _parsed(f"{text})" if further == "0" else f"{text}, {base}.storage_offset() + {further})")
            case _:
                raise NoStart(f"its calls have {ast.unparse(node)[:120]}, which is not taken over")

    def _returned(self, value: ast.expr) -> str:
        returned = value.elts if isinstance(value, ast.Tuple) else [value]
        texts = [ast.unparse(self._expression(item)) for item in returned]
        match self._generated.returns:
            case "tensor" if len(texts) == 1:
                return f"return {texts[0]}"
            case "tuple":
                return f"return ({', '.join(texts)},)"
            case "list":
                return f"return [{', '.join(texts)}]"
            case _:
                raise NoStart(f"its call returns {len(texts)} tensors, and the module another number")

    def _launch(self, name: str, call: ast.Call) -> str:
        """`kernel.run(tensors, numbers, stream=…)` as a launch with a grid."""
        if name not in self._kernels or name not in self._generated.launches:
            raise NoStart(f"its kernel {name} is not of Triton or was not launched")
        function, grid = self._kernels[name]
        if name not in self._launched:
            self._launched[name] = self._take_kernel(name)
        launch, new = self._generated.launches[name], self._launched[name]
        parameters = [argument.arg for argument in function.args.args]
        given = [ast.unparse(self._expression(argument)) for argument in call.args]
        blocks = {
            block: self._number(name, block, size) for block, size in launch.blocks.items() if block in parameters
        }
        options = {option: self._number(name, option, size) for option, size in launch.options.items()}
        if len(given) + len(blocks) != len(parameters):
            raise NoStart(
                f"its kernel {name} takes {len(parameters)} arguments and is handed {len(given) + len(blocks)}"
            )
        numbers = dict(zip(parameters, given, strict=False)) | {
            block: f"{size}" for block, size in launch.blocks.items()
        }
        words = [*given, *(f"{keyword}={text}" for keyword, text in {**blocks, **options}.items())]
        return f"{new}[{_grid(grid, numbers | blocks, name)}]({', '.join(words)})"

    def _number(self, kernel: str, name: str, value: int) -> str:
        """A block size or option as a constant that the tuner may change, of the task's own sizes; else as a number."""
        if not self._is_main or name not in TUNED:
            return f"{value}"
        constant = f"{TUNED[name]}_{list(self._launched).index(kernel)}"
        if constant not in self._file.constants and len(self._file.constants) >= MOST_TUNABLES:
            return f"{value}"
        most = max(LARGEST_WARPS if name == "num_warps" else LARGEST_BLOCK, value)
        others = tuple(candidate for candidate in (value // 2, value, value * 2) if 0 < candidate <= most)
        self._file.constants[constant] = value, others
        return constant

    def _take_kernel(self, name: str) -> str:
        """The kernel with the functions that it calls; returns its name in the candidate."""
        function, _ = self._kernels[name]
        beside = {helper.name: helper for helper in self._beside(name)}
        renamed = dict[str, str]()
        for other in beside.values():
            renamed[other.name] = self._file.add(other.name, _plain(other, self._taken_helpers(other), renamed))
        return self._file.add(name, _plain(function, self._taken_helpers(function), renamed))

    def _beside(self, name: str) -> Iterator[ast.FunctionDef]:
        """Functions that Inductor defines in the same text as a kernel: how a scan combines, say."""
        for node in ast.walk(_text_of(ast.parse(self._generated.code), name)):
            if isinstance(node, ast.FunctionDef) and node.name != name:
                yield node

    def _taken_helpers(self, function: ast.FunctionDef) -> dict[str, str]:
        """The functions of Inductor's run time that a function calls, copied with what they call."""
        names = {
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == HELPERS
        }
        for name in sorted(names):
            _take_helper(self._file, name)
        return {name: f"{COPIED}{name}" for name in names}


def _take_helper(file: _File, name: str) -> None:
    function = file.helpers.get(name)
    if function is None or [ast.unparse(decorator) for decorator in function.decorator_list] != ["triton.jit"]:
        raise NoStart(f"its kernels need {name} of Inductor's run time, which is not copied")
    new = f"{COPIED}{name}"
    if new in file.functions:
        return
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    parameters = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    called = sorted((used - parameters - stored) & file.helpers.keys())
    for other in called:
        _take_helper(file, other)
    if missing := sorted(
        used - parameters - stored - set(called) - set(dir(builtins)) - {"tl", "triton", "libdevice", "math"}
    ):
        raise NoStart(f"its kernels need {missing[0]} of Inductor's run time, which is not copied")
    renamed = {other: f"{COPIED}{other}" for other in called} | {"math": "tl_math"}
    file.add(new, _plain(function, {}, renamed))


class _Rename(ast.NodeTransformer):
    """Names of functions as the candidate has them; no docstrings."""

    def __init__(self, helpers: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._helpers, self._names = helpers, names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == HELPERS:
            return ast.Name(self._helpers[node.attr], node.ctx)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


def _plain(function: ast.FunctionDef, helpers: Mapping[str, str], names: Mapping[str, str]) -> ast.FunctionDef:
    """A function with the decorator `triton.jit` alone."""
    new = copy.deepcopy(function)
    new.decorator_list = [_parsed("triton.jit")]
    if ast.get_docstring(new) is not None and len(new.body) > 1:
        new.body = new.body[1:]
    renamed = _Rename(helpers, names).visit(new)
    assert isinstance(renamed, ast.FunctionDef)
    return renamed


def _kernels(module: ast.Module) -> Iterator[tuple[str, tuple[ast.FunctionDef, str]]]:
    """The Triton kernels of a generated file by name, each with the kind of its grid."""
    for node in module.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=made, args=[_, ast.Constant(value=str(text)), *_])
            ) if ast.unparse(made) == "async_compile.triton":
                for statement in ast.parse(text).body:
                    if isinstance(statement, ast.FunctionDef) and statement.name == name:
                        yield name, (statement, _grid_kind(statement))
            case _:
                pass


def _text_of(module: ast.Module, name: str) -> ast.Module:
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name and isinstance(node.value, ast.Call):
            return ast.parse(str(ast.literal_eval(node.value.args[1])))
    raise NoStart(f"its kernel {name} has no text")


def _grid_kind(kernel: ast.FunctionDef) -> str:
    for node in ast.walk(ast.Module([ast.Expr(decorator) for decorator in kernel.decorator_list], [])):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "grid_type" and isinstance(value, ast.Constant):
                    return str(value.value)
    return "unknown"


def _grid(kind: str, numbers: Mapping[str, str], kernel: str) -> str:
    """The programs of a launch, as a tuple. A block that a kernel has not is one element."""
    dimensions = {"Grid1D": 1, "Grid2D": 2, "Grid3D": 3}.get(kind)
    if dimensions is None:
        raise NoStart(f"its kernel {kernel} is launched over a grid of the kind {kind}, which is not taken over")
    programs = list[str]()
    for axis in AXES[:dimensions]:
        count, block = numbers.get(f"{axis.lower()}numel"), numbers.get(f"{axis}BLOCK")
        if count is None:
            raise NoStart(f"its kernel {kernel} does not say how many elements it has along {axis.lower()}")
        programs.append(f"triton.cdiv({count}, {block})" if block else count)
    return f"({', '.join(programs)},)"


def _call_of(module: ast.Module) -> ast.FunctionDef:
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name == "call"]
    if len(functions) != 1:
        raise NoStart("the generated file has no single function that makes the calls")
    return functions[0]


def refuse_libraries(code: str) -> None:
    """A kernel counts as one only where nothing of it is left to a library.

    Raises:
        NoStart: something is.
    """
    calls = list[str]()
    for node in ast.walk(_call_of(ast.parse(code))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if any(name.startswith(f"{library}.") for library in LIBRARIES) and name not in calls:
                calls.append(name)
    if calls:
        raise NoStart(f"it leaves work to PyTorch's library ({', '.join(calls[:4])})")


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def inputs_of(task_source: str) -> list[str]:
    """The names of forward's inputs.

    Raises:
        NoStart: they cannot be told.
    """
    model = _class_of(ast.parse(task_source))
    forward = next(
        (
            statement
            for statement in model.body
            if isinstance(statement, ast.FunctionDef) and statement.name == "forward"
        ),
        None,
    )
    if forward is None or forward.args.vararg or forward.args.kwonlyargs or forward.args.posonlyargs:
        raise NoStart("the module's forward takes its inputs in a way that is not taken over")
    return [parameter.arg for parameter in forward.args.args[1:]]


def _class_of(module: ast.Module) -> ast.ClassDef:
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            return node
    raise NoStart("the task's file has no class Model of its own")


def _written(
    file: _File, module: ast.Module, inputs: Sequence[str], generated: Sequence[Generated],
    bodies: Sequence[Sequence[str]], version: str,
) -> str:  # fmt: skip
    """All parts in the order in which Python needs them."""
    functions = "\n\n\n".join(file.functions.values())
    statements = _without_forward(module)
    model = next(
        statement for statement in statements if isinstance(statement, ast.ClassDef) and statement.name == "ModelNew"
    )
    count = len(generated[0].shapes)
    takes = inputs[:count]
    for number, (program, body) in enumerate(zip(generated, bodies, strict=True)):
        shapes = ", ".join(f"{name} {tuple(shape)}" for name, shape in zip(takes, program.shapes, strict=True))
        lines = "\n    ".join(body)
        text = f"def forward_{number}(self, {', '.join(takes)}):\n    '''{shapes}'''\n    {lines}"
        model.body += ast.parse(text).body
    model.body += ast.parse(_dispatch(takes, generated)).body
    if not isinstance(model.body[0], ast.Expr):
        model.body.insert(0, *ast.parse("'''The module, as torch.compile calls its kernels.'''").body)
    text = f"{functions}\n{ast.unparse(model)}"
    imports = ["import torch", "import torch.nn as nn", "import triton", "import triton.language as tl"]
    imports += ["from triton.language import math as tl_math"] * ("tl_math." in text)
    imports += ["from triton.language.extra import libdevice"] * ("libdevice." in text)
    imported = set(imports)
    imports += [
        line for line in map(ast.unparse, statements) if line.startswith(("import ", "from ")) and line not in imported
    ]
    rest = [
        ast.unparse(statement) for statement in statements if not isinstance(statement, ast.Import | ast.ImportFrom)
    ]
    constants = [
        f"{name} = {value}  # tune: {', '.join(map(str, others))}" for name, (value, others) in file.constants.items()
    ]
    header = HEADER.format(version=version) + (OF_PYTORCH if f"def {COPIED}" in functions else "")
    parts = [header + "\n".join(imports), "\n".join(constants), functions, *rest]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _dispatch(inputs: Sequence[str], generated: Sequence[Generated]) -> str:
    lines = [f"def forward(self, {', '.join(inputs)}):"]
    lines.append(f"    shapes = ({', '.join(f'tuple({name}.shape)' for name in inputs)},)")
    for number, program in enumerate(generated):
        lines.append(f"    if shapes == {tuple(map(tuple, program.shapes))!r}:")
        lines.append(f"        return self.forward_{number}({', '.join(inputs)})")
    lines.append("    raise ValueError(f'these kernels were compiled for other shapes than {shapes}')")
    return "\n".join(lines)


def _without_forward(module: ast.Module) -> list[ast.stmt]:
    """What makes the model, without what it computes: imports, what __init__ uses, and ModelNew in place of Model."""
    model = copy.deepcopy(_class_of(module))
    methods = {method.name: method for method in model.body if isinstance(method, ast.FunctionDef)}
    kept, open_ = list[str](), ["__init__"]
    while open_:
        name = open_.pop()
        if name in methods and name not in kept:
            kept.append(name)
            open_ += [node.attr for node in ast.walk(methods[name]) if isinstance(node, ast.Attribute)]
    kept = [name for name in kept if name != "forward"]
    model.body = [method for method in model.body if isinstance(method, ast.FunctionDef) and method.name in kept]
    for method in model.body:
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method) is not None and len(method.body) > 1:
            method.body = method.body[1:]
    named = _Rename({}, {"Model": "ModelNew"}).visit(model)
    assert isinstance(named, ast.ClassDef)
    named.name = "ModelNew"
    used, others = (
        _names([named]),
        [statement for statement in module.body if _defines(statement) and statement is not _class_of(module)],
    )
    taken: list[ast.stmt] = []
    while new := [statement for statement in others if statement not in taken and _defines(statement) & used]:
        taken += new
        used |= _names(new)
    return [*(statement for statement in module.body if statement in taken), named]


def _defines(node: ast.stmt) -> set[str]:
    match node:
        case ast.Import() | ast.ImportFrom():
            return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        case ast.FunctionDef() | ast.ClassDef():
            return {node.name}
        case ast.Assign() | ast.AnnAssign():
            return {
                child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
            }
        case _:
            return set()


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    return {child.id for node in nodes for child in ast.walk(node) if isinstance(child, ast.Name)}
