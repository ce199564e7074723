"""With what a run works: the model, the search method, the toolchain and its device, the language."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine import supervisor
from engine.evaluator import languages
from engine.search.methods import catalogue
from engine.search.methods.catalogue import StrategyDescription
from pages.parts import wording
from pages.parts.new_run.like import Like
from pages.parts.new_run.module_field import SHIPPED
from storage.run.saved_models import RECORDED
from storage.run.steering.command_arguments import MANUAL

_MODEL_HELP = (
    "“recorded” uses stored model replies of shipped tasks; no API key needed. A live model is connected on the page "
    "Models. “manual”: you write each reply yourself, on the run's page."
)
WORDS = {MANUAL: "With *manual* you write each reply yourself, on the run's page."}
_STRATEGY_HELP = (
    "The search method: what the model is asked, in which order, and which kernel comes next. TILEWRIGHT_STRATEGIES "
    "names further ones of your own, as package.module:Name."
)
_LANGUAGE_HELP = (
    "The language that the kernels of this run are written in; a kernel of another one is refused. "
    + " ".join(f"{name}: {language.title}." for name, language in languages.LANGUAGES.items())
    + " Triton kernels are timed on a GPU, so it is offered with the toolchain cuda alone."
)


@dataclass(frozen=True, slots=True)
class Setup:
    """With what a run works."""

    toolchain: str
    device: str
    language: str
    model: str
    strategy: StrategyDescription


def draw(like: Like | None = None) -> Setup:
    """Model, method, toolchain and language, side by side; they begin as those of another run, as far as that can be
    had here."""
    st.markdown("## How")
    usual = like.settings if like else None
    first = st.columns(2)
    with first[0]:
        model = _model(usual.model if usual else "", bool(like and like.wants_other_model))
    with first[1]:
        strategy = _strategy(usual.strategy if usual else "")
    if strategy.about:
        st.caption(wording.plain(strategy.about))
    second = st.columns(2)
    with second[0]:
        toolchain, device = _toolchain(usual.toolchain if usual else "", usual.device if usual else "")
    with second[1]:
        language = _language(toolchain, usual.language if usual else "")
    return Setup(toolchain, device, language, model, strategy)


def _model(begins: str, is_another: bool = False) -> str:
    """The model; of a person's own module there is no recording, so that another one is chosen for it. `is_another`: it
    begins as any but the one of the other run."""
    models, kept = supervisor.available_models(), st.session_state
    if is_another:
        models = [model for model in models if model != begins]
        st.caption(f"Another model is chosen than {wording.plain(begins)}, which gave no kernel.")
        begins = ""
    is_own = kept.get("task_source", SHIPPED) != SHIPPED
    if is_own:
        models = [model for model in models if model != RECORDED]
        if kept.get("model") not in models:
            kept["model"] = kept["model_for_own"] = models[0]
    elif (chosen := kept.pop("model_for_own", None)) and chosen == kept.get("model"):
        kept["model"] = supervisor.available_models()[0]
    if kept.get("model", models[0]) not in models:
        del kept["model"]  # it was removed on another page
    first = models.index(begins) if begins in models and "model" not in kept else 0
    model = str(st.selectbox("Model", models, first, key="model", help=_MODEL_HELP))
    if is_own and model == kept.get("model_for_own"):
        st.caption(f"Chosen with your module: recorded replies are of shipped tasks alone. {WORDS.get(model, '')}")
    if begins and begins not in models:
        st.caption(f":material/block: {wording.plain(begins)} is not connected here.")
    if model in supervisor.FREE_MODELS:
        st.page_link("models.py", label="Connect a model", icon=":material/power:", width="content")
    return model


def _toolchain(begins: str, device_begins: str) -> tuple[str, str]:
    """The toolchain, and the GPU where one is named."""
    toolchains = supervisor.available_toolchains()
    usable = [name for name, reason in toolchains.items() if not reason]
    if not usable:
        _unavailable(toolchains)
        st.error(
            "No toolchain is available on this machine, so no run can start. The System page says what is missing.",
            icon=":material/error:",
        )
        st.stop()
    first = begins if begins in usable else usable[0]
    chosen = str(st.segmented_control("Toolchain", usable, default=first, required=True, key="toolchain"))
    _unavailable(toolchains)
    if not supervisor.has_gpu(chosen):
        return chosen, ""
    device = st.text_input(
        "GPU", device_begins, key="device", placeholder="the first that is visible", width=260,
        help="A number, GPU-… or MIG-…, as in CUDA_VISIBLE_DEVICES, or a part of a model's name such as H200.",
    )  # fmt: skip
    return chosen, device.strip()


def _unavailable(toolchains: dict[str, str]) -> None:
    for name, reason in toolchains.items():
        if reason:
            st.caption(f":material/block: Toolchain {name} not available: {wording.plain(reason)}")


def _language(toolchain: str, begins: str) -> str:
    """In which kernels are written, of those that the toolchain can run."""
    names = languages.of_toolchain(toolchain)
    chosen = st.segmented_control(
        "Language", names, default=begins if begins in names else names[0], required=True, key=f"language:{toolchain}",
        help=_LANGUAGE_HELP,
    )  # fmt: skip
    return str(chosen)


def _strategy(begins: str) -> StrategyDescription:
    """The search method; those that cannot be used are named with the reason."""
    descriptions = catalogue.descriptions()
    usable = {description.name: description for description in descriptions if description.is_usable}
    first = list(usable).index(begins) if begins in usable else 0
    name = st.selectbox("Strategy", list(usable), first, key="strategy", help=_STRATEGY_HELP)
    for description in descriptions:
        if description.failure:
            reason = description.failure.removeprefix(f"strategy {description.name!r} ")
            st.caption(
                f":material/block: Strategy {wording.plain(description.name)} not available: {wording.plain(reason)}"
            )
    if catalogue.is_reading():
        for description in (description for description in descriptions if not description.is_known):
            st.caption(f":material/hourglass_top: Strategy {wording.plain(description.name)} is being read.")
    return usable[name]
