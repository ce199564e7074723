"""What a run's kernels are told over beside eager: the baselines that every task has, and one of a person's own."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.parts import wording
from pages.parts.new_run import kept
from pages.parts.widgets import editor
from storage.results import baselines
from storage.results.baselines import Instead, OwnBaseline
from storage.results.policy import Policy

SOURCES = NONE, PASTED, UPLOADED = "none", "paste", "upload"
USUAL_NAME = "baseline.py"
_HELP = (
    "What you would run instead of a kernel. Each is compiled and timed once, beside eager PyTorch; the fastest leads "
    "on every screen. max-autotune may take minutes to compile. None of them: eager alone."
)
_OWN_HELP = (
    "A file with a class Baseline that is made and called as the task's Model is, and may call any library; or an "
    "export, which has a class ModelNew."
)
_EXAMPLE = """import torch
import torch.nn as nn


class Baseline(nn.Module):
    def forward(self, x):
        return torch.nn.functional.relu(x)
"""


def draw(policy: Policy, source: str, toolchain: str, key: str, wrong: list[str]) -> dict[str, Any]:
    """The choice as fields of the settings of a run on a task with this `source`; what is wrong with a file is told
    and added to `wrong`."""
    known = [how for how in Instead if how is not Instead.SCALED or baselines.may_be_scaled(source)]
    names = [str(how) for how in known if not baselines.fault((how,), toolchain)]
    usual = [str(name) for name in baselines.of_run(policy.baselines, toolchain, source) if name in names]
    chosen = st.multiselect(
        "Timed beside eager PyTorch", names, usual, key=f"baselines:{key}:{toolchain}", help=_HELP,
        format_func=lambda name: baselines.TITLES[Instead(name)], placeholder="eager PyTorch alone",
    )  # fmt: skip
    own = _own(wrong)
    asked = [name for name in names if name in chosen]
    fields: dict[str, Any] = {} if asked == usual else {"baselines": ",".join(asked) or baselines.NONE}
    return fields | ({} if own is None else {"own_baseline": own})


def _own(wrong: list[str]) -> OwnBaseline | None:
    source = st.segmented_control(
        "A baseline of your own", SOURCES, default=NONE, required=True, key="own_baseline_source", help=_OWN_HELP
    )
    if source == NONE:
        return None
    name, text = _pasted() if source == PASTED else _uploaded()
    if not text.strip():
        st.caption(_OWN_HELP)
        return None
    try:
        return baselines.own(name, text)
    except ValueError as error:
        wrong.append(wording.sentence(str(error)))
        st.error(wrong[-1], icon=":material/error:")
        return None


def _pasted() -> tuple[str, str]:
    state = st.session_state  # that of a widget goes when it is not drawn; what was typed stays
    text = editor.draw("Baseline", state.get("own_baseline_pasted", ""), _EXAMPLE, key="own_baseline_text")
    state["own_baseline_pasted"] = text
    return USUAL_NAME, text


def _uploaded() -> tuple[str, str]:
    uploads = kept.uploads("Baseline", "own_baseline_file", ["py"], is_one=True)
    return (uploads[0].name, uploads[0].content.decode("utf-8-sig", "replace")) if uploads else (USUAL_NAME, "")
