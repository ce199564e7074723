"""What to optimise: a shipped task, the path of a file, or a module that is pasted or uploaded. Whatever it is, what is
wrong with it is said while it is typed."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from engine import supervisor
from engine.errors import EngineError, TaskError
from engine.evaluator import tasks
from engine.evaluator.tasks import TaskFile
from pages.parts import wording
from pages.parts.new_run import kept
from pages.parts.new_run.like import Like
from pages.parts.widgets import editor

SOURCES = SHIPPED, OWN_FILE, PASTED, UPLOADED = "shipped task", "file on this machine", "paste", "upload"
WHAT_IT_TAKES = "A KernelBench-style file: class Model, get_inputs() and get_init_inputs()."
OR_A_PROBLEM = "Or a problem of SOL-ExecBench or flashinfer-bench: definition.json and workload.jsonl together."
TRIED = "Whether it runs (its shapes, say) is tried under *This run*, before a model is asked."
EXAMPLE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(1024, 1024)]


def get_init_inputs():
    return []
"""


def draw(toolchain: str, strategy: str, language: str, like: Like | None) -> TaskFile | None:
    """The task chosen, at first that of another run; None while there is none.

    Raises:
        TaskError: what was given is no task; the message says what is missing.
    """
    if like and like.path is None and st.session_state.get("pasted_like") != like.settings.run_id:
        st.session_state["pasted_like"] = like.settings.run_id
        st.session_state["pasted_name"] = like.settings.task_name
        st.session_state["pasted_text"] = like.settings.task_source
    first = PASTED if like and like.path is None else SHIPPED
    source = st.segmented_control(
        "Module from", SOURCES, default=first, required=True, key="task_source", label_visibility="collapsed"
    )
    if source == SHIPPED:
        return _shipped(toolchain, strategy, language, like.path if like else None)
    if source == OWN_FILE:
        return _file()
    return _pasted() if source == PASTED else _uploaded()


def _shipped(toolchain: str, strategy: str, language: str, begins: Path | None) -> TaskFile:
    by_title = {_title(task, toolchain, strategy, language): task for task in sorted(tasks.shipped(), key=_class)}
    usual = begins or next((task.path for task in by_title.values() if task.name == supervisor.DEMO_TASK), None)
    first = next((number for number, task in enumerate(by_title.values()) if task.path == usual), 0)
    # Trap: of names that hold what is typed, a browser puts a short one before a long one that begins with it.
    longest = max(map(len, by_title))
    chosen = st.selectbox(
        "What to optimise", list(by_title), index=first, key="task", format_func=lambda title: title.ljust(longest)
    )
    return by_title[chosen]


def _title(task: TaskFile, toolchain: str, strategy: str, language: str) -> str:
    """With a sign where the recorded model can work on it."""
    is_recorded = supervisor.recorded_depths(task.name, toolchain, strategy, language) is not None
    return f"{task.title} · {_class(task)}" + (" · has a recording" if is_recorded else "")


def _class(task: TaskFile) -> str:
    if task.kernel_class:
        return wording.CLASS_NAME[task.kernel_class]
    return f"{wording.CLASS_NAME[task.guessed_class]}, guessed from its code; the first reply decides"


def _file() -> TaskFile | None:
    path = st.text_input(
        "Path of the file on this machine", key="task_path", placeholder="/path/to/task.py", live=True
    ).strip()  # fmt: skip
    if not path:
        st.caption(f"Enter the path of a file. {WHAT_IT_TAKES}")
        return None
    task = tasks.find(path if path.endswith((".py", ".json")) else f"{path}/")
    _describe(task, "")
    return task


def _pasted() -> TaskFile | None:
    # Trap: the state of a widget goes when it is not drawn, as while another source is chosen; what was typed stays.
    state = st.session_state
    state.setdefault("module_name", state.get("pasted_name", ""))
    name = st.text_input(
        "Name", key="module_name", live=True, placeholder="module", help="names the task in lists", width=260
    )  # fmt: skip
    text = editor.draw("Module", state.get("pasted_text", ""), EXAMPLE, key="module_text")
    state["pasted_name"], state["pasted_text"] = name, text
    if not text.strip():
        st.caption(f"Paste or type a module; the grey text is an example. {WHAT_IT_TAKES}")
        return None
    return _checked(text, name)


def _uploaded() -> TaskFile | None:
    uploads = kept.uploads("Module", "module_file", ["py", "json", "jsonl"])
    if not uploads:
        st.caption(f"{WHAT_IT_TAKES} {OR_A_PROBLEM}")
        return None
    # A file that is added to a bad one takes its place: the newest is last, and of a problem both files count.
    newest = {Path(upload.name).suffix: upload for upload in uploads}
    is_module = Path(uploads[-1].name).suffix == ".py"
    counted = [uploads[-1]] if is_module else [upload for suffix, upload in newest.items() if suffix != ".py"]
    left_out = [upload.name for upload in uploads if upload not in counted]
    if left_out:
        named = ", ".join(upload.name for upload in counted)
        st.caption(wording.plain(f"Only {named} counts, as uploaded last; left out: {', '.join(left_out)}."))
    texts = {Path(upload.name).suffix: _text(upload.name, upload.content) for upload in counted}
    if is_module:
        return _checked(texts[".py"], uploads[-1].name.removesuffix(".py"))
    if set(texts) != {".json", ".jsonl"}:
        raise TaskError("upload one Python file, or definition.json and workload.jsonl of a problem together")
    return _valid(supervisor.problem_of(texts[".json"], texts[".jsonl"]))


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TaskError(f"{name} is not a text in UTF-8: upload a text file") from None


def _checked(text: str, name: str) -> TaskFile:
    """The module as a task. Its file is written when a run starts, or when a person wants it for a shell: not each
    version that was typed on the way."""
    return _valid(supervisor.module_of(text, name))


def _describe(task: TaskFile, where: str) -> None:
    """That it can be read, what it is, and `where` it is kept, as a sentence."""
    named = ", ".join(f"{name} = {value}" for name, value in task.constants.items())
    summary = _class(task) + (f"; sizes {named}" if named else "; no sizes to change")
    if task.policy.workloads:
        summary += f"; {len(task.policy.workloads)} workloads, each checked and timed"
    if task.remark:
        st.caption(wording.plain(f"{task.remark}."))
    told = " ".join(part for part in (f"{wording.plain(summary)}.", where, TRIED) if part)
    st.markdown(f":green-badge[:material/check: syntax is fine] {told}")


def _valid(task: TaskFile) -> TaskFile:
    """The task, described, with a way to keep its file before a run starts."""
    is_kept = task.path.exists()
    _describe(task, f"Kept as `{task.path}`." if is_kept else f"It is saved as `{task.path}` when the run starts.")
    if not is_kept and st.button("Keep it now", key="keep_module", help="so that a terminal finds the file"):
        try:
            supervisor.keep_module(task)
        except EngineError as error:
            raise TaskError(str(error)) from error
        st.rerun()
    return task
