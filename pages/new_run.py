"""Start a run: what to optimise, with which model and tools, and within which limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from engine import languages, supervisor, tasks
from engine.errors import EngineError, TaskError
from engine.strategies import catalogue
from engine.strategies.catalogue import Offer
from engine.tasks import Size, TaskFile
from pages.parts import access, wording
from pages.parts.steering import approval, options_form
from storage.knowledge import choice
from storage.models import NAMES, ModelRole, Options, PatchForm, read_options
from storage.policy import DTYPES, EVERYTHING, OWN_DTYPE, PRECISIONS
from storage.records import Budget, Prompts, RunSettings

_MODEL_HELP = (
    "“recorded” uses stored model replies; no API key needed. For a live model set OPENAI_API_KEY (and OPENAI_BASE_URL "
    "for a provider other than OpenAI) and restart. “manual”: you write each reply yourself, on the run's page."
)
_STRATEGY_HELP = (
    "The search method: what the model is asked, in which order, and which kernel comes next. TILEWRIGHT_STRATEGIES "
    "names further ones of your own, as package.module:Name."
)
_LIBRARY_HELP = (
    "none: every kernel is the model's own. Operators such as conv2d, matmul may stay with PyTorch, for a whole "
    "network. all: the model chooses what is worth a kernel. What runs is observed and shown on the Trust tab."
)
_KNOWLEDGE_HELP = (
    "Techniques that were tried on kernels in the same state, with what came of them, are told to the model before it "
    "changes a kernel. What this run measures is kept for later runs in any case."
)
_TUNE_HELP = (
    "After an accepted kernel, so many other sets of numbers at most are tried for what it declares open to tuning: "
    "tile sizes, stages, threads. The best becomes a kernel of its own. It asks no model and takes time; 0 is off."
)
_LANGUAGE_HELP = (
    "The language that the kernels of this run are written in; a kernel of another one is refused. "
    + " ".join(f"{name}: {one.title}." for name, one in languages.LANGUAGES.items())
    + " Triton kernels are timed on a GPU, so it is offered with the toolchain cuda alone."
)
OWN_FILE = "your own file"
OTHER_BASE = "another base, only read"
EFFORTS = ("endpoint default", "minimal", "low", "medium", "high")
EXAMPLE = "diagnoser.model=a-smaller-model\nrepairer.temperature=0.2"


def form() -> None:
    """Everything a run needs, from top to bottom, with the defaults filled in."""
    with st.container(border=True):
        left, right = st.columns(2)
        with left:
            toolchain, device = _toolchain()
            language = _language(toolchain)
        model = right.selectbox("Model", supervisor.available_models(), key="model", help=_MODEL_HELP)
        strategy = _strategy()
    chosen = _task(toolchain)
    if chosen is None:
        return
    task, sizes, policy = chosen
    why_not = supervisor.recording_note(task.name, toolchain, strategy.name, language) if model == "recorded" else ""
    if why_not:
        st.warning(wording.plain(why_not), icon=":material/warning:")
    with st.container(border=True):
        st.markdown("## Limits")
        budget = _budget(model, task.name, toolchain, strategy, language)
    fields = _options(strategy, budget.depths, model) | {"device": device, "language": language} | policy
    fields["knowledge"] = _knowledge(strategy)
    fields["tune"] = int(st.number_input("Variants to tune", 0, 200, 0, key="tune", help=_TUNE_HELP, width=260))
    if model not in supervisor.FREE_MODELS:
        fields["model_options"] = _model_options(model)
    with st.expander("Prompts of your own", icon=":material/article:"):
        fields |= _prompts()
    with st.expander("Approve steps before they start", icon=":material/front_hand:"):
        fields["ask_first"] = approval.rule_form("new")
    if st.button(
        "Start run", type="primary", icon=":material/play_arrow:", key="start", disabled=bool(why_not),
        help=why_not or None,
    ):  # fmt: skip
        _start(task, toolchain, model, sizes, fields | {"budget": budget})


def _toolchain() -> tuple[str, str]:
    """The toolchain, and the GPU where one is named."""
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
    chosen = str(st.segmented_control("Toolchain", usable, default=usable[0], required=True, key="toolchain"))
    if not supervisor.has_gpu(chosen):
        return chosen, ""
    device = st.text_input(
        "GPU", key="device", placeholder="the first that is visible", width=260,
        help="A number, GPU-… or MIG-…, as in CUDA_VISIBLE_DEVICES.",
    )  # fmt: skip
    return chosen, device.strip()


def _language(toolchain: str) -> str:
    """In which kernels are written, of those that the toolchain can run."""
    names = languages.of_toolchain(toolchain)
    chosen = st.segmented_control(
        "Language", names, default=names[0], required=True, key=f"language:{toolchain}", help=_LANGUAGE_HELP
    )
    return str(chosen)


def _task(toolchain: str) -> tuple[TaskFile, dict[str, Size], dict[str, Any]] | None:
    """The task chosen, the sizes that differ from its own, its rules; None while there is no usable task."""
    with st.container(border=True):
        st.markdown("## Task")
        try:
            task = _task_file()
        except TaskError as error:
            st.error(wording.plain(str(error)), icon=":material/error:")
            return None
        if task is None:
            st.caption("Enter the path of a KernelBench-style file: class Model, get_inputs() and get_init_inputs().")
            return None
        sizes = _sizes(task, toolchain)
        policy = _policy(task)
        with st.expander("Reference module", icon=":material/code:"):
            st.code(task.text, language="python")
    return task, sizes, policy


def _policy(task: TaskFile) -> dict[str, Any]:
    """What kernels may leave to PyTorch, how exact they must be, and whether the backward pass is theirs too."""
    left, right, last = st.columns([5, 2, 2])
    usual = task.policy.library_operators
    if EVERYTHING in usual:
        usual = ("all",)
    library = left.text_input(
        "PyTorch may compute", ", ".join(usual) or "none", key=f"library:{task.path}", help=_LIBRARY_HELP
    )
    precision = right.segmented_control(
        "Precision", PRECISIONS, default=task.policy.precision, required=True, key=f"precision:{task.path}",
        help="tf32 lets tensor cores round the operands of products; half lets kernels round them to bfloat16 or "
        "float16. The reference is timed in the same class.",
    )  # fmt: skip
    dtype = last.segmented_control(
        "Tensors", (OWN_DTYPE, *DTYPES), default=task.policy.dtype or OWN_DTYPE, required=True,
        key=f"dtype:{task.path}",
        help="own: as the task is written. bf16 or fp16: floating-point inputs and parameters are converted, on both "
        "sides; a precision class of its own, so Precision stays at fp32.",
    )  # fmt: skip
    backward = st.checkbox(
        "Forward and backward", task.policy.backward, key=f"backward:{task.path}",
        help="Gradients of inputs and parameters are checked too, and both passes are timed together, the reference "
        "through autograd. ModelNew then calls a torch.autograd.Function of its own.",
    )  # fmt: skip
    chosen = {"library": library.strip() or "none", "precision": str(precision)}
    return chosen | {"backward": backward, "dtype": str(dtype)}


def _task_file() -> TaskFile | None:
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


def _budget(model: str, task_name: str, toolchain: str, strategy: Offer, language: str) -> Budget:
    """The number of step indexes always, the rest optional."""
    recorded = (
        supervisor.recorded_depths(task_name, toolchain, strategy.name, language) if model == "recorded" else None
    )
    first = st.columns(3)
    depths = first[0].number_input(
        strategy.words.titles, 1, 200, recorded or Budget().depths, key=f"depths:{recorded}",
        help=strategy.words.counts,
    )  # fmt: skip
    calls = first[1].number_input("Maximum model calls", 1, value=None, key="max_calls", placeholder="no limit")
    tokens = first[2].number_input(
        "Maximum tokens", 1, value=None, step=10_000, key="max_tokens", placeholder="no limit"
    )
    second = st.columns(3)
    cost = second[0].number_input("Maximum cost (US dollars)", 0.01, value=None, key="max_cost", placeholder="no limit")
    minutes = second[1].number_input(
        "Maximum engine time (minutes)", 1, value=None, key="max_minutes", placeholder="no limit"
    )
    target = second[2].number_input("Stop at speed-up", 0.1, value=None, key="target", placeholder="no target")
    return Budget(
        depths=int(depths),
        model_calls=None if calls is None else int(calls),
        tokens=None if tokens is None else int(tokens),
        cost_usd=cost,
        wall_s=None if minutes is None else 60.0 * minutes,
        target_speedup=target,
    )


def _strategy() -> Offer:
    """The search method; those that cannot be used are named with the reason."""
    offers = catalogue.offers()
    usable = {one.name: one for one in offers if one.is_usable}
    name = st.selectbox("Strategy", list(usable), key="strategy", help=_STRATEGY_HELP, width=520)
    if about := usable[name].about:
        st.caption(wording.plain(about))
    for one in offers:
        if one.failure:
            reason = one.failure.removeprefix(f"strategy {one.name!r} ")
            st.caption(f":material/block: Strategy {wording.plain(one.name)} not available: {wording.plain(reason)}")
    if catalogue.is_reading():
        for one in (one for one in offers if not one.is_known):
            st.caption(f":material/hourglass_top: Strategy {wording.plain(one.name)} is being read.")
        _draw_again_when_read()
    return usable[name]


@st.fragment(run_every=0.5)
def _draw_again_when_read() -> None:
    if not catalogue.is_reading():
        st.rerun()


def _options(strategy: Offer, depths: int, model: str) -> dict[str, Any]:
    """The method with its options, folded away: their defaults are those of its authors."""
    with st.expander("Options of the strategy", icon=":material/tune:"):
        if not strategy.options:
            st.caption("This strategy has no options.")
        start = {one.name: one.default_for(model) for one in strategy.options}
        found = options_form.draw(strategy.options, strategy.name, start, depths, strategy.words.step)
    return {"strategy": strategy.name, "options": strategy.options, "strategy_options": found}


def _knowledge(strategy: Offer) -> str:
    """The knowledge base that the run asks."""
    left, right = st.columns(2)
    known = [*choice.CHOICES, OTHER_BASE]
    chosen = left.selectbox(
        "Knowledge base", known, known.index(strategy.knowledge), key=f"knowledge:{strategy.name}",
        help=_KNOWLEDGE_HELP,
        format_func=lambda name: choice.in_words(name) if name in choice.CHOICES else name,
    )  # fmt: skip
    path = str(chosen)
    if chosen == OTHER_BASE:
        path = right.text_input("Path of the base on this machine", key="knowledge_path", placeholder="/path/to/base")
    if chosen in (OTHER_BASE, choice.SEED) and st.toggle(
        "Freeze the knowledge base", key="knowledge_frozen", help="what this run learns does not count for it either"
    ):
        return choice.FROZEN + path.strip()
    return path.strip()


def _model_options(model: str) -> Options:
    """The options asked for; a line that makes no sense is said to be so, and no run can be started with it."""
    if note := supervisor.price_note(model):
        st.caption(f":material/payments: {wording.plain(note)}")
    with st.expander("Model options: reasoning effort, edit format, roles", icon=":material/psychology:"):
        left, middle, right = st.columns(3)
        effort = left.selectbox("Reasoning effort", EFFORTS, key="effort")
        patch_form = middle.selectbox("Edit format", [str(one) for one in PatchForm], key="patch_form")
        warmth = right.number_input(
            "Temperature", 0.0, 2.0, value=None, step=0.1, key="temperature", placeholder="not set"
        )
        lines = st.text_area(
            "Further options, one per line", key="model_options", height=110, placeholder=EXAMPLE,
            help=f"[ROLE.]NAME=VALUE. Roles: {', '.join(ModelRole)}. Names: {', '.join(NAMES)}. Do not write a key "
            "here: key_variable names the environment variable that holds it.",
        )  # fmt: skip
    chosen = [] if effort == EFFORTS[0] else [f"reasoning_effort={effort}"]
    chosen += [] if warmth is None else [f"temperature={warmth}"]
    chosen += [] if patch_form == PatchForm.TEXT else [f"patches={patch_form}"]
    try:
        return read_options("\n".join([*chosen, lines]))
    except ValueError as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        st.stop()


def _prompts() -> dict[str, Prompts]:
    """A pack in place of shipped prompt files; with one that cannot be used no run can be started."""
    folder = st.text_input(
        "Folder of prompt files", key="prompts", placeholder="none: those that Tilewright brings", width=520,
        help="A folder on this machine with files named as in prompts/; each takes the place of the shipped one.",
    ).strip()  # fmt: skip
    if not folder:
        return {}
    try:
        pack = supervisor.read_pack(Path(folder).expanduser())
    except EngineError as error:
        st.error(wording.plain(str(error)), icon=":material/error:")
        st.stop()
    st.caption(wording.plain(f"In place of the shipped ones: {', '.join(sorted(pack.files))}"))
    return {"prompts": pack}


def _start(task: TaskFile, toolchain: str, model: str, sizes: dict[str, int | float], fields: dict[str, Any]) -> None:
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
