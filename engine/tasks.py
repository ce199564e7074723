"""Tasks: reference modules in the KernelBench convention, read without importing torch. Knows no run."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from engine.toolchain_table import HOST, device_of
from storage import codec
from storage.codec import DecodeError
from storage.policy import EVERYTHING, PRECISIONS, Policy
from storage.records import KernelClass

SHIPPED = Path(__file__).resolve().parent.parent / "tasks"
REQUIRED = ("Model", "get_inputs", "get_init_inputs")

Size = int | float

# Large operators in a file from which on it counts as a whole network.
NETWORK = 4
_CONVOLUTIONS = [f"{kind}{size}d" for kind in ("conv", "conv_transpose") for size in (1, 2, 3)]
# As a layer, a function or a method, by the name that PyTorch's dispatcher knows.
_LARGE = {
    **{name: name for name in (*_CONVOLUTIONS, "linear", "bilinear", "matmul", "bmm", "mm", "addmm", "einsum")},
    **{name.title().replace("_", "").replace("D", "d"): name for name in (*_CONVOLUTIONS, "linear", "bilinear")},
    **dict.fromkeys(("scaled_dot_product_attention", "MultiheadAttention"), "scaled_dot_product_attention"),
    "LSTM": "lstm",
    "GRU": "gru",
    "RNN": "rnn_tanh",
}


@dataclass(frozen=True, slots=True)
class Task:
    """A reference module ready to run: `source` has the size overrides in place.

    `kernel_class` is None when the file states none: the model proposes it then. `language` is the one that kernels
    must be written in; empty for any.
    """

    name: str
    source: str
    sizes: Mapping[str, Size]
    kernel_class: KernelClass | None = None
    title: str = ""
    policy: Policy = field(default_factory=Policy)
    language: str = ""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A task on disk: the module as written, its constants, and what the TOML file beside it says."""

    path: Path
    text: str
    constants: Mapping[str, Size]
    presets: Mapping[str, Mapping[str, Size]]
    kernel_class: KernelClass | None
    title: str
    policy: Policy

    @property
    def name(self) -> str:
        """File name without suffix."""
        return self.path.stem

    @property
    def is_shipped(self) -> bool:
        """Whether it comes with Tilewright."""
        return self.path.is_relative_to(SHIPPED)

    def task(self, toolchain: str = "cpu", overrides: Mapping[str, Size] | None = None) -> Task:
        """The task at the sizes for a toolchain's device (`sizes.cpu` or `sizes.gpu`), further overridden by name.

        Raises:
            TaskError: an override names no module-level number.
        """
        preset = self.presets.get("cpu" if device_of(toolchain) == HOST else "gpu", {})
        sizes = {**self.constants, **preset, **(overrides or {})}
        return Task(
            self.name, set_constants(self.text, sizes, self.path), sizes, self.kernel_class, self.title, self.policy
        )


def shipped() -> Iterator[TaskFile]:
    """Every task that comes with Tilewright, by class and name."""
    for path in sorted(SHIPPED.glob("*/*.py")):
        yield read(path)


def find(name: str) -> TaskFile:
    """A task by path, or a shipped one by name.

    Raises:
        TaskError: neither a file nor a shipped task; or a file that cannot be used.
    """
    if name.endswith(".py") or "/" in name:
        return read(Path(name))
    for path in SHIPPED.glob(f"*/{name}.py"):
        return read(path)
    known = ", ".join(path.stem for path in sorted(SHIPPED.glob("*/*.py")))
    raise TaskError(f"no task {name!r}. Shipped tasks: {known}. Any KernelBench-style file works too: give its path.")


def read(path: Path) -> TaskFile:
    """Read a KernelBench-style module and, if there is one, the TOML file beside it.

    Raises:
        TaskError: missing, not Python, or without Model, get_inputs and get_init_inputs.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot read task {path}: {error}") from error
    module = _parse(text, path)
    missing = [name for name in REQUIRED if name not in _defined(module)]
    if missing:
        raise TaskError(
            f"{path} is not a KernelBench-style task: it does not define {', '.join(missing)}. "
            f"A task defines a class Model(nn.Module), get_inputs() and get_init_inputs()."
        )
    about = _about(path.with_suffix(".toml"))
    kernel_class = KernelClass(about["class"]) if "class" in about else None
    title = str(about.get("title", path.stem.replace("_", " ")))
    policy = _policy(about.get("policy", {}), path.with_suffix(".toml"))
    if "library_operators" not in about.get("policy", {}):
        policy = replace(policy, library_operators=proposed_operators(module))
    return TaskFile(path, text, _constants(module), about.get("sizes", {}), kernel_class, title, policy)


def set_constants(text: str, values: Mapping[str, Size], path: Path | str = "task") -> str:
    """The module with the values of its module-level number assignments replaced; all else is untouched.

    Raises:
        TaskError: a name is not assigned at module level.
    """
    module = _parse(text, path)
    lines = text.split("\n")
    spots = {
        name: node.value for node in reversed(module.body) for name in _targets(node) if isinstance(node, ast.Assign)
    }
    unknown = sorted(set(values) - set(spots))
    if unknown:
        known = ", ".join(f"{k}={v}" for k, v in _constants(module).items()) or "none"
        raise TaskError(f"{path} has no module-level number {', '.join(unknown)} to set. Available: {known}.")
    for name, node in sorted(spots.items(), key=lambda item: -item[1].lineno):
        if name in values and _number(node) != values[name]:
            _replace(lines, node, repr(values[name]), name, path)
    return "\n".join(lines)


def _replace(lines: list[str], node: ast.expr, new: str, name: str, path: Path | str) -> None:
    if node.end_lineno != node.lineno or node.end_col_offset is None:
        raise TaskError(f"{path}: {name} is assigned over several lines and cannot be set: write it on one line")
    raw = lines[node.lineno - 1].encode()
    lines[node.lineno - 1] = (raw[: node.col_offset] + new.encode() + raw[node.end_col_offset :]).decode()


def _parse(text: str, path: Path | str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{path} is not valid Python: {error}") from error


def _defined(module: ast.Module) -> set[str]:
    names = {node.name for node in module.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return names.union(*(_targets(node) for node in module.body))


def _targets(node: ast.stmt) -> list[str]:
    if not isinstance(node, ast.Assign):
        return []
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _constants(module: ast.Module) -> dict[str, Size]:
    found: dict[str, Size] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and (value := _number(node.value)) is not None:
            found.update(dict.fromkeys(_targets(node), value))
    return found


def _number(node: ast.expr) -> Size | None:
    """The value of an arithmetic expression over literals (KernelBench writes `N = 2048 * 2`), else None."""
    allowed = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    if not all(isinstance(part, allowed) for part in ast.walk(node)):
        return None
    if any(isinstance(part, ast.Constant) and type(part.value) not in (int, float) for part in ast.walk(node)):
        return None
    try:
        value = eval(compile(ast.Expression(node), "<size>", "eval"), {"__builtins__": {}})
    except (ArithmeticError, ValueError):
        return None
    return value if type(value) in (int, float) else None


def proposed_operators(module: ast.Module) -> tuple[str, ...]:
    """What a whole network leaves to PyTorch unless somebody says otherwise: its large operators, in order of names.

    Nobody wants every convolution of a network replaced at once. Nothing for a file with few of them: there the
    operator is the task.
    """
    large = list(_large(module, 1))
    return tuple(sorted({name for name, _ in large})) if sum(count for _, count in large) >= NETWORK else ()


def _large(node: ast.AST, count: int) -> Iterator[tuple[str, int]]:
    """Names of large operators and how many each place stands for: one in a loop or a helper is made more than once."""
    is_helper = isinstance(node, ast.FunctionDef) and node.name not in ("__init__", "forward")
    if is_helper or isinstance(node, (ast.For, ast.While, ast.comprehension, ast.ListComp, ast.GeneratorExp)):
        count = 3
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield "matmul", count
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _LARGE:
            yield _LARGE[name], count
    for child in ast.iter_child_nodes(node):
        yield from _large(child, count)


def policy_with(policy: Policy, library: str = "", precision: str = "") -> Policy:
    """A task's policy as a person wants it for one run; an empty text leaves it as it is.

    Args:
        policy: of the task.
        library: what PyTorch may compute: `none`, `all`, or names of operators with commas between them.
        precision: one of PRECISIONS.

    Raises:
        TaskError: a name that no operator can have, or no such precision.
    """
    if precision and precision not in PRECISIONS:
        raise TaskError(f"precision {precision!r} is unknown; choose {' or '.join(PRECISIONS)}")
    names = tuple(name.strip() for name in library.split(",") if name.strip())
    if wrong := [name for name in names if not name.isidentifier()]:
        raise TaskError(f"{wrong[0]!r} is no operator's name; write none, all, or names such as conv2d,matmul")
    operators = {("none",): (), ("all",): (EVERYTHING,), (): policy.library_operators}.get(names, names)
    return replace(policy, library_operators=operators, precision=precision or policy.precision)


def _policy(plain: Mapping[str, Any], path: Path) -> Policy:
    known = {one.name for one in fields(Policy)}
    if unknown := sorted(set(plain) - known):
        raise TaskError(
            f"{path}: unknown entry in [policy]: {', '.join(unknown)}. Available: {', '.join(sorted(known))}."
        )
    try:
        policy: Policy = codec.from_plain(Policy, plain)
    except DecodeError as error:
        raise TaskError(f"{path}: [policy] cannot be read: {error}") from error
    if policy.precision not in PRECISIONS:
        raise TaskError(f"{path}: precision {policy.precision!r} is unknown; choose {' or '.join(PRECISIONS)}")
    return policy


def _about(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{path}: {error}") from error
