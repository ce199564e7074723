"""Problems of SOL-ExecBench and flashinfer-bench as tasks: a definition in JSON and its workloads in JSON Lines become
a module in the KernelBench convention. Reads files only; runs no code of the reference.

Sources: SOL-ExecBench's docs/definition.md, docs/workload.md (version 0.1.0), and the FlashInfer Trace schema.
"""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from engine.evaluator.checks.tolerance import EIGHT_BITS
from engine.evaluator.tasks import tensors
from engine.evaluator.tasks.constants import Size, constants, number
from engine.evaluator.tasks.parsing import parse, see_that_it_compiles
from engine.evaluator.tasks.tensors import Stored
from storage import untrusted
from storage.untrusted import Limits, UntrustedError

DEFINITION, WORKLOADS = "definition.json", "workload.jsonl"
FLOATS = ("float64", "float32", "float16", "bfloat16", *EIGHT_BITS)
FOUR_BITS = "float4_"
RANGES = {"int64": (-1024, 1024), "int32": (-1024, 1024), "int16": (-1024, 1024), "int8": (-128, 128), "bool": (0, 2)}
STORED = "safetensors"
MADE = ("random", "custom", "scalar", STORED)
HEADING = "# made from the problem "
CONSTANT = "# its constant axes: "
TENSORS = "# its tensors: "  # the folder, and files in it with the hashes of what they hold
ENTRY, MODEL, OWN_INPUTS = "run", "Model", "_own_inputs"
STORED_TENSORS, STORED_TENSOR, RECORDING = "_tensors", "_tensor", "recording"
MOST_EXPRESSION = 400
LIMITS = Limits(most_bytes=16 << 20)  # a problem may have thousands of workloads
TAKEN = {
    "torch", "nn", MODEL, OWN_INPUTS, STORED_TENSORS, STORED_TENSOR, "get_inputs", "get_init_inputs", "made",
    *dir(builtins), *keyword.kwlist,
}  # fmt: skip
_POSITIVE = re.compile(r"(^|_)(var|variance|rstd|inv_std)(_|\d|$)")


@dataclass(frozen=True, slots=True)
class Problem:
    """A definition with its workloads as a module's text. `workloads` are sizes by module-level name, in the order of
    the file; the text has those of the largest. `left_out` says which were not taken, and why; empty where all were.
    `files` are what it was made from, the definition last."""

    name: str
    description: str
    text: str
    workloads: tuple[Mapping[str, Size], ...]
    left_out: str
    files: Mapping[str, str]


def definition_in(path: Path) -> Path | None:
    """The definition that a path stands for: a JSON file, or a folder with one. None for anything else."""
    if path.suffix == ".json":
        return path
    return path / DEFINITION if (path / DEFINITION).is_file() else None


def read(path: Path) -> Problem:
    """The problem whose definition lies at `path`, with the workloads beside it.

    Raises:
        TaskError: a file is missing or cannot be used; the message says which and what to do.
    """
    return of_texts(_text(path), _text(_workloads_of(path)), path)


def of_texts(definition: str, workloads: str, path: Path) -> Problem:
    """A problem whose files are known, as they would be at a path.

    Raises:
        TaskError: one of them cannot be used.
    """
    plain = _json(definition, f"{path}")
    missing = [key for key in ("name", "axes", "inputs", "outputs", "reference") if not plain.get(key)]
    if missing:
        raise TaskError(f"{path} is no definition of a problem: it has no {', '.join(missing)}")
    try:
        problem = _Reader(plain, path).problem(workloads)
        parse(problem.text, f"the module made from {path}")
        see_that_it_compiles(problem.text, f"the module made from {path}")
    except SyntaxError as error:  # of an expression
        raise TaskError(f"the module made from {path} is not valid Python: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, MemoryError) as error:
        raise TaskError(f"{path} is no definition of a problem that can be read: {error!r}") from error
    return replace(problem, files={WORKLOADS: workloads, DEFINITION: definition})


def asked_for(source: str) -> tuple[str, list[str]] | None:
    """The name of the definition that a task's module was made from, and its inputs; None for any other task."""
    first = source.partition("\n")[0]
    if not first.startswith(HEADING):
        return None
    entries = [
        node for node in parse(source, "the task").body if isinstance(node, ast.FunctionDef) and node.name == ENTRY
    ]
    arguments = entries[-1].args
    return json.loads(first.removeprefix(HEADING)), [
        argument.arg for argument in (*arguments.posonlyargs, *arguments.args)
    ]


def changed_axes(source: str) -> list[str]:
    """The axes that a problem's definition holds constant and that have another value in a task's module."""
    second = source.split("\n", 2)[1] if source.startswith(HEADING) else ""
    if not second.startswith(CONSTANT):
        return []
    now = constants(parse(source, "the task"))
    return [name for name, value in json.loads(second.removeprefix(CONSTANT)).items() if now.get(name) != value]


def tensor_files(source: str) -> tuple[Path, ...]:
    """The safetensors files that a task's module reads, if it was made from a problem."""
    lines = source.split("\n", 3)
    if len(lines) < 3 or not lines[0].startswith(HEADING) or not lines[2].startswith(TENSORS):
        return ()
    folder, files = json.loads(lines[2].removeprefix(TENSORS))
    return tuple(Path(folder, file) for file in files if file.endswith(tensors.SUFFIX))


def _workloads_of(path: Path) -> Path:
    """Beside the definition, or where a FlashInfer Trace data set has it: workloads/… for definitions/…"""
    beside = path.with_name(WORKLOADS)
    if path.name == DEFINITION or beside.is_file():
        return beside
    if root := _data_set_of(path):
        inside = path.relative_to(root).parts[1:]
        return Path(root, "workloads", *inside).with_suffix(".jsonl")
    return beside


def _data_set_of(path: Path) -> Path | None:
    """The folder of the FlashInfer Trace data set that a definition is of."""
    return next((folder.parent for folder in path.parents if folder.name == "definitions"), None)


def _text(path: Path) -> str:
    try:
        return untrusted.read_text(path, LIMITS)
    except FileNotFoundError:
        raise TaskError(f"a problem needs {path}, which does not exist: put {path.name} there") from None
    except UntrustedError as error:
        raise TaskError(str(error)) from error


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        plain = untrusted.json_value(text, where, LIMITS)
    except UntrustedError as error:
        raise TaskError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(plain, dict):
        raise TaskError(f"{where} is not a JSON object")
    return plain


class _Reader:
    """One definition: what its axes are called in the module, and what each workload makes of them."""

    def __init__(self, plain: Mapping[str, Any], path: Path) -> None:
        self._plain = plain
        self._path = path
        self._inputs: dict[str, Mapping[str, Any]] = dict(plain["inputs"])
        self._module = parse(plain["reference"], f"the reference in {path}")
        self._axes: dict[str, Mapping[str, Any]] = dict(plain["axes"])
        self._names = self._module_level()
        self._recording = _unused(RECORDING, {*TAKEN, *_names(self._module), *self._names.values(), *self._inputs})
        self._stored: dict[int, Mapping[str, Stored]] = {}  # by the number of a workload
        self._custom = str(plain.get("custom_inputs_entrypoint") or "")
        self._see_that_it_can_be_run()

    def problem(self, workloads: str) -> Problem:
        read = [self._workload(line, number) for number, line in enumerate(workloads.splitlines(), 1) if line.strip()]
        if not read:
            raise TaskError(f"{_workloads_of(self._path)} names no workload: write one JSON object a line")
        refused = [workload for workload in read if isinstance(workload, str)]
        usable = {repr(workload): workload for workload in read if not isinstance(workload, str)}
        if not usable:
            raise TaskError(f"{self._path}: no workload can be used: {refused[0]}")
        taken = [sizes for sizes, _ in usable.values()]
        if any(stored for _, stored in usable.values()):
            taken = [{**sizes, self._recording: number} for number, sizes in enumerate(taken, 1)]
            self._stored = {number: stored for number, (_, stored) in enumerate(usable.values(), 1)}
        largest = max(taken, key=self._elements)
        left_out = f"{len(refused)} of {len(read)} workloads are left out: {refused[0]}" if refused else ""
        name, about = str(self._plain["name"]), str(self._plain.get("description") or "").strip()
        return Problem(name, about, self._written(about, largest), tuple(taken) if len(taken) > 1 else (), left_out, {})

    def _module_level(self) -> dict[str, str]:
        """Axes and scalars by what they are called in the module, where each name must be unused."""
        taken, names = TAKEN | set(_names(self._module)), dict[str, str]()
        scalars = [name for name, spec in self._inputs.items() if spec["shape"] is None]
        for name in (*self._axes, *scalars):
            called = _unused(name, taken | ({*self._axes, *self._inputs} - {name}))
            taken.add(called)
            names.setdefault(name, called)
        return names

    def _see_that_it_can_be_run(self) -> None:
        if MODEL in _names(self._module):
            raise TaskError(
                f"the reference in {self._path} defines {MODEL}, which the task's own class is called: rename it"
            )
        if shared := [name for name, spec in self._inputs.items() if spec["shape"] is None and name in self._axes]:
            raise TaskError(f"{self._path}: {shared[0]} is both an axis and an input that is a number: rename one")
        if ENTRY in self._inputs:
            raise TaskError(f"{self._path}: an input is called {ENTRY} like the reference's function: rename it")
        functions = {node.name: node for node in self._module.body if isinstance(node, ast.FunctionDef)}
        if ENTRY not in functions:
            raise TaskError(f"the reference in {self._path} defines no function {ENTRY}")
        arguments = [argument.arg for argument in (*functions[ENTRY].args.posonlyargs, *functions[ENTRY].args.args)]
        if arguments != list(self._inputs):
            raise TaskError(
                f"{self._path}: {ENTRY}({', '.join(arguments)}) does not take the inputs as they are named: "
                f"{', '.join(self._inputs)}"
            )
        if self._custom and self._custom not in functions:
            raise TaskError(f"the reference in {self._path} defines no function {self._custom} for the inputs")
        for name, spec in {**self._inputs, **self._plain["outputs"]}.items():
            if spec["dtype"] not in (*FLOATS, *RANGES):
                why = (
                    " (PyTorch converts 4-bit floats to no other dtype)" if spec["dtype"].startswith(FOUR_BITS) else ""
                )
                raise TaskError(
                    f"{self._path}: {name} is of dtype {spec['dtype']}, which is not supported{why}; supported are "
                    f"{', '.join((*FLOATS, *RANGES))}"
                )
            if unknown := [axis for axis in spec["shape"] or () if axis not in self._axes and not axis.isdigit()]:
                raise TaskError(f"{self._path}: the shape of {name} names {unknown[0]}, which is no axis")
        if scalar := [name for name, spec in self._plain["outputs"].items() if spec["shape"] is None]:
            raise TaskError(f"{self._path}: the output {scalar[0]} is a number, and only tensors are supported")

    def _workload(self, line: str, row: int) -> tuple[dict[str, Size], dict[str, Stored]] | str:
        """Its sizes and the tensors that it has in files, or in words why it is not taken. A FlashInfer Trace line has
        it one level further down."""
        where = f"line {row} of the workloads of {self._path}"
        plain = _json(line, where)
        plain = plain.get("workload") or plain
        axes, inputs = plain.get("axes"), plain.get("inputs")
        if not isinstance(axes, dict) or not isinstance(inputs, dict):
            raise TaskError(f"{where} is no workload: it needs axes and inputs")
        sizes: dict[str, Size] = {}
        stored: dict[str, Stored] = {}
        for axis, about in self._axes.items():
            if about["type"] != "var":
                continue
            if type(axes.get(axis)) is not int or axes[axis] < 0:
                raise TaskError(f"{where} gives the axis {axis} no whole number")
            sizes[self._called(axis)] = axes[axis]
        for name, spec in self._inputs.items():
            given = inputs.get(name)
            if given is None or given.get("type") not in MADE:
                kind = "not described" if given is None else f"of type {given.get('type')}"
                return f"the input {name} is {kind}, and inputs must be {', '.join(MADE)}"
            if given["type"] == "custom" and not self._custom:
                raise TaskError(f"{where}: {name} is custom, but {self._path} names no custom_inputs_entrypoint")
            if given["type"] != "custom" and self._custom:
                return (
                    f"the input {name} is {given['type']}, and {self._custom} makes all inputs, so each must be custom"
                )
            if given["type"] == STORED and spec["shape"] is not None:
                try:
                    stored[name] = tensors.find(given, self._folders)
                except tensors.Unusable as error:
                    return f"the input {name} {error}"
                continue
            if given["type"] != "scalar":
                if spec["shape"] is None and given["type"] in ("random", STORED):
                    kind = "a random number" if given["type"] == "random" else "a number in a file"
                    return f"the input {name} is {kind}: give it as a scalar with its value"
                continue
            if type(given.get("value")) not in (int, float):
                return f"the input {name} is {given.get('value')!r}, and scalars must be finite numbers"
            if not math.isfinite(given["value"]):
                return f"the input {name} is {given['value']}, and scalars must be finite numbers"
            sizes[self._called(name)] = given["value"]
        return self._misfit(sizes, stored) or (sizes, stored)

    @property
    def _folders(self) -> list[Path]:
        """Where the files of its tensors may lie."""
        root = _data_set_of(self._path)
        return [folder.absolute() for folder in (self._path.parent, *([root] if root else []))]

    def _misfit(self, sizes: Mapping[str, Size], stored: Mapping[str, Stored]) -> str:
        """Why tensors of files are not those that the definition describes; empty where they are."""
        values = self._values(sizes) if stored else {}
        for name, tensor in stored.items():
            spec = self._inputs[name]
            shape = tuple(int(axis) if axis.isdigit() else values[axis] for axis in spec["shape"])
            if (tensor.shape, tensor.dtype) != (shape, spec["dtype"]):
                return (
                    f"the input {name} is {tensor.dtype} of shape {tensor.shape} in {tensor.file}, and "
                    f"its definition at these axes says {spec['dtype']} of shape {shape}"
                )
        return ""

    def _elements(self, sizes: Mapping[str, Size]) -> int:
        values = self._values(sizes)
        shapes = [spec["shape"] for spec in self._inputs.values() if spec["shape"] is not None]
        return sum(math.prod(int(axis) if axis.isdigit() else values[axis] for axis in shape) for shape in shapes)

    def _values(self, sizes: Mapping[str, Size]) -> dict[str, int]:
        """Every axis at a workload."""
        values = {axis: int(sizes[self._called(axis)]) for axis, spec in self._axes.items() if spec["type"] == "var"}
        values |= {axis: int(spec["value"]) for axis, spec in self._axes.items() if spec["type"] == "const"}
        for axis, about in self._axes.items():
            if about["type"] == "expr":
                filled = ast.unparse(_Given(values).visit(_expression(about["expression"])))
                value = number(ast.parse(filled, mode="eval").body)
                if value is None:
                    raise TaskError(f"{self._path}: the axis {axis} cannot be computed: {about['expression']}")
                values[axis] = int(value)
        return values

    def _called(self, name: str) -> str:
        """An axis or a scalar as a module-level name; what the reference uses that name for stays as it is."""
        return self._names[name]

    def _written(self, about: str, sizes: Mapping[str, Size]) -> str:
        """The module, in the order: the reference, the model, sizes, inputs."""
        return "\n".join([*self._head(), *self._model(about), *self._sizes(sizes), *self._get_inputs()]) + "\n"

    def _head(self) -> Iterator[str]:
        yield f"{HEADING}{json.dumps(self._plain['name'])}"
        yield f"{CONSTANT}{json.dumps(self._constant())}"
        if self._stored:
            yield f"{TENSORS}{json.dumps(self._files())}"
        yield from ("", self._plain["reference"].strip(), "")
        # Behind the reference, whose `from __future__ import` must come first.
        brought = set(_names(self._module))
        yield from (
            line for name, line in (("torch", "import torch"), ("nn", "import torch.nn as nn")) if name not in brought
        )
        yield from ("", "")
        if self._custom:
            yield from (f"{OWN_INPUTS} = {self._custom}", "", "")

    def _folder(self) -> Path:
        """The folder that the files of all its tensors lie in, however deep."""
        return Path(
            os.path.commonpath([tensor.folder for stored in self._stored.values() for tensor in stored.values()])
        )

    def _files(self) -> tuple[str, dict[str, str]]:
        """That folder, and the files with the hashes of their contents."""
        folder = self._folder()
        used = {tensor.file for stored in self._stored.values() for tensor in stored.values()}
        return str(folder), {str(file.relative_to(folder)): tensors.digest(file) for file in sorted(used)}

    def _model(self, about: str) -> Iterator[str]:
        names = ", ".join(self._inputs)
        yield f"class {MODEL}(nn.Module):"
        if about:
            text = about.replace("\\", "\\\\").replace('"', "'")
            yield from (f'    """{text}"""', "")
        yield f"    def forward(self, {names}):"
        if any(isinstance(node, ast.Dict) for node in ast.walk(self._entry())):
            outputs = ", ".join(f'found["{name}"]' for name in self._plain["outputs"])
            yield f"        found = {ENTRY}({names})"
            yield f"        return ({outputs},) if isinstance(found, dict) else found"
        else:
            yield f"        return {ENTRY}({names})"
        yield from ("", "")

    def _entry(self) -> ast.FunctionDef:
        return next(node for node in self._module.body if isinstance(node, ast.FunctionDef) and node.name == ENTRY)

    def _sizes(self, sizes: Mapping[str, Size]) -> Iterator[str]:
        yield from (f"{name} = {value!r}" for name, value in {**sizes, **self._constant()}.items())
        yield from ("", "")

    def _constant(self) -> dict[str, Size]:
        return {self._called(axis): spec["value"] for axis, spec in self._axes.items() if spec["type"] == "const"}

    def _get_inputs(self) -> Iterator[str]:
        if self._stored:
            yield from self._reading()
        yield "def get_inputs():"
        for axis, about in self._axes.items():
            if about["type"] == "expr":
                yield f"    {self._called(axis)} = int({self._renamed(about['expression'])})"
        if self._custom:
            yield from self._made_by_it()
        else:
            yield "    return ["
            yield from (f"        {self._given(name, spec)}," for name, spec in self._inputs.items())
            yield "    ]"
        yield from ("", "", "def get_init_inputs():", "    return []")

    def _reading(self) -> Iterator[str]:
        """The tensors of each workload by its number, and how one is read."""
        folder = self._folder()
        yield f"{STORED_TENSORS} = {{"
        for workload, stored in self._stored.items():
            places = {name: (str(tensor.file.relative_to(folder)), tensor.key) for name, tensor in stored.items()}
            yield f"    {workload}: {places!r},"
        yield from ("}", "", "", f"def {STORED_TENSOR}(name, shape, dtype):")
        yield from (
            "    from pathlib import Path",
            "",
            "    from safetensors import safe_open",
            "",
            "    if type(torch.empty(0)) is not torch.Tensor:  # shapes alone are asked for",
            "        return torch.empty(shape, dtype=dtype)",
            f"    path, key = {STORED_TENSORS}[{self._recording}][name]",
            f'    with safe_open(Path({str(folder)!r}, path), framework="pt") as file:',
            "        tensor = file.get_tensor(key)",
            "    if tuple(tensor.shape) != shape or tensor.dtype != dtype:",
            '        found = f"{name} has the shape {tuple(tensor.shape)} in its file, and {shape} in the task"',
            '        raise ValueError(f"{found}: sizes of what is in files cannot be set")',
            "    return tensor.to(torch.get_default_device())",
            "",
            "",
        )

    def _made_by_it(self) -> Iterator[str]:
        given = [f'"{axis}": {self._in_shape(axis)}' for axis in self._axes]
        yield f"    made = {OWN_INPUTS}({{{', '.join(given)}}}, torch.get_default_device())"
        yield f"    return [made[name] for name in ({', '.join(repr(name) for name in self._inputs)},)]"

    def _given(self, name: str, spec: Mapping[str, Any]) -> str:
        """An input out of its file, in the workloads that have it in one."""
        having = [name in stored for stored in self._stored.values()]
        if not any(having):
            return self._drawn(name, spec)
        read = f"{STORED_TENSOR}({name!r}, {self._shape(spec)}, torch.{spec['dtype']})"
        if all(having):
            return read
        return f"{read} if {name!r} in {STORED_TENSORS}[{self._recording}] else {self._drawn(name, spec)}"

    def _shape(self, spec: Mapping[str, Any]) -> str:
        axes = [self._in_shape(axis) for axis in spec["shape"]]
        return f"({axes[0]},)" if len(axes) == 1 else f"({', '.join(axes)})"

    def _drawn(self, name: str, spec: Mapping[str, Any]) -> str:
        if spec["shape"] is None:
            return self._called(name)
        shape = self._shape(spec)
        dtype = f"dtype=torch.{spec['dtype']}"
        if spec["dtype"] in FLOATS:
            drawn = f"torch.randn({shape}, {dtype})"
            if spec["dtype"] in EIGHT_BITS:  # PyTorch draws none; the scales of blocks are powers of two
                numbers = f"torch.randn({shape})" if spec["dtype"] != EIGHT_BITS[-1] else f"torch.rand({shape}) + 0.5"
                return f"({numbers}).to(torch.{spec['dtype']})"
            is_share = self._plain.get("op_type") == "sampling" and name == "probs"
            if _POSITIVE.search(name):  # a reference may take its root or divide by it
                return f"{drawn}.abs() + 0.1"
            return f"torch.softmax({drawn}, dim=-1)" if is_share else drawn
        low, high = RANGES[spec["dtype"]]
        return f"torch.randint({low}, {high}, {shape}, {dtype})"

    def _in_shape(self, axis: str) -> str:
        return axis if axis.isdigit() else self._called(axis)

    def _renamed(self, expression: str) -> str:
        module = _expression(expression)
        for node in ast.walk(module):
            if isinstance(node, ast.Name) and node.id in self._axes:
                node.id = self._in_shape(node.id)
        return ast.unparse(module)


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_size"
    return name


def _expression(text: str) -> ast.Expression:
    if len(text) > MOST_EXPRESSION:
        raise ValueError(f"an expression of {len(text):,} characters: at most {MOST_EXPRESSION} are read")
    return ast.parse(text, mode="eval")


class _Given(ast.NodeTransformer):
    """Numbers in the place of names."""

    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._values[node.id]) if node.id in self._values else node


def _names(module: ast.Module) -> Iterator[str]:
    """What a module's own level defines or imports."""
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets: Sequence[ast.expr] = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
