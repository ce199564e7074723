"""A new suite: which tasks, which arms, how often, within which limits; the same as a file and as a command. What is
wrong with it is said while it is typed."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import streamlit as st

from engine import supervisor
from engine.errors import EngineError
from engine.evaluator import languages, tasks
from engine.evaluator.tasks import TaskFile
from engine.search.methods import catalogue
from engine.suites import definition, starting
from engine.suites.formats import name as spaced
from pages.parts import number_field, suite_folders, wording
from pages.parts.benchmark import suite_acts
from pages.parts.benchmark.suite_draft import DEFAULT, TOOLCHAIN, ArmDraft, Draft, draft_of, toml_of
from pages.parts.widgets import table
from storage import untrusted
from storage.run.saved_models import RECORDED
from storage.suites import files
from storage.suites.files import SuiteError
from storage.suites.records import NAME, BudgetRule, SuiteLimits

FRESH = "blank"
MOST = 1_000_000_000
RULES = {BudgetRule.EVEN: "stays unspent", BudgetRule.HEADROOM: "goes where most is left to save"}
TASKS_HELP = "Each is a PyTorch module. Those that come with Tilewright stand by class."
ARMS_ABOUT = (
    "An arm is one set of settings. Every task is run with each arm, so that arms can be compared task by task; the "
    "first is the one that the others are compared with."
)
LIMITS_ABOUT = "Of all runs together. Once one is reached no run begins, and those at work are stopped."
AS_USUAL = ""
USUAL = Draft(("swish",), (ArmDraft(DEFAULT, DEFAULT),))


def draw(source: str) -> None:
    """The form, filled in with a shipped suite or one that was started here."""
    try:
        start = beginning(source)
    except (EngineError, SuiteError) as error:
        st.warning(wording.sentence(str(error)), icon=":material/search_off:")
        return
    wrong: list[str] = []
    with st.container(key="form"):
        left, right = st.columns([1.75, 1], gap="medium")
    with left:
        with st.container(border=True):
            name = _name(source, wrong)
            title = st.text_input("Title", start.title, key=f"suite_title:{source}", placeholder="optional")
            chosen = _tasks(source, start, wrong)
            toolchain = _toolchain(source, start)
        with st.container(border=True):
            arms = _arms(source, start, toolchain, wrong)
        with st.container(border=True):
            rest = _limits(source, start, wrong)
    draft = Draft(chosen, arms, title.strip(), rest.pop("about"), toolchain, kept=start.kept, **rest)
    with right, st.container(border=True, key="new_suite_summary"):
        _summary(name, draft, wrong)
    with left:
        _cells(draft)


def lacking(draft: Draft) -> str:
    """Why the suite cannot begin on this machine, in words; empty where nothing is known against it."""
    for arm in draft.arms:
        if why := suite_acts.unavailable(f"{TOOLCHAIN} {draft.toolchain} {arm.words}"):
            return why
    named = [arm.name for arm in draft.arms if any(replies(task, arm, draft.toolchain) is None for task in draft.tasks)]
    if not named:
        return ""
    return f"There are no recorded replies for all runs of {', '.join(named)}: choose another model, method or task."


def beginning(source: str) -> Draft:
    """What the form begins with.

    Raises:
        EngineError: it takes words that the form has no field for.
        SuiteError: there is no such suite.
    """
    if source == FRESH:
        return USUAL
    if source in definition.shipped():
        return draft_of(definition.read(definition.find(source)), untrusted.read_toml(definition.find(source)))
    suite = suite_folders.read(files.find(source))
    return draft_of(suite.defined, untrusted.toml_table(suite.defined.toml, source)) if suite else USUAL


def _name(source: str, wrong: list[str]) -> str:
    stem = "mine" if source == FRESH else source
    names = (stem if number == 1 else f"{stem}-{number}" for number in itertools.count(1 if source == FRESH else 2))
    first = next(name for name in names if not files.folder_of(name).journal_file.exists())
    name = st.text_input("Name", first, key=f"suite_name:{source}", live=True, width=320).strip()
    why = ""
    if not NAME.fullmatch(name):
        why = "Name: use letters, digits, '.', '_' and '-', at most 80."
    elif files.folder_of(name).journal_file.exists():
        why = f"Name: a suite {name} was started here before. Choose another one."
    if why:
        wrong.append(why)
        st.error(wording.sentence(why), icon=":material/error:")
    return name


def _tasks(source: str, start: Draft, wrong: list[str]) -> tuple[str, ...]:
    by_name = {task.name: task for task in sorted(tasks.shipped(), key=lambda task: (_class(task), task.name))}
    chosen = st.multiselect(
        "Tasks", list(by_name), [task for task in start.tasks if task in by_name], key=f"suite_tasks:{source}",
        format_func=lambda name: f"{_class(by_name[name])} · {spaced(name)}", help=TASKS_HELP,
    )  # fmt: skip
    paths = st.text_area(
        "Files of your own, one per line", "\n".join(task for task in start.tasks if task not in by_name),
        key=f"suite_paths:{source}", height=68, placeholder="/path/to/module.py, or /path/to/level1/*.py",
        help="Modules in KernelBench's convention on this machine; * stands for any characters.",
    )  # fmt: skip
    own = [line.strip() for line in paths.splitlines() if line.strip()]
    if not chosen and not own:
        wrong.append("Choose a task.")
    return (*chosen, *own)


def _class(task: TaskFile) -> str:
    return wording.CLASS_NAME[task.kernel_class or task.guessed_class]


def _toolchain(source: str, start: Draft) -> str:
    """Any: the file may be for another machine."""
    names = list(supervisor.available_toolchains())
    first = start.toolchain if start.toolchain in names else names[0]
    return str(st.segmented_control("Toolchain", names, default=first, required=True, key=f"suite_on:{source}"))


def _arms(source: str, start: Draft, toolchain: str, wrong: list[str]) -> tuple[ArmDraft, ...]:
    """A row an arm. Rows are kept by number, so that what was typed stays where another row is taken out."""
    st.markdown("## Arms")
    st.caption(ARMS_ABOUT)
    key = f"suite_arms:{source}"
    rows: dict[int, ArmDraft] = st.session_state.setdefault(key, dict(enumerate(start.arms)))
    arms = [
        _arm(f"{source}:{number}", arm, toolchain, key, number, len(rows) > 1, wrong) for number, arm in rows.items()
    ]
    names = [arm.name for arm in arms]
    if len(set(names)) != len(names):
        wrong.append("Arms: two arms have one name.")
        st.error(wrong[-1], icon=":material/error:")
    st.button("Add an arm", icon=":material/add:", key=f"add_arm:{source}", on_click=_add, args=(key, arms[-1]))
    return tuple(arms)


def _add(key: str, like: ArmDraft) -> None:
    rows: dict[int, ArmDraft] = st.session_state[key]
    number = max(rows) + 1
    rows[number] = ArmDraft(f"arm_{number + 1}", like.strategy, like.language, like.model, like.depths, like.more)


def _remove(key: str, number: int) -> None:
    st.session_state[key].pop(number, None)


def _arm(
    row: str, start: ArmDraft, toolchain: str, key: str, number: int, may_go: bool, wrong: list[str]
) -> ArmDraft:  # fmt: skip
    usable = [described.name for described in catalogue.descriptions() if described.is_usable]
    with st.container(border=True, key=f"arm:{row}".replace(":", "_")):
        first, second, third = st.columns(3)
        name = first.text_input("Arm", start.name, key=f"arm_name:{row}", live=True).strip()
        strategy = _choice(second, "Method", usable, start.strategy, f"arm_method:{row}")
        language = _choice(third, "Language", languages.of_toolchain(toolchain), start.language,
                           f"arm_language:{row}:{toolchain}")  # fmt: skip
        first, second, third = st.columns(3)
        model = _choice(first, "Model", supervisor.available_models(), start.model, f"arm_model:{row}")
        words = catalogue.words(strategy or DEFAULT)
        depths = number_field.draw_typed(
            second, wording.capital(words.steps), f"arm_depths:{row}", start.depths, 0, wrong, 10_000,
            may_be_empty=True, placeholder="as usual", help=words.counts,
        )  # fmt: skip
        more = third.text_input(
            "Further settings", start.more, key=f"arm_more:{row}", help=suite_acts.MORE_HELP
        ).strip()
        if may_go:
            st.button("Remove this arm", icon=":material/delete:", type="tertiary", key=f"remove_arm:{row}",
                      on_click=_remove, args=(key, number))  # fmt: skip
    if not name:
        wrong.append("Arms: an arm has no name.")
    return ArmDraft(name, strategy, language, model, "" if depths is None else f"{depths:.0f}", more)


def _choice(at: Any, label: str, options: list[str], chosen: str, key: str) -> str:
    """One of these, or what a run has by itself."""
    offered = [AS_USUAL, *dict.fromkeys([*options, *([chosen] if chosen else [])])]
    return str(
        at.selectbox(label, offered, offered.index(chosen), key=key, format_func=lambda text: text or "as usual")
    )


def _limits(source: str, start: Draft, wrong: list[str]) -> dict[str, Any]:
    st.markdown("## Repeats and limits")
    st.caption(LIMITS_ABOUT)
    first, second = st.columns(3), st.columns(3)

    def typed(at: Any, label: str, field: str, value: float | None, least: float) -> float | None:
        text = "" if value is None else f"{value:g}"
        return number_field.draw_typed(
            at, label, f"{field}:{source}", text, least, wrong, MOST, may_be_empty=True, placeholder="no limit"
        )  # fmt: skip

    limits, minutes = start.limits, None if start.limits.engine_s is None else start.limits.engine_s / 60
    repeats = number_field.draw_typed(
        first[0], "Repeats", f"suite_repeats:{source}", f"{start.repeats}", 1, wrong, definition.MOST_REPEATS,
        help="how often each task is run with each arm",
    )  # fmt: skip
    calls = typed(first[1], "Model calls", "suite_calls", limits.model_calls, 1)
    tokens = typed(first[2], "Tokens", "suite_tokens", limits.tokens, 1)
    cost = typed(second[0], "US dollars", "suite_cost", limits.cost_usd, 0.01)
    minutes = typed(second[1], "Minutes of engine time", "suite_minutes", minutes, 0.1)
    more = second[2].text_input(
        "Further settings of every run", start.more, key=f"suite_more_of:{source}", help=suite_acts.MORE_HELP
    )
    rule = BudgetRule(st.segmented_control(
        "What the runs leave of the limits", list(BudgetRule), default=start.budget, required=True,
        key=f"suite_rule:{source}", format_func=RULES.__getitem__,
    ) or BudgetRule.EVEN)  # fmt: skip
    limits = SuiteLimits(
        None if calls is None else int(calls), None if tokens is None else int(tokens), cost,
        None if minutes is None else 60.0 * minutes,
    )  # fmt: skip
    if rule is BudgetRule.HEADROOM and limits == SuiteLimits():
        wrong.append("Limits: give one, or nothing can be left of it.")
        st.error(wrong[-1], icon=":material/error:")
    about = st.text_area(
        "What it is to find out", start.about, key=f"suite_about:{source}", placeholder="optional", height=68
    )
    return {"repeats": int(repeats or 1), "limits": limits, "budget": rule, "more_steps": start.more_steps,
            "more": more.strip(), "about": about.strip()}  # fmt: skip


def _summary(name: str, draft: Draft, wrong: list[str]) -> None:
    """What it takes, the button, and the same as a file and as a command."""
    st.markdown("## This suite")
    toml, why_not, defined = toml_of(draft), wrong[0] if wrong else "", None
    if not wrong:
        try:
            defined = definition.of_text(toml, Path(f"{name}.toml"))
        except EngineError as error:
            why_not = wording.opened(str(error))
    if defined:
        suite_acts.draw_takes(defined)
        why_not = lacking(draft)
    if why_not:
        st.warning(wording.sentence(why_not), icon=":material/warning:")
    is_asked = st.button(
        "Start suite", type="primary", icon=":material/play_arrow:", key="start_new_suite", disabled=bool(why_not),
        help=wording.sentence(why_not) or None, width="stretch",
    )  # fmt: skip
    if is_asked and not why_not and (folder := suite_acts.begin(lambda: starting.start_text(name, toml))):
        st.switch_page("benchmark.py", query_params={"suite": folder.name})
    if defined:
        st.caption("The same as a file:")
        st.code(toml, language="toml", wrap_lines=True)
        st.caption(wording.plain(f"Kept as {name}.toml, it is started from a terminal with:"))
        st.code(suite_acts.command(["run", f"{name}.toml"]), language=None, wrap_lines=True)


def _cells(draft: Draft) -> None:
    """Tasks down, arms across: what each run has to be known of before it starts."""
    if not draft.runs:
        return
    st.markdown("## Tasks × arms")
    columns = [table.Column("task", "Task", "nowrap")]
    columns += [table.Column(f"arm{number}", arm.name) for number, arm in enumerate(draft.arms)]
    rows = [
        table.Row(task, {"task": table.text(spaced(task), "strong")}
                  | {f"arm{number}": cell(task, arm, draft.toolchain) for number, arm in enumerate(draft.arms)})
        for task in draft.tasks
    ]  # fmt: skip
    table.draw("Tasks by arms", columns, rows, key="draft_cells", is_cards=True, is_compact=True)


def cell(task: str, arm: ArmDraft, toolchain: str) -> table.Cell:
    """What one run is, and for a recorded model whether there are replies."""
    chosen = arm.strategy or DEFAULT, arm.language or languages.DEFAULT, model_of(arm)
    note, depths = " · ".join(chosen), replies(task, arm, toolchain)
    if depths is None:
        return table.pill("no recorded replies", "red", "failed", "choose another model for this arm", note)
    if arm.depths and float(arm.depths) > depths:
        return table.pill(f"replies for {depths:.0f}", "orange", "", f"of {arm.depths}; then the run waits", note)
    return table.pill("one run", "gray", "", "", note)


def replies(task: str, arm: ArmDraft, toolchain: str) -> float | None:
    """For how many steps there are replies: without end by a live model; None where a recording is asked for and there
    is none."""
    if model_of(arm) != RECORDED:
        return math.inf
    if task not in tasks.shipped_names():
        return None
    return supervisor.recorded_depths(task, toolchain, arm.strategy or DEFAULT, arm.language or languages.DEFAULT)


def model_of(arm: ArmDraft) -> str:
    """Its model, or the one of a run for which none is named."""
    return arm.model or supervisor.available_models()[0]
