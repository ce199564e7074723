"""What to optimise: a shipped task, the path of a file, or a module that is pasted or uploaded. Whatever it is, what is
wrong with it is said while it is typed."""

from __future__ import annotations

import streamlit as st

from engine import supervisor, tasks
from engine.errors import EngineError, TaskError
from engine.tasks import TaskFile
from pages.parts import wording
from pages.parts.widgets import editor

SOURCES = SHIPPED, OWN_FILE, PASTED, UPLOADED = "shipped task", "file on this machine", "paste", "upload"
WHAT_IT_TAKES = "A KernelBench-style file: class Model, get_inputs() and get_init_inputs()."
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


def draw(toolchain: str, strategy: str, language: str) -> TaskFile | None:
    """The task chosen; None while there is none.

    Raises:
        TaskError: what was given is no task; the message says what is missing.
    """
    source = st.segmented_control(
        "Module from", SOURCES, default=SHIPPED, required=True, key="task_source", label_visibility="collapsed"
    )
    if source == SHIPPED:
        return _shipped(toolchain, strategy, language)
    if source == OWN_FILE:
        return _file()
    return _pasted() if source == PASTED else _uploaded()


def _shipped(toolchain: str, strategy: str, language: str) -> TaskFile:
    found = {_title(task, toolchain, strategy, language): task for task in sorted(tasks.shipped(), key=_class)}
    first = next((i for i, task in enumerate(found.values()) if task.name == supervisor.DEMO_TASK), 0)
    return found[st.selectbox("What to optimise", list(found), index=first, key="task")]


def _title(task: TaskFile, toolchain: str, strategy: str, language: str) -> str:
    """With a sign where the recorded model can work on it."""
    is_recorded = supervisor.recorded_depths(task.name, toolchain, strategy, language) is not None
    return f"{task.title} · {_class(task)}" + (" · has a recording" if is_recorded else "")


def _class(task: TaskFile) -> str:
    return wording.CLASS_NAME[task.kernel_class] if task.kernel_class else "kernel class chosen by the model"


def _file() -> TaskFile | None:
    path = st.text_input(
        "Path of the file on this machine", key="task_path", placeholder="/path/to/task.py", live=True
    ).strip()  # fmt: skip
    if not path:
        st.caption(f"Enter the path of a file. {WHAT_IT_TAKES}")
        return None
    return tasks.find(path if path.endswith(".py") else f"{path}/")


def _pasted() -> TaskFile | None:
    name = st.text_input("Name", "my_module", key="module_name", live=True, help="names the task in lists", width=260)
    text = editor.draw("Module", "", EXAMPLE, key="module_text")
    if not text.strip():
        st.caption(f"Paste or type a module; the grey text is an example. {WHAT_IT_TAKES}")
        return None
    return _kept(text, name)


def _uploaded() -> TaskFile | None:
    found = st.file_uploader("Module", type="py", key="module_file", max_upload_size=1)
    if found is None:
        st.caption(WHAT_IT_TAKES)
        return None
    try:
        text = found.getvalue().decode("utf-8")
    except UnicodeDecodeError:
        raise TaskError(f"{found.name} is not a text in UTF-8: upload a Python file") from None
    return _kept(text, found.name.removesuffix(".py"))


def _kept(text: str, name: str) -> TaskFile:
    """The module as a file, so that a shell finds it too. One that is no task is not written."""
    try:
        task = supervisor.keep_module(text, name)
    except TaskError:
        raise
    except (EngineError, OSError) as error:
        raise TaskError(str(error)) from error
    named = ", ".join(f"{name} = {value}" for name, value in task.constants.items())
    told = _class(task) + (f"; sizes {named}" if named else "; no sizes to change")
    st.markdown(f":green-badge[:material/check: valid] {wording.plain(told)}. Kept as `{task.path}`.")
    return task
