"""Going on from an earlier kernel: in this run or as a new one, with other settings, seen before it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.evaluator import languages, tasks
from engine.search.methods import catalogue
from engine.search.methods.catalogue import StrategyDescription
from pages.parts import access, index, method, number_field, texts, wording
from pages.parts.status import damaged
from pages.parts.steering import command_dialogs, dialogs, kernel_choice, limits_dialog, options_form, steer
from pages.parts.widgets import diff
from storage.index import queries
from storage.index.queries import AttemptRow, RunRow
from storage.results.vocabulary import KernelClass
from storage.run import exposure, folder
from storage.run.method_words import MethodWords
from storage.run.saved_models import RECORDED
from storage.run.settings import RunSettings, RunState, Switch
from storage.run.steering.verbs import CommandKind

RECORDED_NOTE = " Recorded replies ignore prompts and hints: choose a live model to have them used."
IN_THIS_RUN, AS_NEW_RUN = "in this run", "as a new run"


@dataclass(frozen=True, slots=True)
class Profiles:
    """What becomes of profiles; None leaves a switch as it is. `ending` ends the sentence of what will happen."""

    shown: Switch | None = None
    taken: Switch | None = None
    ending: str = ""


PROFILES = {
    "unchanged": Profiles(),
    "show": Profiles(Switch.ON, ending=" with its profile shown to the model"),
    "do not show": Profiles(Switch.OFF, ending=" without showing the model a profile"),
    "do not profile": Profiles(Switch.OFF, Switch.OFF, " and no further kernel is profiled"),
}

# For a strategy that does not choose whether the model is shown profiles.
NOT_EXPOSED = ("unchanged", "do not profile")


@st.dialog("Go back or fork", width="large", icon=":material/undo:", on_dismiss=dialogs.close)
def go_back_or_fork(run: RunRow, state: RunState, candidate_id: str = "") -> None:
    """Nothing is deleted, whichever way is chosen."""
    dialogs.name_run(run.title, run.run_id)
    over, words = state.is_over, method.words(run.run_id)
    kernels = dialogs.hold("targets", lambda: _targets(run, over, candidate_id))
    if not kernels:
        why = f"No kernel to go back to yet: no {words.distinct} with a correct kernel has finished."
        st.info(wording.plain(why), icon=":material/hourglass_top:")
        return
    if not over:
        st.caption("The page behind stands still until this is closed.")
    chosen = kernel_choice.draw(run, "Kernel to continue from", kernels, "try_from", candidate_id)
    if candidate_id and candidate_id not in {kernel.candidate_id for kernel in kernels}:
        name = kernel_choice.number(run, candidate_id)
        st.caption(wording.plain(f"No {words.distinct} can start from {name}: it is not correct and timed."))
    ways = _ways(run, over, chosen)
    way = st.segmented_control("Where", ways, default=ways[0], key="try_where", required=True)
    strategy = None if way == IN_THIS_RUN else dialogs.hold("strategy", lambda: _strategy(run))
    choices = (
        NOT_EXPOSED if strategy and all(option.name != exposure.OPTION for option in strategy.options) else PROFILES
    )
    name = st.segmented_control(
        "Profiles for the model", list(choices), default="unchanged", key="try_profiles", required=True,
        help="a profile tells the model where its kernel spends time; without one it sees only the source",
    )  # fmt: skip
    profiles = PROFILES[str(name)]
    hint = dialogs.text_area("Hint for the next prompt", "try_hint", 68, "optional")
    if strategy is None:
        note = command_dialogs.OFF_RECORDING if steer.is_recorded(run) else ""
        depths, is_end = _one_more(run, words)
        if is_end:
            ends = f"Without one more {words.distinct} the run ends again at once." if over else (
                f"This is the last {words.distinct}: going back ends the run."
            )  # fmt: skip
            st.warning(ends, icon=":material/warning:")
        else:
            st.info(_back_preview(chosen, state, profiles, words) + note, icon=":material/visibility:")
        act = "Resume from" if over else "Go back to"
        if dialogs.buttons("try", f"{act} kernel {chosen.number}", ":material/undo:"):
            if depths:
                steer.send(run.run_id, CommandKind.SET_BUDGET, f"depths={depths}")
            _go_back(run, chosen, profiles, hint.strip())
            if over:
                steer.resume(run.run_id)
            dialogs.leave()
        _change(run, chosen)
        return
    if strategy.failure:
        st.error(wording.plain(strategy.failure), icon=":material/error:")
        return
    wrong: list[str] = []
    fields = _settings(run, strategy, profiles.shown, wrong)
    if profiles.taken is not None:
        fields["collect"] = profiles.taken
    note = RECORDED_NOTE if fields["model"] == RECORDED else ""
    made_for = folder.find_run(run.run_id).read_settings()
    sentence = fork_preview(chosen.number, made_for, fields["toolchain"], profiles.ending, words)
    st.info(wording.plain(sentence) + note, icon=":material/visibility:")
    _fork(run, chosen, hint.strip(), fields, wrong)


def _ways(run: RunRow, over: bool, chosen: AttemptRow) -> list[str]:
    """Where to go on. In a run that is over where an engine can, and nothing but its number of steps would end it."""
    if steer.refusal(run, CommandKind.ROLL_BACK) is not None:
        return [AS_NEW_RUN]
    if not over:
        return [IN_THIS_RUN, AS_NEW_RUN]
    allowed = queries.allowance(index.current(), run.run_id)
    usual = {"depths"} if run.state is RunState.FINISHED else set()
    can_go_on = allowed is not None and set(limits_dialog.raised(run, allowed)) == usual
    is_ours = not run.is_example and not run.replay_of and damaged.of(run.run_id).can_resume
    is_base = chosen.candidate_id in {kernel.candidate_id for kernel in kernel_choice.targets(run)}
    return [AS_NEW_RUN, IN_THIS_RUN] if can_go_on and is_ours and is_base else [AS_NEW_RUN]


def _strategy(run: RunRow) -> StrategyDescription:
    with st.spinner("Reading the strategy"):
        return catalogue.description(folder.find_run(run.run_id).read_settings().strategy)


def _targets(run: RunRow, over: bool, candidate_id: str) -> list[AttemptRow]:
    """Kernels of finished depths. Every one where no engine works, or where there is none yet but one is wanted."""
    kernels = [] if over else kernel_choice.targets(run)
    if kernels or not (over or candidate_id):
        return kernels
    return queries.attempts(index.current(), run.run_id)[::-1]


def fork_preview(number: int, made_for: RunSettings, toolchain: str, ending: str, words: MethodWords) -> str:
    """What will happen in a new run on `toolchain`, which begins with a kernel of the run that was `made_for` its own;
    `ending` says what becomes of profiles."""
    if toolchain == made_for.toolchain:
        kept = tasks.kept_rules(made_for.policy.rules, made_for.task_source)
        now = f", by the rules that hold now (here it was {kept})" if kept else ""
        return (
            f"A new run starts with kernel {number}, which is built, checked and timed again first{now}; "
            f"then {words.distinct} 1 starts from it{ending}. This run does not change."
        )
    usable = languages.of_toolchain(toolchain)
    name = made_for.language or languages.DEFAULT
    was, others = languages.label(name), " or ".join(map(languages.label, usable))
    why = f"made for {made_for.toolchain}" if name in usable else f"in {was}, and a run on {toolchain} takes {others}"
    return (
        f"A new run tries kernel {number} on {toolchain} first. It is {why}: it will most likely not build there, or "
        "be refused. The model is then asked to mend it (by CuTeGen for a diagnosis first) or to write a new one, and "
        f"{words.distinct} 1 starts from the first correct one{ending}. This run does not change."
    )


def _back_preview(chosen: AttemptRow, state: RunState, profiles: Profiles, words: MethodWords) -> str:
    """What will happen in this run, when, and what is lost."""
    if state.is_over:
        starts = f"The run is resumed: its next {words.distinct} starts from kernel {chosen.number}"
        return f"{starts}{profiles.ending}. All kernels stay in the run."
    when = "After the current step, the" if state is RunState.RUNNING else "The"
    return (
        f"{when} current {words.distinct} is abandoned and the next one starts from kernel {chosen.number}"
        f"{profiles.ending}. All kernels stay in the run."
    )


def _one_more(run: RunRow, words: MethodWords) -> tuple[int | None, bool]:
    """The new limit of depths where the run is in its last one and a person wants it to go on; and whether going back,
    which abandons that one, ends the run."""
    allowed = queries.allowance(index.current(), run.run_id)
    if allowed is None or (run.depth or 0) < allowed.depths:
        return None, False
    if steer.refusal(run, CommandKind.SET_BUDGET) is not None:
        return None, True
    label = f"One more {words.distinct}: {allowed.depths + 1} in all"
    is_wanted = st.toggle(label, value=True, key="try_one_more")
    return (allowed.depths + 1 if is_wanted else None), not is_wanted


def _change(run: RunRow, chosen: AttemptRow) -> None:
    base = kernel_choice.current_base(run)
    if base is None or chosen.candidate_id == base.candidate_id:
        st.caption("This kernel is the current base.")
        return
    st.markdown(f"Difference between **kernel {base.number}** (current base) and **kernel {chosen.number}**:")
    old, new = texts.source(run.run_id, base.source_blob), texts.source(run.run_id, chosen.source_blob)
    names = (f"kernel {base.number} (current base)", f"kernel {chosen.number} (continue from here)")
    with st.container(height=320, border=False):
        diff.draw(old, new, names, key="try_diff", counts=texts.counts(base, chosen))


def _fork(run: RunRow, chosen: AttemptRow, hint: str, fields: dict[str, Any], wrong: Sequence[str]) -> None:
    """Stays open while an engine starts, and where none does, so that nothing that was set is lost."""
    if not dialogs.buttons("try", f"Start a new run from kernel {chosen.number}", ":material/undo:", may=not wrong):
        return
    try:
        with st.spinner("Starting the engine"):
            new_run = supervisor.fork(folder.find_run(run.run_id), chosen.candidate_id, hint, access.person(), **fields)
    except (EngineError, FileNotFoundError) as error:
        st.error(wording.sentence(str(error)), icon=":material/error:")
        return
    st.switch_page("run.py", query_params={"run": new_run.run_id})


def _go_back(run: RunRow, chosen: AttemptRow, profiles: Profiles, hint: str) -> None:
    if profiles.taken is not None:
        steer.send(run.run_id, CommandKind.COLLECT, profiles.taken)
    if profiles.shown is not None:
        steer.send(run.run_id, CommandKind.EXPOSE, profiles.shown)
    if hint:
        steer.send(run.run_id, CommandKind.HINT, hint)
    steer.send(run.run_id, CommandKind.ROLL_BACK, chosen.candidate_id)


def _settings(run: RunRow, strategy: StrategyDescription, shown: Switch | None, wrong: list[str]) -> dict[str, Any]:
    """The fields of the new run's settings that differ."""
    settings = folder.find_run(run.run_id).read_settings()
    left, right = st.columns(2)
    depths = int(
        number_field.draw(left, strategy.words.titles, "fork_depths", settings.budget.depths, 1, wrong, 200) or 1
    )
    model = command_dialogs.model_box(right, "Model", "fork_model", supervisor.available_models(), settings.model)
    with st.expander("Kernel class, limits, options of the strategy", icon=":material/tune:"):
        fields = _other_settings(run, settings, depths, wrong)
        fields |= _own_settings(settings, strategy, shown, depths, wrong)
    fields["model"] = model
    fields["toolchain"] = _toolchain(settings.toolchain)
    if model != settings.model:
        fields["model_options"] = tuple(replace(option, model=None) for option in settings.model_options)
    return fields


ELSEWHERE = "On another toolchain a shipped task has its sizes for that one."


def _toolchain(before: str) -> str:
    """Where the new run's kernels are built and timed: on another device where that of the run is not here."""
    usable = [name for name, lacks in dialogs.hold("toolchains", supervisor.available_toolchains).items() if not lacks]
    if usable in ([], [before]):
        return before
    start = before if before in usable else usable[0]
    chosen = str(
        st.segmented_control("Toolchain", usable, default=start, required=True, key="fork_toolchain", help=ELSEWHERE)
    )
    if chosen != before:
        st.caption(wording.plain(f"The run used the toolchain {before}. {ELSEWHERE}"))
    return chosen


def _other_settings(run: RunRow, settings: RunSettings, depths: int, wrong: list[str]) -> dict[str, Any]:
    classes = list(KernelClass)
    left, middle, right = st.columns(3)
    chosen = left.selectbox(
        "Kernel class", classes, classes.index(run.kernel_class), format_func=wording.CLASS_NAME.__getitem__,
        key="fork_class",
    )  # fmt: skip
    calls = number_field.draw(middle, "Maximum model calls", "fork_calls", settings.budget.model_calls, 1, wrong)
    cost = number_field.draw(right, "Maximum cost (US dollars)", "fork_cost", settings.budget.cost_usd, 0.01, wrong)
    return {
        "kernel_class": chosen,
        "class_is_proposed": False,
        "budget": replace(
            settings.budget, depths=depths, model_calls=None if calls is None else int(calls), cost_usd=cost
        ),
    }


def _own_settings(
    settings: RunSettings, strategy: StrategyDescription, shown: Switch | None, depths: int, wrong: list[str]
) -> dict[str, Any]:
    """The options of its strategy. When a profile is shown for the first time is said by the switch above, not here."""
    options = strategy.options
    in_form = [option for option in options if option.name != exposure.OPTION]
    values = options_form.draw(in_form, "fork", settings.strategy_options, depths, strategy.words.step, wrong)
    if len(in_form) < len(options):
        values[exposure.OPTION] = _first_exposed(settings, shown, depths)
    if shown is Switch.ON and exposure.SCHEDULE in values:
        values[exposure.SCHEDULE] = exposure.FIXED  # what is to be shown at once waits for nothing
    return {"options": options, "strategy_options": values}


def _first_exposed(settings: RunSettings, shown: Switch | None, depths: int) -> int | None:
    if shown is None:
        return exposure.asked_depth(settings)
    return 1 if shown is Switch.ON else exposure.never(depths)
