"""What a new run begins with where `?like=` names another run: its task, sizes, rules, model, method and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.tasks import TaskFile
from pages.parts import run_settings, wording
from storage import codec
from storage.run import folder
from storage.run.settings import RunSettings

ABOUT = (
    "Task, sizes, precision, model, method and limits are those of [{}](run?run={}). Change what you like; all else is "
    "as usual."
)
IN_EVALUATION_MODE = "The module is put into evaluation mode instead, in which its kernels can be packaged."
ASKED = ("like", run_settings.OTHER_MODEL, run_settings.EVALUATION_MODE)


@dataclass(frozen=True, slots=True)
class Like:
    """Another run. `path` is that of its shipped task, None for a module of a person's own."""

    settings: RunSettings
    path: Path | None
    wants_other_model: bool = False

    def is_of(self, task: TaskFile) -> bool:
        """Whether this is the other run's task."""
        return task.path == self.path or task.text == self.settings.task_source


def address() -> str:
    """What the address asks for; empty where a run is like no other."""
    return "&".join(f"{name}={st.query_params[name]}" for name in ASKED if name in st.query_params)


def of_page() -> Like | None:
    """The run that the address names, with a word about it; None without one."""
    if not (run_id := st.query_params.get("like", "")):
        return None
    try:
        settings = folder.find_run(run_id).read_settings()
    except (OSError, codec.DecodeError, UnicodeDecodeError) as error:
        st.warning(wording.sentence(f"no run can be taken as a pattern: {error}"),
                   icon=":material/search_off:")  # fmt: skip
        return None
    about = ABOUT.format(wording.plain(run_id), wording.in_address(run_id))
    if st.query_params.get(run_settings.EVALUATION_MODE):
        settings = replace(settings, policy=replace(settings.policy, mode="eval"))
        about = f"{about} {IN_EVALUATION_MODE}"
    st.caption(about)
    return Like(settings, _shipped(settings), bool(st.query_params.get(run_settings.OTHER_MODEL)))


def _shipped(settings: RunSettings) -> Path | None:
    """The shipped task that a run is of. One of a person's own may have the name of a shipped one."""
    try:
        task = tasks.find(settings.task_name)
        return task.path if task.task(settings.toolchain, settings.sizes).source == settings.task_source else None
    except TaskError:
        return None
