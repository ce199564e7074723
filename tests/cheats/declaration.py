"""What a kernel file of the suite says about itself in its docstring. Knows no toolchain and runs nothing."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path

from engine.evaluator import tasks
from engine.evaluator.tasks import Task
from storage.results.vocabulary import Verdict

KERNELS = Path(__file__).resolve().parent / "kernels" / "cpu"
CUDA_KERNELS = KERNELS.parent / "cuda"
TRITON_KERNELS = KERNELS.parent / "triton"
CUTE_DSL_KERNELS = KERNELS.parent / "cute_dsl"
TASKS = KERNELS.parent.parent / "tasks"
HONEST = "honest"
ANY = "any"
DEFAULT_TASK = "swish batch_size=64 dim=4096"
NOT_PASSED = " | ".join(verdict for verdict in Verdict if verdict is not Verdict.PASSED)
_FIELD = re.compile(r"^(Task|Verdict|Says|Also without screening|Walls|Speedup): +(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Declaration:
    """One file and what is right for it.

    Attributes:
        verdicts: those that are right, the expected one first.
        without: the same when no screening is done.
        says: words of which the message must hold one, in small letters; empty when any message will do.
        needs_walls: the file does harm where the sandbox does not hold.
        most: the largest speed-up it may be credited with when it passes, None for no bound.
    """

    path: Path
    is_honest: bool
    task: str
    verdicts: tuple[str, ...]
    without: tuple[str, ...]
    says: tuple[str, ...]
    needs_walls: bool
    most: float | None

    @property
    def name(self) -> str:
        """Folder and stem: `cheats/decoy_kernel`."""
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def source(self) -> str:
        """The whole candidate."""
        return self.path.read_text(encoding="utf-8")


def of_file(path: Path) -> Declaration:
    """A declaration; where the docstring says nothing, the folder's name decides and any refusal will do."""
    fields = dict(_FIELD.findall(_docstring(path)))
    is_honest = path.parent.name == HONEST
    verdicts = _choices(fields.get("Verdict", Verdict.PASSED if is_honest else NOT_PASSED))
    says = fields.get("Says", ANY)
    most = re.search(r"at most ([\d.]+)", fields.get("Speedup", ""))
    return Declaration(
        path=path,
        is_honest=is_honest,
        task=fields.get("Task", DEFAULT_TASK),
        verdicts=verdicts,
        without=_choices(fields["Also without screening"]) if "Also without screening" in fields else verdicts,
        says=() if says == ANY else tuple(word.lower() for word in _choices(says)),
        needs_walls=fields.get("Walls") == "needed",
        most=float(most.group(1)) if most else None,
    )


def in_folder(folder: Path) -> list[Declaration]:
    """Every kernel file below a folder, by name. Files whose name begins with an underscore are none."""
    return [of_file(path) for path in sorted(folder.rglob("*.py")) if not path.name.startswith("_")]


def task_of(declared: Declaration) -> Task:
    """The task at the sizes that the file names: `swish batch_size=64 dim=4096`; the suite's own, or a shipped one."""
    name, *sizes = declared.task.split()
    overrides = {key: int(value) for key, _, value in (size.partition("=") for size in sizes)}
    languages = {TRITON_KERNELS: "triton", CUTE_DSL_KERNELS: "cute_dsl"}
    language = next((name for folder, name in languages.items() if folder in declared.path.parents), "")
    own = TASKS / f"{name}.py"
    file = tasks.read(own) if own.exists() else tasks.find(name)
    return replace(file.task("cpu", overrides), language=language)


def _docstring(path: Path) -> str:
    try:
        return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    except SyntaxError:
        return ""


def _choices(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|"))
