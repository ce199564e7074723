"""Start a run: what to optimise, with which model and tools, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine import supervisor
from engine.errors import EngineError, TaskError
from engine.evaluator import tasks
from engine.evaluator.languages import Triton
from engine.evaluator.tasks import DEEPEST, OWN_MODE, Size, Task, TaskFile
from engine.run_options import BY_NAME
from engine.search.methods import catalogue
from engine.search.methods.catalogue import StrategyDescription
from pages.parts import access, change_token, number_field, wording
from pages.parts.change_token import CLOCK
from pages.parts.new_run import baselines_form, budget_form, command_line, examination, forecast, kept, module_field
from pages.parts.new_run import like as another
from pages.parts.new_run import setup as setup_form
from pages.parts.new_run.like import Like
from pages.parts.new_run.setup import Setup
from pages.parts.status import now
from pages.parts.steering import approval, options_form
from storage.knowledge import choice
from storage.results.policy import DTYPES, EVERYTHING, OWN_DTYPE, PRECISIONS, Policy
from storage.run.models import NAMES, ModelRole, Options, PatchForm, read_options
from storage.run.saved_models import RECORDED
from storage.run.settings import Budget, Prompts, RunSettings, Start
from storage.run.steering.command_arguments import MANUAL

_LIBRARY_HELP = (
    "none: every kernel is the model's own. Operators such as conv2d, matmul may stay with PyTorch, for a whole "
    "network. all: the model chooses what is worth a kernel. What runs is observed and shown on the Trust tab."
)
_KNOWLEDGE_HELP = (
    "Techniques that were tried on kernels in the same state, with what came of them, are told to the model before it "
    "changes a kernel. What this run measures is kept for later runs in any case."
)
_MODES = {OWN_MODE: "as constructed", "eval": "evaluation", "train": "training"}
CHECKING = "Start run (module is being checked)"
WEIGHING = "Start run (memory is being checked)"
WEIGHED_FIRST = "how much memory the module takes is still being worked out; no run starts that would not fit"
TRIED_FIRST = "the module is still being tried; no model is asked where that fails"
OTHER_BASE = "another base, only read"
EFFORTS = ("endpoint default", "minimal", "low", "medium", "high")
EXAMPLE = "diagnoser.model=a-smaller-model\nrepairer.temperature=0.2"


def form() -> None:
    """What to optimise and how on the left; what it will take and the way to start it on the right."""
    like = another.of_page()
    with st.container(key="form"):
        left, right = st.columns([1.75, 1], gap="medium")
    with left:
        what, how = st.container(border=True), st.container(border=True)
    with how:
        setup = setup_form.draw(like)
    wrong: list[str] = []
    with what:
        chosen = _task(setup, like, wrong)
    if chosen is None:
        with right, st.container(border=True, key="new_run_summary"):
            st.markdown("## This run")
            _start_button(
                f"The module cannot be used: {wrong[0]}" if wrong else "There is no module yet: give one first."
            )
        _draw_again_when_known("", False, None, setup)
        return
    task, sizes, policy = chosen
    model, strategy = setup.model, setup.strategy
    name = _variant(task, policy)
    with left:
        limits, more = st.container(border=True), st.container(border=True)
    no_recording = _no_recording(setup, task, name)
    with limits:
        start = budget_form.of_budget(like.settings.budget) if like else None
        budget = budget_form.draw(setup, "" if no_recording else name, wrong, start)
    with more:
        fields = (
            _options(strategy, budget.depths, model, like, wrong)
            | {"device": setup.device, "language": setup.language}
            | policy
        )
        fields["width"] = _width(strategy, model, fields["strategy_options"], wrong)
        if model not in supervisor.FREE_MODELS:
            fields["model_options"] = _model_options(wrong)
        with st.expander(
            "Knowledge base, compiler hint, variants to tune, share of the device", icon=":material/school:"
        ):
            fields["knowledge"] = _knowledge(strategy)
            fields["compiler_hint"] = st.toggle(
                "Show what torch.compile writes", key="compiler_hint", help=BY_NAME["compiler_hint"].help
            )
            if setup.language == Triton.name and st.toggle(
                "Begin with what torch.compile generates", key="compiled_start", help=BY_NAME["start"].help
            ):
                fields["start"] = Start.COMPILED
            fields["tune"] = _whole("Variants to tune", "tune", 0, 0, 200, BY_NAME["tune"].help, wrong)
            fields["weight"] = number_field.draw(
                st.container(),
                "Weight",
                "weight",
                1.0,
                0.01,
                wrong,
                100.0,
                step=1.0,
                help=BY_NAME["weight"].help,
                width=260,
            )
        with st.expander("Baselines: what speed-ups are told over", icon=":material/speed:"):
            fields |= baselines_form.draw(task.policy, task.text, setup.toolchain, str(task.path), wrong)
        with st.expander("Reference module", icon=":material/code:"):
            st.code(task.text, language="python")
        with st.expander("Prompts of your own", icon=":material/article:"):
            prompts = _prompts()
        with st.expander("Approve steps before they start", icon=":material/front_hand:"):
            fields["ask_first"] = approval.rule_form("new", wrong)
    fields["budget"] = budget
    examined: Task | None = None
    with right, st.container(border=True, key="new_run_summary"):
        st.markdown("## This run")
        if wrong:  # such a number is not left out: there is no command for a run without it, and no estimate
            _start_button(wrong[0])
        else:
            examined = _summary(setup, task, sizes, fields, no_recording, prompts)
    _draw_again_when_known(task.task(setup.toolchain, sizes).source, fields["backward"], examined, setup)


def _no_recording(setup: Setup, task: TaskFile, name: str) -> str:
    """Why there are no recorded replies for a task, as a sentence; empty when there are."""
    if task.is_shipped:
        return supervisor.recording_note(name, setup.toolchain, setup.strategy.name, setup.language)
    return "Recorded replies exist only for shipped tasks: choose one that has a recording, or another model."


def _summary(
    setup: Setup, task: TaskFile, sizes: dict[str, Size], fields: dict[str, Any], no_recording: str, prompts: str
) -> Task | None:
    """What the run will take where it can start, the button, and the same run as a command. Returns the task that is
    being examined, if one is."""
    chosen, name = task.task(setup.toolchain, sizes), _variant(task, fields)
    source = chosen.source
    if not task.is_shipped and (task.own_name or task.path.stem) in tasks.shipped_names():
        name = ""  # a file of one's own with that name: runs of the shipped task tell nothing about it
    too_large = forecast.draw_badges(
        not no_recording, source, chosen.sizes, supervisor.has_gpu(setup.toolchain),
        fields["backward"], setup.model,
    )  # fmt: skip
    if not no_recording and setup.model != RECORDED:
        _offer_recording(setup.model)
    examined, undecided, is_tried, is_being_tried = None, "", False, False
    if not too_large and supervisor.estimated(source, fields["backward"])[0]:
        examined = examination.to_examine(task, setup.toolchain, sizes, fields)
    if examined is not None:
        keys = f"mode:{task.path}", f"compare_modules:{task.path}"
        undecided = examination.draw(examined, setup.toolchain, setup.device, *keys)
        found = supervisor.examined(examined, setup.toolchain, setup.device)
        is_tried, is_being_tried = bool(found and (found.is_decided or found.refusal)), found is None
    if not (too_large or is_tried):
        forecast.draw_doubt(source, fields["backward"], is_being_tried)
    why_not = too_large or undecided or (no_recording if setup.model == RECORDED else "")
    if not why_not:
        forecast.draw(
            forecast.of_run(
                name, setup.toolchain, setup.strategy.name, setup.model, fields["budget"], chosen.sizes,
                _recorded_calls(setup, _variant(task, fields), fields["budget"]),
            )
        )  # fmt: skip
        if beside := forecast.beside_demo(setup.toolchain):
            st.caption(f":material/info: {beside}")
    waits = (CHECKING, TRIED_FIRST) if is_being_tried else None
    if not supervisor.estimated(source, fields["backward"])[0]:
        waits = WEIGHING, WEIGHED_FIRST
    is_asked = _start_button(why_not, waits)
    failure = st.container()
    if not why_not:  # a terminal would refuse it too
        _command(task, setup, sizes, fields | {"prompts_folder": prompts})
    if is_asked:
        with failure:
            _start(task, setup, sizes, fields | _pack(prompts))
    return examined


def _recorded_calls(setup: Setup, name: str, budget: Budget) -> int | None:
    """How many calls its recording holds for a run; None where no recording is used."""
    if setup.model != RECORDED:
        return None
    return supervisor.recorded_calls(name, budget.depths, setup.toolchain, setup.strategy.name, setup.language)


def _command(task: TaskFile, setup: Setup, sizes: dict[str, Size], fields: dict[str, Any]) -> None:
    """The run of this form as a command, where a terminal would find its module."""
    if not (task.is_shipped or task.path.exists()):
        st.caption(
            "The same from a terminal can be copied here once the module is kept: *Keep it now*, beside its name."
        )
        return
    st.caption("The same from a terminal:")
    line = command_line.of_form(task, setup.toolchain, setup.model, sizes, setup.strategy, fields)
    st.code(line, language=None, wrap_lines=True)


def _offer_recording(model: str) -> None:
    """Who writes the kernels of a task that has recorded replies too, and the click that takes those."""
    who = "You write every reply." if model == MANUAL else f"**{wording.plain(model)}** writes the kernels."
    st.info(f"{who} Recorded replies of this task exist: they need no model and cost nothing.",
            icon=":material/smart_toy:")  # fmt: skip
    st.button("Use the recorded replies", icon=":material/history:", key="use_recording", on_click=_choose_recording)


def _choose_recording() -> None:
    st.session_state["model"] = RECORDED


def _start_button(why_not: str, waits: tuple[str, str] | None = None) -> bool:
    """Whether a start is asked for. Where none can be, the reason stands above the button, which is off. While the
    module is being tried or weighed it says so in the words of `waits`: the start waits for what comes of it."""
    if why_not:
        st.warning(wording.sentence(why_not), icon=":material/warning:")
    label, tip = ("Start run", wording.sentence(why_not)) if why_not or not waits else waits
    icon = "hourglass_top" if waits and not why_not else "play_arrow"
    is_asked = st.button(
        label, type="primary", icon=f":material/{icon}:", key="start", disabled=bool(why_not), help=tip or None,
        width="stretch",
    )  # fmt: skip
    return is_asked and not why_not  # a click may arrive together with the text that turns the button off


def _task(setup: Setup, like: Like | None, wrong: list[str]) -> tuple[TaskFile, dict[str, Size], dict[str, Any]] | None:
    """The task chosen, the sizes that differ from its own, its rules; None while there is no usable task, and why there
    is none stands in `wrong`."""
    st.markdown("## What")
    try:
        task = module_field.draw(setup.toolchain, setup.strategy.name, setup.language, like)
    except TaskError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        wrong.append(str(error))
        return None
    if task is None:
        return None
    same = like.settings if like and like.is_of(task) else None
    begins = same.sizes if same and same.toolchain == setup.toolchain else {}
    sizes = _sizes(task, setup.toolchain, begins, wrong)
    return task, sizes, _policy(task, same.policy if same else task.policy)


def _policy(task: TaskFile, begins: Policy) -> dict[str, Any]:
    """What kernels may leave to PyTorch, how exact they must be, and whether the backward pass is theirs too."""
    usual = begins.library_operators
    if EVERYTHING in usual:
        usual = ("all",)
    library = st.text_input(
        "Operators left to PyTorch", ", ".join(usual) or "none", key=f"library:{task.path}", help=_LIBRARY_HELP
    )
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    precision = row.segmented_control(
        "Precision", PRECISIONS, default=begins.precision, required=True, key=f"precision:{task.path}",
        help="tf32 lets tensor cores round the operands of products; half lets kernels round them to bfloat16 or "
        "float16. The reference is timed in the same class.",
    )  # fmt: skip
    dtype = row.segmented_control(
        "Tensor type", (OWN_DTYPE, *DTYPES), default=begins.dtype or OWN_DTYPE, required=True,
        key=f"dtype:{task.path}", format_func=lambda dtype: "as in the task" if dtype == OWN_DTYPE else dtype,
        help="bf16 or fp16: floating-point inputs and parameters are converted, on both "
        "sides; a precision class of its own, so Precision stays at fp32.",
    )  # fmt: skip
    mode = row.segmented_control(
        "Mode", tuple(_MODES), default=begins.mode or OWN_MODE, required=True, key=f"mode:{task.path}",
        format_func=_MODES.__getitem__,
        help="What both modules are put into. As constructed is training mode for most modules: there batch "
        "normalisation takes its statistics from the batch, and dropout draws random numbers.",
    )  # fmt: skip
    backward = row.checkbox(
        "Forward and backward", begins.backward, key=f"backward:{task.path}",
        help="Gradients of inputs and parameters are checked too, and both passes are timed together, the reference "
        "through autograd. ModelNew then calls a torch.autograd.Function of its own.",
    )  # fmt: skip
    chosen = {
        "library": library.strip() or "none",
        "precision": str(precision),
        "compare_modules": _modules(task, begins, row),
    }
    return chosen | {"backward": backward, "dtype": str(dtype), "mode": str(mode)}


def _modules(task: TaskFile, begins: Policy, row: DeltaGenerator) -> int:
    """How many names deep modules are compared: asked only where that is chosen, by the task or as what mends it."""
    key, usual = f"compare_modules:{task.path}", begins.compare_modules
    if not (usual or st.session_state.get(key)):
        return 0
    st.session_state.setdefault(key, usual)
    depth = row.number_input(
        "Compare modules", 0, DEEPEST, step=1, key=key,
        help="Outputs of modules up to so many names deep (`layer1.0` is two) are compared too, each on the inputs "
        "that it had; 0 compares the network's alone.",
    )  # fmt: skip
    return int(depth)


def _variant(task: TaskFile, chosen: Mapping[str, Any]) -> str:
    """The name of the task as it is chosen: recordings and earlier runs of another dtype, mode or comparison, or of
    forward alone, are not of this one."""
    dtype = "" if chosen["dtype"] == OWN_DTYPE else chosen["dtype"]
    mode = "" if chosen["mode"] == OWN_MODE else chosen["mode"]
    shared = {name: chosen[name] for name in ("backward", "compare_modules")}
    return replace(task, policy=replace(task.policy, **shared, dtype=dtype, mode=mode)).name


def _sizes(task: TaskFile, toolchain: str, begins: Mapping[str, Size], wrong: list[str]) -> dict[str, Size]:
    """The sizes that differ from the task's own, at first those of `begins`; what is wrong with one is told and added
    to `wrong`."""
    start = task.task(toolchain).sizes
    if not start:
        return {}
    st.caption("Problem sizes (defaults for this device)")
    columns = st.columns(max(4, len(start)))
    sizes: dict[str, Size] = {}
    for column, (name, value) in zip(columns, start.items(), strict=False):
        key = f"size:{task.path}:{toolchain}:{name}"
        shown = f"{begins.get(name, value)}"
        given = number_field.draw_typed(column, name, key, shown, tasks.least_size(value), wrong)
        if given is not None:
            sizes[name] = int(given) if isinstance(value, int) else given
    return {name: value for name, value in sizes.items() if value != start[name]}


def _is_known(source: str, backward: bool, examined: Task | None, setup: Setup) -> bool:
    """Whether nothing that this page shows is still being worked out. An empty source is of no task."""
    if catalogue.is_reading() or (source and not supervisor.estimated(source, backward)[0]):
        return False
    return examined is None or supervisor.examined(examined, setup.toolchain, setup.device) is not None


def _draw_again_when_known(source: str, backward: bool, examined: Task | None, setup: Setup) -> None:
    if not _is_known(source, backward, examined, setup):
        _ask_again(source, backward, examined, setup)


@st.fragment
def _ask_again(source: str, backward: bool, examined: Task | None, setup: Setup) -> None:
    """The watcher asks, as it waits while a click is on its way to the server; Streamlit's own `run_every` does not."""
    now.watch([CLOCK], is_overview=False, token=change_token.of([CLOCK], is_overview=False))
    if _is_known(source, backward, examined, setup):
        st.rerun()


def _options(
    strategy: StrategyDescription, depths: int, model: str, like: Like | None, wrong: list[str]
) -> dict[str, Any]:
    """The method with its options, folded away: their defaults are those of its authors, or of another run."""
    with st.expander("Options of the strategy", icon=":material/tune:"):
        if not strategy.options:
            st.caption("This strategy has no options.")
        start = {option.name: option.default_for(model) for option in strategy.options}
        if like and like.settings.strategy == strategy.name:
            start |= {name: value for name, value in like.settings.strategy_options.items() if name in start}
        chosen = options_form.draw(strategy.options, strategy.name, start, depths, strategy.words.step, wrong)
    return {"strategy": strategy.name, "options": strategy.options, "strategy_options": chosen}


def _width(strategy: StrategyDescription, model: str, values: Mapping[str, Any], wrong: list[str]) -> int:
    """How many kernels are at work at once; 1 and no field where the method or the model allows no more."""
    if strategy.independent is None or model == MANUAL:
        return 1
    if any(values.get(name) != value for name, value in strategy.independent.items()):
        return 1
    return _whole("Kernels at work at once", "width", 1, 1, 64, BY_NAME["width"].help, wrong)


def _whole(label: str, key: str, start: int, least: int, most: int, about: str, wrong: list[str]) -> int:
    """A whole number within bounds."""
    return int(number_field.draw(st.container(), label, key, start, least, wrong, most, help=about, width=260) or 0)


def _knowledge(strategy: StrategyDescription) -> str:
    """The knowledge base that the run asks."""
    left, right = st.columns(2)
    bases = [*choice.CHOICES, OTHER_BASE]
    chosen = left.selectbox(
        "Knowledge base", bases, bases.index(strategy.knowledge), key=f"knowledge:{strategy.name}",
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


def _model_options(wrong: list[str]) -> Options:
    """The options asked for; a line that makes no sense is said to be so, and no run can be started with it."""
    with st.expander("Model options: reasoning effort, edit format, roles", icon=":material/psychology:"):
        left, middle, right = st.columns(3)
        effort = left.selectbox("Reasoning effort", EFFORTS, key="effort")
        patch_form = middle.selectbox("Edit format", [str(kind) for kind in PatchForm], key="patch_form")
        warmth = number_field.draw(
            right, "Temperature", "temperature", None, 0.0, wrong, 2.0, step=0.1, placeholder="not set"
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
        st.error(wording.sentence(str(error)), icon=":material/error:")
        st.stop()


def _prompts() -> str:
    """The folder of a pack in place of shipped prompt files; with one that cannot be used no run can be started."""
    folder = st.text_input(
        "Folder of prompt files", key="prompts", placeholder="none: those that Tilewright brings", width=520,
        help="A folder on this machine with files named as in prompts/; each takes the place of the shipped one.",
    ).strip()  # fmt: skip
    try:
        pack = _pack(folder)
    except EngineError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        st.stop()
    if pack:
        st.caption(wording.plain(f"In place of the shipped ones: {', '.join(sorted(pack['prompts'].files))}"))
    return folder


def _pack(folder: str) -> dict[str, Prompts]:
    return {"prompts": supervisor.read_pack(Path(folder).expanduser())} if folder else {}


def _start(task: TaskFile, setup: Setup, sizes: dict[str, Size], fields: dict[str, Any]) -> None:
    toolchain = setup.toolchain
    try:
        supervisor.keep_module(task)
        settings: RunSettings = supervisor.new_settings(
            str(task.path), toolchain=toolchain, model=setup.model, overrides=sizes, **fields
        )
        supervisor.see_that_money_can_be_kept(settings)
        with st.spinner("Starting the engine"):
            supervisor.see_that_it_fits(settings, task)
        tried = examination.to_examine(task, toolchain, sizes, fields)
        if tried and forecast.may_fail(settings.task_source, fields["backward"]):
            with st.spinner("Trying the module with its inputs"):
                supervisor.see_that_it_runs(tried, toolchain, setup.device)
        with st.spinner("Starting the engine"):
            folder = supervisor.start(settings)
    except EngineError as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    kept.forget()
    st.switch_page("run.py", query_params={"run": folder.run_id})


st.title("New run", anchor=False)
if access.may_steer():
    kept.begin(another.address())
    try:
        form()
    finally:
        kept.keep()
else:
    st.info("This server is read-only and starts no runs.", icon=":material/lock:")
