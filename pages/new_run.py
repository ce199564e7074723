"""Start a run: what to optimise, with which model and tools, and within which limits."""

from __future__ import annotations

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.tasks import TaskFile
from pages.parts import access, wording
from pages.parts.new_run import budget_form, model_form, task_form
from pages.parts.steering import approval
from storage.records import RunSettings

SWITCHES = {"auto": "auto, by kernel class", "from": "from depth …", "off": "never"}
POLICIES = {
    "patience": "latest kernel; back to the best after some depths without progress",
    "latest": "always the latest correct kernel",
    "best": "always the best kernel",
}


def form() -> None:
    """Everything a run needs, from top to bottom, with the defaults filled in."""
    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            toolchain = _toolchain()
        model = right.selectbox("Model", supervisor.available_models(), key="model", help=_MODEL_HELP)
    chosen = task_form.draw(toolchain)
    if chosen is None:
        return
    task, sizes = chosen
    why_not = supervisor.recording_note(task.name, toolchain) if model == "recorded" else ""
    if why_not:
        st.warning(wording.plain(why_not), icon=":material/warning:")
    with st.container(border=True):
        st.markdown("## Limits")
        budget = budget_form.draw(model, task.name, toolchain)
    fields = _method(budget.depths, model)
    if model not in supervisor.FREE_MODELS:
        fields["model_options"] = model_form.draw(model)
    with st.expander("Approve steps before they start", icon=":material/front_hand:"):
        fields["ask_first"] = approval.rule_form("new")
    if st.button(
        "Start run", type="primary", icon=":material/play_arrow:", key="start", disabled=bool(why_not),
        help=why_not or None,
    ):  # fmt: skip
        _start(task, toolchain, model, sizes, fields | {"budget": budget})


_MODEL_HELP = (
    "“recorded” uses stored model replies; no API key needed. For a live model set OPENAI_API_KEY (and OPENAI_BASE_URL "
    "for a provider other than OpenAI) and restart. “manual”: you write each reply yourself, on the run's page."
)


def _toolchain() -> str:
    found = supervisor.available_toolchains()
    usable = [name for name, reason in found.items() if not reason]
    for name, reason in found.items():
        if reason:
            st.caption(f":material/block: Toolchain {name} not available: {wording.plain(reason)}")
    if not usable:
        st.error(
            "No toolchain is available on this machine, so no run can start. The System page says what is missing.",
            icon=":material/error:",
        )
        st.stop()
    return str(st.segmented_control("Toolchain", usable, default=usable[0], required=True, key="toolchain"))


def _method(depths: int, model: str) -> dict[str, object]:
    """The rest, folded away: its defaults are those of the method's authors."""
    with st.expander("Method: base kernel, repairs, profiling", icon=":material/tune:"):
        # A recording follows one line of kernels; a policy that reacts to timing noise would leave it.
        first_choice = "latest" if model == "recorded" else "patience"
        policy = st.selectbox(
            "Each depth starts from",
            list(POLICIES),
            index=list(POLICIES).index(first_choice),
            format_func=POLICIES.__getitem__,
            key=f"policy:{first_choice}",
        )
        left, middle, right = st.columns(3)
        patience = left.number_input("Depths without progress", 1, 20, 2, key="patience", disabled=policy != "patience")
        repairs = middle.number_input("Maximum repairs per kernel", 0, 20, 5, key="repairs")
        fresh = right.number_input("Maximum restarts per depth", 0, 10, 2, key="regenerations")
        expose = st.segmented_control(
            "Show profiles to the model", list(SWITCHES), format_func=SWITCHES.__getitem__, default="auto",
            required=True, key="expose",
        )  # fmt: skip
        first = None
        if expose == "from":
            first = int(
                st.number_input("First depth that shows a profile", 1, depths, min(3, depths), key="expose_from")
            )
    return {
        "base_policy": f"patience={patience}" if policy == "patience" else policy,
        "max_repairs": int(repairs),
        "max_regenerations": int(fresh),
        "expose_from_depth": depths + 1 if expose == "off" else first,
    }


def _start(
    task: TaskFile, toolchain: str, model: str, sizes: dict[str, int | float], fields: dict[str, object]
) -> None:
    try:
        settings: RunSettings = supervisor.new_settings(
            str(task.path), toolchain=toolchain, model=model, overrides=sizes, **fields
        )
        supervisor.see_that_money_can_be_kept(settings)
        with st.spinner("Starting the engine"):
            usual = task.task(toolchain).sizes
            if not task.is_shipped or any(size > usual[name] for name, size in sizes.items()):
                supervisor.see_that_it_fits(settings)
            folder = supervisor.start(settings)
    except EngineError as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": folder.run_id})


st.title("New run", anchor=False)
if access.may_steer():
    form()
else:
    st.info("This server is read-only and starts no runs.", icon=":material/lock:")
