"""Tasks on disk: a module in the KernelBench convention, the TOML file beside it, and folders of them."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.errors import TaskError
from engine.evaluator.tasks import problems
from engine.evaluator.tasks.constants import Size, constants, set_constants
from engine.evaluator.tasks.operators import guessed_class, proposed_operators
from engine.evaluator.tasks.parsing import MOST_BYTES, parse
from engine.evaluator.tasks.policies import read_policy
from engine.evaluator.tasks.shown import text_with_modules
from engine.evaluator.toolchain_table import HOST, device_of
from storage import untrusted
from storage.results.in_words import PASTED, YOURS
from storage.results.policy import DTYPES, MODES, Policy
from storage.results.vocabulary import KernelClass
from storage.untrusted import Limits, UntrustedError

SHIPPED = Path(__file__).resolve().parents[3] / "tasks"
SHOWN, SHOWN_OF_NAME = 12, 80
MOST_FOLDERS, MOST_FILES = 2000, 5000
MODULES = re.compile(r"(.+)-modules(\d)")
MODULE = Limits(most_bytes=MOST_BYTES)
REQUIRED = ("Model", "get_inputs", "get_init_inputs")


@dataclass(frozen=True, slots=True)
class Task:
    """A reference module ready to run: `source` has the size overrides in place.

    `kernel_class` is None when the file states none: the model proposes it then, and `guessed_class`, by what its text
    calls and its policy does not leave to PyTorch, stands until it has. `language` is the one that kernels must be
    written in; empty for any. `place` says where it stands in a network, in words.
    """

    name: str
    source: str
    sizes: Mapping[str, Size]
    kernel_class: KernelClass | None = None
    title: str = ""
    policy: Policy = field(default_factory=Policy)
    language: str = ""
    guessed_class: KernelClass = KernelClass.OTHER
    place: str = ""


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A task on disk: the module as written, its constants, and what the TOML file beside it says.

    `own_name` is what its TOML file calls it, or the definition's name of one made from a problem; `remark` has what
    was left out of a problem, `made_from` its files by name.
    """

    path: Path
    text: str
    constants: Mapping[str, Size]
    presets: Mapping[str, Mapping[str, Size]]
    kernel_class: KernelClass | None
    title: str
    policy: Policy
    own_name: str = ""
    remark: str = ""
    made_from: Mapping[str, str] = field(default_factory=dict)
    place: str = ""

    @property
    def name(self) -> str:
        """File name without suffix, with what the policy makes of it: `linear-backward`."""
        return f"{self.own_name or self.path.stem}{self.policy.variant}"

    @property
    def guessed_class(self) -> KernelClass:
        """By what its text and the modules that it reaches call, and its policy does not leave to PyTorch."""
        return guessed_class(parse(text_with_modules(self.text), self.path), self.policy.library_operators)

    @property
    def is_shipped(self) -> bool:
        """Whether it comes with Tilewright."""
        return self.path.is_relative_to(SHIPPED)

    def task(self, toolchain: str = "cpu", overrides: Mapping[str, Size] | None = None) -> Task:
        """The task at the sizes for a toolchain's device (`sizes.cpu` or `sizes.gpu`), further overridden by name.

        Raises:
            TaskError: an override names no module-level number, or is none that it can have.
        """
        preset = self.presets.get("cpu" if device_of(toolchain) == HOST else "gpu", {})
        changed = {**preset, **(overrides or {})}
        source = set_constants(self.text, changed, self.path)
        sizes = constants(parse(source, self.path))
        changed_sizes = {name: sizes.get(name, value) for name, value in changed.items()}
        policy = replace(self.policy, workloads=_changed(self.policy.workloads, changed_sizes))
        return Task(
            self.name, source, sizes, self.kernel_class, self.title, policy, guessed_class=self.guessed_class,
            place=self.place,
        )  # fmt: skip


def _changed(workloads: tuple[Mapping[str, Size], ...], by: Mapping[str, Size]) -> tuple[Mapping[str, Size], ...]:
    """Workloads where sizes are overridden: in all of them, and those that are alike then count once."""
    changed = [{name: by.get(name, size) for name, size in workload.items()} for workload in workloads]
    once = [workload for number, workload in enumerate(changed) if workload not in changed[:number]]
    return tuple(once) if len(once) > 1 else ()


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file of a folder; `task` is None where it is none, and `reason` says why."""

    path: Path
    task: TaskFile | None
    reason: str = ""


def shipped() -> Iterator[TaskFile]:
    """Every task that comes with Tilewright, by class and name."""
    for path in sorted(SHIPPED.glob("*/*.py")):
        yield read(path)


def shipped_names() -> list[str]:
    """The names of the tasks that come with Tilewright."""
    return sorted(path.stem for path in SHIPPED.glob("*/*.py"))


def in_folder(folder: Path) -> list[FolderEntry]:
    """Every Python file and every problem's definition of a folder and of the folders in it, by path: a task, or the
    reason why it is none.

    Raises:
        TaskError: it is no folder, or no such file is in it.
    """
    files = _files(folder)
    definitions = {path for path in files if path.name == problems.DEFINITION}
    beside = {path.parent for path in definitions}  # a problem may come with its reference as a file of its own
    python_files = (
        path
        for path in files
        if path.suffix == ".py" and not path.name.startswith(("_", ".")) and path.parent not in beside
    )
    paths = sorted({*definitions, *python_files})
    if not paths:
        raise TaskError(
            f"{folder} is no folder with KernelBench-style files (*.py) or problems ({problems.DEFINITION}) in it"
        )
    return [_entry(path) for path in paths]


def _files(folder: Path) -> list[Path]:
    """All that may be tasks, of no more folders than a person waits for."""
    paths = list[Path]()
    for looked_at, (parent, _, names) in enumerate(os.walk(folder), 1):
        paths += [Path(parent, name) for name in names if name.endswith(".py") or name == problems.DEFINITION]
        if looked_at > MOST_FOLDERS or len(paths) > MOST_FILES:
            raise TaskError(
                f"{folder} holds more than {MOST_FOLDERS:,} folders or {MOST_FILES:,} Python files: name a folder in it"
            )
    return paths


def _entry(path: Path) -> FolderEntry:
    try:
        return FolderEntry(path, of_problem(path) if path.name == problems.DEFINITION else read(path))
    except TaskError as error:
        return FolderEntry(path, None, str(error))


def find(name: str) -> TaskFile:
    """A task by path, which may be that of a problem or of its folder, or a shipped one by name.

    `softmax-bf16-eval-backward` is the shipped `softmax` with bfloat16 tensors in evaluation mode, forward and
    backward.

    Raises:
        TaskError: neither a file nor a shipped task; a file that cannot be used; or a folder, with what is in it.
    """
    try:
        definition, is_folder = problems.definition_in(Path(name)), Path(name).is_dir()
    except (OSError, ValueError) as error:
        raise TaskError(f"{name[:SHOWN_OF_NAME]!r} is no path of a task: {error.args[-1]}") from error
    if definition:
        return of_problem(definition)
    if is_folder:
        raise TaskError(_which(Path(name)))
    if name.endswith(".py") or "/" in name:
        return read(Path(name))
    plain, policy = _variant(name)
    for path in SHIPPED.glob(f"*/{plain}.py"):
        file = read(path)
        return replace(file, policy=replace(file.policy, **policy))
    names = ", ".join(shipped_names())
    raise TaskError(f"no task {name!r}. Shipped tasks: {names}. Any KernelBench-style file works too: give its path.")


def _variant(name: str) -> tuple[str, dict[str, Any]]:
    """The task's own name, and what the rest of the name says of its policy."""
    plain = name.removesuffix("-backward")
    policy: dict[str, Any] = {"backward": True} if plain != name else {}
    if match := MODULES.fullmatch(plain):
        plain, policy = match[1], {**policy, "compare_modules": int(match[2])}
    for entry, words in (("mode", MODES), ("dtype", DTYPES)):
        for word in words:
            if plain.endswith(f"-{word}"):
                plain, policy = plain.removesuffix(f"-{word}"), {**policy, entry: word}
    return plain, policy


def _which(folder: Path) -> str:
    names = [str(entry.path.relative_to(folder)) for entry in in_folder(folder) if entry.task is not None]
    if not names:
        return f"{folder} holds no task: `python -m engine tasks {folder}` tells why of each file"
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return (
        f"{folder} is a folder with {len(names)} tasks, where one is wanted: give {folder / names[0]}, say. "
        f"There are {shown}. `python -m engine tasks {folder}` lists them with their classes and the memory they need"
    )


def read(path: Path) -> TaskFile:
    """Read a KernelBench-style module and, if there is one, the TOML file beside it.

    Raises:
        TaskError: missing, not Python, or without Model, get_inputs and get_init_inputs.
    """
    try:
        text = untrusted.read_text(path, MODULE)
    except FileNotFoundError:
        raise TaskError(f"the file {path} does not exist") from None
    except UntrustedError as error:
        raise TaskError(f"no task can be read: {error}") from error
    return of_text(text, path)


def of_problem(path: Path) -> TaskFile:
    """The task of a problem's definition and the workloads beside it.

    Raises:
        TaskError: one of them is missing or cannot be used.
    """
    return made_of(problems.read(path), path)


def made_of(problem: problems.Problem, path: Path) -> TaskFile:
    """A problem as a task, as it would be at a path."""
    file = of_text(problem.text, path)
    name = re.sub(r"\W+", "_", problem.name, flags=re.ASCII).strip("_") or "problem"
    for sizes in problem.workloads:
        try:
            set_constants(file.text, sizes, path)
        except TaskError as error:
            raise TaskError(f"{path}: a workload cannot be judged: {error}") from error
    policy = replace(file.policy, workloads=problem.workloads)
    return replace(
        file, policy=policy, title=problem.name, own_name=name, remark=problem.left_out, made_from=problem.files
    )


def of_text(text: str, path: Path) -> TaskFile:
    """A module whose text is known, as it would be at a path.

    Raises:
        TaskError: not Python, or without Model, get_inputs and get_init_inputs.
    """
    beside = path.with_suffix(".toml")
    try:
        toml = untrusted.read_text(beside)
    except FileNotFoundError:
        toml = ""
    except UntrustedError as error:
        raise TaskError(str(error)) from error
    return _of_texts(text, path, toml)


@functools.lru_cache(maxsize=256)  # a form that offers all shipped tasks asks for each of them whenever it is drawn
def _of_texts(text: str, path: Path, toml: str) -> TaskFile:
    module = parse(text, path)
    defined = set(_defined(module.body))
    if missing := [name for name in REQUIRED if not {name, "*"} & defined]:
        raise TaskError(
            f"{path} is not a KernelBench-style task: it does not define {', '.join(missing)}. "
            f"A task defines or imports a class Model(nn.Module), get_inputs() and get_init_inputs()."
        )
    about = _about(toml, path.with_suffix(".toml"))
    if "class" in about and about["class"] not in list(KernelClass):
        classes = ", ".join(KernelClass)
        raise TaskError(f"{path.with_suffix('.toml')}: class {about['class']!r} is unknown; choose one of {classes}")
    kernel_class = KernelClass(about["class"]) if "class" in about else None
    title = str(about.get("title", re.sub(PASTED, YOURS, path.stem).replace("_", " ")))
    policy = read_policy(about.get("policy", {}), path.with_suffix(".toml"))
    if "library_operators" not in about.get("policy", {}):
        policy = replace(policy, library_operators=proposed_operators(module))
    presets = about.get("sizes", {})
    place = str(about.get("place", ""))
    own_name = str(about.get("name", ""))
    return TaskFile(path, text, constants(module), presets, kernel_class, title, policy, own_name, place=place)


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module define or import; `*` where an import does not say which."""
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.If() | ast.Try() | ast.With():
                for inner in (node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
                    yield from _defined(inner)
                for handler in getattr(node, "handlers", []):
                    yield from _defined(handler.body)


def _about(toml: str, path: Path) -> dict[str, Any]:
    try:
        return untrusted.toml_table(toml, f"{path}")
    except UntrustedError as error:
        raise TaskError(str(error)) from error
