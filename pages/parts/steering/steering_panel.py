"""The controls of a run: each writes one command and leaves the rest to the engine."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.parts import access, client, index, method, run_state, wording
from pages.parts.status import damaged, no_kernel
from pages.parts.steering import approval, command_dialogs, command_list, dialogs, reply_form, steer
from pages.parts.steering.verb_words import VERB_WORDS
from storage.index import queries
from storage.index.queries import RunRow
from storage.run.exposure import Exposure
from storage.run.method_words import MethodWords
from storage.run.settings import RunState, Switch
from storage.run.steering import commands
from storage.run.steering.command_arguments import MANUAL
from storage.run.steering.steering_state import SteeringState
from storage.run.steering.verbs import RULE_LENGTH, RULES, VERBS, CommandKind, Rule

_switch = st.components.v2.component(
    "tilewright_switch",
    html='<span class="label" aria-hidden="true"></span>\n<div class="switch" role="group"></div>',
    css=client.read("steering/switch.css"),
    js=client.read("steering/switch.js"),
)


def draw(run: RunRow, state: RunState) -> None:
    """The panel; says why when there is nothing to steer."""
    with st.container(border=True, key="steering"):
        st.markdown("## Steer")
        if not access.may_steer():
            st.caption(":material/lock: This server is read-only and takes no commands.")
            return
        if state.is_over:
            resume = "Resume the run to steer it." if damaged.of(run.run_id).can_resume else ""
            over = "" if state is RunState.FINISHED or no_kernel.gave_none(run, state) else resume
            if run.is_example and not run.replay_of:
                over = "This is an example, made on another machine: fork one of its kernels to go on."
            st.caption(f"No engine is running. {over}".strip())
            if not run.replay_of:
                _unread(run, state)
                _go_on(run)
            return
        steering = queries.steering_state(index.current(), run.run_id)
        _first(run, state)
        with st.container():  # always there: what comes and goes in it must not move what follows
            command_dialogs.draw_stop(run, state)
        if run.replay_of:
            st.caption("A replay can only be paused and stopped.")
            return
        with st.container():
            _in_force(run, steering)
        with st.expander("More", icon=":material/tune:", key="steer_more"):
            _more(run, steering)


def _unread(run: RunRow, state: RunState) -> None:
    """What no engine read before the run ended, and how it takes effect. A stop ends with the engine it was for."""
    sent = queries.commands(index.current(), run.run_id)
    waiting = [
        c for c in sent if command_list.stage(c, False) == command_list.UNREAD and c.kind is not CommandKind.STOP
    ]
    if not waiting or run.is_example:
        return
    can_reopen = state is not RunState.FINISHED or any(VERBS[command.kind].reopens for command in waiting)
    names = wording.plain(", ".join(command_list.words(run, command)[:90] for command in waiting))
    takes = "It takes effect" if len(waiting) == 1 else "They take effect"
    on = "when" if can_reopen else "only if you go back, raise a limit or hand in a kernel here, by which"
    how = f"{takes} {on} the run is resumed."
    st.warning(f"**Not read by an engine yet:** {names}. {how}", icon=":material/schedule:")
    can_resume = can_reopen and damaged.of(run.run_id).can_resume
    if (
        state is RunState.FINISHED
        and can_resume
        and st.button("Resume run", icon=":material/play_arrow:", key=f"resume_unread:{run.run_id}", width="stretch")
    ):
        steer.resume(run.run_id)


def _first(run: RunRow, state: RunState) -> None:
    """What is wanted most, in one row, which stays at the foot of a phone's screen."""
    asked, is_held = steer.pending(run.run_id), commands.is_offered(CommandKind.RESUME, state)
    with st.container(horizontal=True, gap="small", key="steer_first"):
        if not reply_form.needs_answer(run, state):
            with st.container(key="pause_or_resume", width="stretch"):
                hold = CommandKind.RESUME if is_held else CommandKind.PAUSE
                is_pausing = asked is CommandKind.PAUSE and not is_held
                if is_pausing:
                    st.button("Pausing", icon=":material/hourglass_top:", key="pausing", disabled=True, width="stretch")
                else:
                    steer.verb_button(run, hold, width="stretch", shortcut="p")
        with st.container(key="stop_or_stopping", width="stretch"):
            if asked is CommandKind.STOP:
                st.button("Stopping", icon=":material/hourglass_top:", key="stopping", disabled=True, width="stretch")
            else:
                _opens(run, CommandKind.STOP)
        if not run.replay_of:
            with st.container(width="stretch"):
                _opens(run, CommandKind.HINT, key="h")


def _in_force(run: RunRow, steering: SteeringState) -> None:
    """What has been set and holds until it is changed, and hints on their way."""
    command_dialogs.base_in_force(run, steering)
    if steering.model:
        first, now = (wording.plain(one) for one in (_first_model(run), steering.model.model))
        st.caption(f":material/smart_toy: Model: {now} (at first {first})")
    for rule in steering.rules:
        _rule(run, rule)
    waiting = queries.pending_hints(index.current(), run.run_id)
    if waiting:
        st.caption(f":material/schedule: Waiting for the next prompt: {wording.plain(waiting[-1][:120])}")


def _first_model(run: RunRow) -> str:
    return queries.first_model(index.current(), run.run_id)


def _more(run: RunRow, steering: SteeringState) -> None:
    """Every other control, one below the other in one style."""
    _go_on(run)
    for command in (CommandKind.SET_BASE, CommandKind.SET_MODEL, CommandKind.SET_CLASS):
        _opens(run, command)
    if _first_model(run) != MANUAL:
        steer.verb_button(run, CommandKind.TAKE_OVER, "next", width="stretch")
    _switches(run, steering)
    _rules(run)
    approval.draw_settings(run, steering)


def _opens(run: RunRow, command: CommandKind, key: str | None = None) -> None:
    """A button for the dialog of a verb; `key` is the key of the keyboard that presses it.

    Out of reach where the run's search method refuses every verb of the dialog, unless it is of use without an engine.
    """
    words, dialog = VERB_WORDS[command], dialogs.OF_VERB[command]
    kinds = [kind for kind, other in dialogs.OF_VERB.items() if other is dialog]
    why = steer.refusal(run, *kinds) if dialog in dialogs.NEEDS_ENGINE else None
    tip = why or words.tip_words(method.words(run.run_id))
    st.button(
        words.label, icon=words.icon, key=f"opens_{dialog}:{run.run_id}", width="stretch",
        help=tip, disabled=why is not None, shortcut=key, on_click=dialogs.ask, args=(dialog, run.run_id),
    )  # fmt: skip


def _go_on(run: RunRow) -> None:
    """What can be done with the kernels of a run, if it has any, whether or not an engine works on it."""
    if not run.attempts and run_state.of(run).is_over:
        return
    _opens(run, CommandKind.ROLL_BACK)
    if run.is_example:
        return
    submit, why = VERB_WORDS[CommandKind.SUBMIT], steer.refusal(run, CommandKind.SUBMIT)
    if st.button(
        submit.label, icon=submit.icon, key=f"edit_by_hand:{run.run_id}", width="stretch", help=why,
        disabled=why is not None,
    ):  # fmt: skip
        st.switch_page("edit.py", query_params={"run": run.run_id})


def _switches(run: RunRow, steering: SteeringState) -> None:
    values = {CommandKind.COLLECT: steering.collect, CommandKind.EXPOSE: steering.expose}
    for command, value in values.items():
        words, key = VERB_WORDS[command], client.key(f"{command}:{run.run_id}")
        if _is_refused(run, command):
            continue
        _switch(
            data={"label": words.label, "options": list(Switch), "value": value, "help": words.tip}, key=key,
            on_clicked_change=partial(_send_switch, run.run_id, command, key),
        )  # fmt: skip
    if sentence := _auto(run, steering):
        st.caption(wording.plain(sentence))
    if steer.is_recorded(run):
        st.caption("The replies are recorded: a profile shown to the model changes nothing.")


def _auto(run: RunRow, steering: SteeringState) -> str:
    words, planned = method.words(run.run_id), None
    if method.has_schedule(run.run_id):
        planned = queries.planned_exposure(index.current(), run.run_id, run.kernel_class)
    return auto_words(planned, run.depths, words, steering.collect, steering.expose)


def _is_refused(run: RunRow, *commands: CommandKind) -> bool:
    """Whether the run's search method honours none of these verbs; says why in the place of their control."""
    why = steer.refusal(run, *commands)
    if why is not None:
        names = ", ".join(VERBS[command].name for command in commands)
        st.caption(wording.plain(f"Not possible here: {names}. {why}"))
    return why is not None


def _send_switch(run_id: str, command: CommandKind, key: str) -> None:
    steer.send(run_id, command, str(st.session_state[key].clicked))


def auto_words(
    planned: Exposure | None,
    depths: int,
    words: MethodWords,
    collect: Switch = Switch.AUTO,
    shown: Switch = Switch.AUTO,
) -> str:
    """When profiles are collected and shown on auto; `planned` is None for a method without such a schedule.

    A switch that is not on auto is not spoken of; empty where neither is, or the method has nothing fixed to say.
    """
    parts = [_collected(planned, depths, words)] if collect is Switch.AUTO else []
    parts += [_shown(planned, depths, words)] if shown is Switch.AUTO else []
    return f"auto: {', '.join(filter(None, parts))}" if any(parts) else ""


def _collected(planned: Exposure | None, depths: int, words: MethodWords) -> str:
    """What is profiled, as the engine does: the starting point, and every kernel after which the next step index could
    see one."""
    if planned is None:
        return f"collected {words.collected}" if words.collected else ""
    step, before = words.step, planned.first - 1
    if before > depths:
        return f"collected at {step} 0"
    waited = (planned.patience or 1) - 1
    if waited:
        since = f" from {step} {before}" if before > 1 else ""
        return f"collected at {step} 0 and, after {words.counted(waited)} without a gain,{since or ' later'}"
    return f"collected at every {step}" if before <= 1 else f"collected at {step} 0 and from {step} {before}"


def _shown(planned: Exposure | None, depths: int, words: MethodWords) -> str:
    if planned is None:
        return f"shown {words.shown}" if words.shown else ""
    if planned.first > depths:
        return "never shown in this run"
    after = f" after {words.counted(planned.patience)} without a gain" if planned.patience else ""
    since = "" if after and planned.first <= 1 else f" from {words.step} {max(1, planned.first)}"
    return f"shown{after}{since}"


def _rules(run: RunRow) -> None:
    """A form for one more rule; those in force stand above."""
    if _is_refused(run, *RULES):
        return
    fold = st.expander("Rules for the model", icon=":material/rule:", key="rules")
    with fold, st.form(f"rule_form:{run.run_id}", border=False, clear_on_submit=True):
        st.segmented_control(
            "Every kernel", list(RULES), format_func=lambda kind: VERBS[kind].name, default=CommandKind.BAN,
            key="rule_kind", required=True,
        )  # fmt: skip
        st.text_input("What", key="rule_text", max_chars=RULE_LENGTH, placeholder="e.g. atomics, or: 128-bit loads")
        st.caption("Added to every prompt that asks for a kernel, from the next one on, until you remove it.")
        if steer.is_recorded(run):
            st.caption(f":material/info: {steer.RECORDED.format('a rule')}")
        st.form_submit_button("Add rule", icon=":material/rule:", on_click=_send_rule, args=(run.run_id,))


def _rule(run: RunRow, rule: Rule) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{VERBS[rule.kind].name}** {wording.plain(rule.text)}", width="stretch")
        steer.verb_button(run, CommandKind.LIFT, rule.command_id, help=f"remove: {rule}")


def _send_rule(run_id: str) -> None:
    if text := " ".join(str(st.session_state.rule_text).split()):
        steer.send(run_id, CommandKind(st.session_state.rule_kind), text)
    else:
        steer.say("Rule not added: it is empty.", is_error=True)
