"""Choosing a task and its sizes."""

from __future__ import annotations

import streamlit as st

from engine import supervisor, tasks
from engine.errors import TaskError
from engine.tasks import Size, TaskFile
from pages.parts import wording

OWN_FILE = "your own file"


def draw(toolchain: str) -> tuple[TaskFile, dict[str, Size]] | None:
    """The task chosen and the sizes that differ from its own, or None while there is no usable task."""
    with st.container(border=True):
        st.markdown("## Task")
        try:
            task = _choose()
        except TaskError as error:
            st.error(wording.plain(str(error)), icon=":material/error:")
            return None
        if task is None:
            st.caption("Enter the path of a KernelBench-style file: class Model, get_inputs() and get_init_inputs().")
            return None
        sizes = _sizes(task, toolchain)
        with st.expander("Reference module", icon=":material/code:"):
            st.code(task.text, language="python")
    return task, sizes


def _choose() -> TaskFile | None:
    shipped = {f"{task.title} · {_class(task)}": task for task in sorted(tasks.shipped(), key=_class)}
    first = next((i for i, task in enumerate(shipped.values()) if task.name == supervisor.DEMO_TASK), 0)
    name = st.selectbox("What to optimise", [*shipped, OWN_FILE], index=first, key="task", width=520)
    if name != OWN_FILE:
        return shipped[name]
    path = st.text_input("Path of the file on this machine", key="task_path", placeholder="/path/to/task.py", width=520)
    return tasks.find(path.strip() if path.strip().endswith(".py") else f"{path.strip()}/") if path.strip() else None


def _class(task: TaskFile) -> str:
    return wording.CLASS_NAME[task.kernel_class] if task.kernel_class else "kernel class chosen by the model"


def _sizes(task: TaskFile, toolchain: str) -> dict[str, Size]:
    start = task.task(toolchain).sizes
    if not start:
        return {}
    st.caption("Problem sizes (defaults for this device)")
    columns = st.columns(max(4, len(start)))
    found: dict[str, Size] = {}
    for column, (name, value) in zip(columns, start.items(), strict=False):
        key = f"size:{task.path}:{toolchain}:{name}"
        if isinstance(value, int):
            found[name] = int(column.number_input(name, value=value, step=1, key=key))
        else:
            found[name] = float(column.number_input(name, value=value, format="%g", key=key))
    return {name: value for name, value in found.items() if value != start[name]}
