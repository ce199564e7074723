"""Whether kernels can be judged on the task that the form describes, before a run of it is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from engine import supervisor
from engine.errors import TaskError
from engine.evaluator import tasks
from engine.evaluator.tasks import Size, Task, TaskFile
from engine.supervisor import Examined
from pages.parts import wording

SHOWN = 6


def to_examine(file: TaskFile, toolchain: str, sizes: Mapping[str, Size], chosen: Mapping[str, Any]) -> Task | None:
    """The task as a run would have it; None where nothing is to be found out: a shipped one as it is, or a choice that
    cannot be, which the start tells of. Baselines change nothing about it."""
    options = {name: chosen[name] for name in tasks.POLICY_OPTIONS if name in chosen and name != "baselines"}
    try:
        task = replace(file, policy=tasks.policy_with(file.policy, **options)).task(toolchain, sizes)
    except TaskError:
        return None
    return None if file.is_shipped and task == file.task(toolchain) else task


def draw(task: Task, toolchain: str, device: str, mode_key: str, modules_key: str) -> str:
    """What is found, with a click that mends it where one does. Returns why no run can start, as sentences; empty where
    one can, or where that is not known."""
    examined = supervisor.examined(task, toolchain, device)
    if examined is None:
        st.caption(
            ":material/hourglass_top: Being tried: whether the module runs, and whether kernels can be judged on it."
        )
    elif why := examined.refusal:
        if examined.is_mended_by_evaluation_mode:
            st.button(
                "Use evaluation mode", icon=":material/build:", key="mend_mode", on_click=_set, args=(mode_key, "eval"),
                help="both modules are put into evaluation mode, in which the task is decided",
            )  # fmt: skip
        if depth := examined.mending_depth:
            st.button(
                "Compare module by module", icon=":material/build:", key="mend_modules", on_click=_set,
                args=(modules_key, depth), help="the outputs of modules inside are compared too, each on the inputs "
                "that it had, by which the task is decided",
            )  # fmt: skip
        return wording.capital(why)
    elif not examined.is_decided:
        rest = "A run examines it before a model is asked."
        sentence = f"It could not be examined here: {wording.cut(examined.why, 300)}. {rest}"
        st.caption(f":material/help: {wording.plain(sentence)}")
    else:
        st.caption(f":material/verified: {wording.plain(' '.join(decided(examined)))}")
    return ""


def decided(examined: Examined) -> Sequence[str]:
    """What a person should know of a task that is decided, a sentence each."""
    sentences = ["Kernels can be judged on this module."]
    if examined.varied:
        sentences.append(f"Its checks give these weights other values, too: {_named(examined.varied)}.")
    if examined.stays:
        sentences.append(f"These stay as constructed: {_named(examined.stays)}.")
    return [*sentences, *(f"{wording.capital(remark)}." for remark in examined.remarks)]


def _named(names: Mapping[str, str]) -> str:
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(list(names)[:SHOWN])}{rest}"


def _set(key: str, value: object) -> None:
    st.session_state[key] = value
