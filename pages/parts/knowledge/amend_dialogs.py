"""The dialogs in which a person changes what is known: a technique, a state, an expectation, a failure rule, on and
off, a revert. Each asks who and why, and becomes a revision."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from engine.evaluator.languages import LANGUAGES
from pages.parts import access, number_field, wording
from pages.parts.knowledge import amendments, exchange_panel
from pages.parts.steering import dialogs, steer
from pages.parts.steering.dialogs import Dialog
from storage.knowledge import changes, files, seed
from storage.knowledge.base import Base
from storage.knowledge.failures import WORDS_LENGTH
from storage.knowledge.records import Bottleneck, Category, Prior, Revision, RuleWords, State, Technique
from storage.results.vocabulary import KernelClass

NEW_GAIN, NEW_CONFIDENCE = 1.2, 0.5
PERSON = "person_of_changes"


def draw() -> None:
    """Draw the one that is open, if any; for a page itself, after its live part."""
    asked = dialogs.opened()
    if asked is None or not access.may_steer():
        return
    match asked.dialog:
        case Dialog.TECHNIQUE:
            write_technique(asked.subject)
        case Dialog.KERNEL_STATE:
            write_state(asked.subject)
        case Dialog.EXPECTATION:
            set_expectation(asked.subject)
        case Dialog.RULE:
            word_rule(asked.subject)
        case Dialog.SWITCH:
            switch(*asked.subject.split(":", 1))
        case Dialog.REVERT:
            revert(asked.subject)
        case Dialog.IMPORT:
            exchange_panel.bring_in()


def _base() -> Base:
    base: Base = dialogs.hold("base", files.load)
    return base


@st.dialog("Technique", width="large", icon=":material/edit:", on_dismiss=dialogs.close)
def write_technique(name: str) -> None:
    """A new technique, or another wording of one that there is."""
    base = _base()
    existing = base.techniques.get(name)
    old = existing or Technique("", Category.GENERAL, "")
    title = name if existing else st.text_input("Name", name, key="technique_name", max_chars=amendments.NAME_LENGTH)
    if existing:
        st.markdown(f"**{wording.plain(name)}**")
    categories = list(Category)
    category = st.selectbox("Works on", categories, index=categories.index(old.category), key="technique_category")
    about = st.text_area("What it does", old.about, key="technique_about", height=68)
    helps = st.text_area("When it helps", old.helps, key="technique_helps", height=68)
    hurts = st.text_area("When it hurts", old.hurts, key="technique_hurts", height=68)
    left, right = st.columns(2)
    classes = left.multiselect(
        "Kernel classes", list(map(str, KernelClass)), old.classes, key="technique_classes", placeholder="all"
    )
    languages = right.multiselect(
        "Languages", list(dict.fromkeys([*LANGUAGES, *old.languages])), old.languages, key="technique_languages",
        placeholder="all",
    )  # fmt: skip
    architectures = left.text_input(
        "Architectures", ", ".join(old.architectures), key="technique_architectures", placeholder="all",
        help="names as compilers give them, or how they begin, with commas between: sm_ is every NVIDIA GPU, sm_9 is "
        "Hopper, avx512, avx2 and sse are processors",
    )  # fmt: skip
    others = sorted(other for other in base.techniques if other != name)
    parts = right.multiselect(
        "Joins, in this order", others, [part for part in old.parts if part in others], key="technique_parts",
        max_selections=amendments.MOST_PARTS, placeholder="a technique of its own",
    )  # fmt: skip
    technique = replace(
        old, name=" ".join(str(title).split()), category=Category(category), about=about.strip(), helps=helps.strip(),
        hurts=hurts.strip(), classes=tuple(classes), languages=tuple(languages),
        architectures=amendments.words_of(architectures), parts=tuple(parts),
    )  # fmt: skip
    wrong: list[str] = []
    priors = () if existing else _expected_of_new(base, technique.name, wrong)
    by, why = _signature()
    if not dialogs.buttons("technique", "Save" if existing else "Add", ":material/save:", may=not wrong):
        return
    problem = "" if existing else amendments.problem_of_name(technique.name, base.techniques)
    problem = problem or amendments.problem_of_technique(technique, base)
    _append(by, why, changes.change(why, by, techniques=[technique], priors=priors), problem)


def _expected_of_new(base: Base, name: str, wrong: list[str]) -> tuple[Prior, ...]:
    """Where a new technique is to be offered, and what is expected of it there."""
    states = st.multiselect(
        "Offer it in these states", sorted(base.states), key="technique_states",
        help="a run is offered a technique in the states in which something is expected of it or was measured",
    )  # fmt: skip
    gain, confidence = _expected(NEW_GAIN, NEW_CONFIDENCE, "new", wrong)
    return tuple(Prior(state, name, gain, confidence) for state in states)


@st.dialog("State", width="large", icon=":material/edit:", on_dismiss=dialogs.close)
def write_state(name: str) -> None:
    """A new state, or another wording of one that there is."""
    base = _base()
    existing = base.states.get(name)
    old = existing or State("", Bottleneck.MEMORY, "")
    title = name if existing else st.text_input("Name", key="state_name", max_chars=amendments.NAME_LENGTH)
    if existing:
        st.markdown(f"**{wording.plain(name)}**")
    bottlenecks = list(Bottleneck)
    bottleneck = st.selectbox("Limited by", bottlenecks, index=bottlenecks.index(old.bottleneck), key="state_limit")
    about = st.text_area("Recognised by", old.about, key="state_about", height=68)
    secondary = st.text_input("Often with", ", ".join(old.secondary), key="state_secondary", help="commas between them")
    others = ["", *sorted(other for other in base.states if other != name)]
    inherits = st.selectbox(
        "Takes over the techniques of", others, index=others.index(old.inherits) if old.inherits in others else 0,
        format_func=lambda state: state or "no other state", key="state_inherits",
        help="at 0.8 of their expected gain and confidence",
    )  # fmt: skip
    state = replace(
        old, name=" ".join(str(title).split()), bottleneck=Bottleneck(bottleneck), about=about.strip(),
        secondary=amendments.words_of(secondary), inherits=inherits or "",
    )  # fmt: skip
    by, why = _signature()
    if not dialogs.buttons("state", "Save" if existing else "Add", ":material/save:"):
        return
    problem = "" if existing else amendments.problem_of_name(state.name, base.states)
    problem = problem or ("" if state.about else "Say how it is recognised.")
    _append(by, why, changes.change(why, by, states=[state]), problem)


@st.dialog("Expectation", width="large", icon=":material/query_stats:", on_dismiss=dialogs.close)
def set_expectation(technique: str) -> None:
    """What is expected of a technique in a state before anything is measured there."""
    base = _base()
    priors = {state: prior for (state, name), prior in base.known.priors.items() if name == technique}
    states = sorted(base.states, key=lambda state: (state not in priors, state))
    st.markdown(f"**{wording.plain(technique)}**")
    state = st.selectbox("In state", states, key="expectation_state")
    old = priors.get(state, Prior(state, technique, NEW_GAIN, NEW_CONFIDENCE))
    seen = base.figures(technique, state)
    wrong: list[str] = []
    gain, confidence = _expected(old.gain, old.confidence, state, wrong)
    tried = f"{wording.counted(seen.attempts, 'attempt')} in this state, {seen.faster} faster"
    tried += f", mean gain {wording.speedup(seen.mean_gain)}" if seen.mean_gain else ""
    tried += ". What you expect counts as two attempts." if seen.attempts else ""
    st.caption(tried if seen.attempts else "No attempt in this state yet.")
    by, why = _signature()
    if dialogs.buttons("expectation", "Save", ":material/save:", may=not wrong):
        _append(by, why, changes.change(why, by, priors=[Prior(state, technique, gain, confidence)]))


def _expected(gain: float, confidence: float, key: str, wrong: list[str]) -> tuple[float, float]:
    left, right = st.columns(2)
    expected = number_field.draw(
        left, "Expected gain", f"expected_gain:{key}", gain, 0.01, wrong, 1000.0, step=0.05, format="%.2f",
        help="a factor over the parent kernel: 1.30 is 30 % faster",
    )  # fmt: skip
    chance = number_field.draw(
        right, "Confidence in %", f"expected_confidence:{key}", round(100 * confidence), 0, wrong, 100, step=5,
        help="how likely an attempt makes the kernel faster",
    )  # fmt: skip
    return float(expected or gain), (chance or 0) / 100


@st.dialog("Turn on or off", icon=":material/toggle_off:", on_dismiss=dialogs.close)
def switch(kind: str, name: str) -> None:
    """Nothing is deleted; runs are not offered what is off."""
    base = _base()
    entry: State | Technique | RuleWords
    if kind == "rule":
        entry, title = changes.words_of(base, name) or RuleWords(name), _failure(base, name)
    else:
        entry, title = (base.states[name] if kind == "state" else base.techniques[name]), name
    verb = "Turn on" if entry.is_disabled else "Turn off"
    about = "the failure rule" if kind == "rule" else f"the {kind}"
    st.markdown(f"{verb} {about} **{wording.plain(title)}**?")
    st.caption(
        "Runs are offered it again." if entry.is_disabled else "Its evidence stays. No run is offered it any more."
    )
    by, why = _signature()
    icon = ":material/toggle_on:" if entry.is_disabled else ":material/toggle_off:"
    if dialogs.buttons("switch", verb, icon):
        _append(by, why, changes.put(replace(entry, is_disabled=not entry.is_disabled), why, by))


@st.dialog("Failure rule", width="large", icon=":material/rule:", on_dismiss=dialogs.close)
def word_rule(rule_id: str) -> None:
    """Other words for what mends a failure."""
    base = _base()
    rule, rule_words = changes.rule_of(base, rule_id), changes.words_of(base, rule_id)
    if rule is None or rule_words is None:
        st.warning("This failure is no longer known here.", icon=":material/search_off:")
        return
    st.markdown(f"**{wording.plain(rule.signature)}**")
    words = st.text_area(
        "What writers are told", rule.words, key="rule_words", height=68, max_chars=WORDS_LENGTH,
        help="a short instruction, such as: pass B as (N, K) to cute::gemm",
    )  # fmt: skip
    st.caption("In other words the rule begins anew: what was told before no longer counts for or against it.")
    by, why = _signature()
    if dialogs.buttons("rule", "Save", ":material/save:"):
        new_words = " ".join(str(words).split())
        _append(
            by,
            why,
            changes.put(replace(rule_words, words=new_words), why, by),
            "" if new_words else "Say what mends it.",
        )


def _failure(base: Base, rule_id: str) -> str:
    rule = changes.rule_of(base, rule_id)
    return rule.signature if rule else rule_id


@st.dialog("Revert a change", icon=":material/undo:", on_dismiss=dialogs.close)
def revert(revision_id: str) -> None:
    """It no longer counts from here on; the revert is a change of its own."""
    base = _base()
    revision = next((revision for revision in base.revisions if revision.revision_id == revision_id), None)
    if revision is None:
        st.warning("This change is no longer there.", icon=":material/search_off:")
        return
    who = "Tilewright" if revision.by == seed.SEED else revision.by
    st.markdown(f"Revert the change of **{wording.plain(who)}**: {wording.plain(revision.why)}")
    if revision.reverts:
        st.caption("What it reverted counts again.")
    elif revision.revision_id == seed.SEED:
        st.caption("All shipped states, techniques and expectations no longer count. Evidence stays.")
    else:
        st.caption("What it put in place no longer counts; what stood there before does. Evidence stays.")
    by, why = _signature()
    if dialogs.buttons("revert", "Revert", ":material/undo:"):
        _append(by, why, changes.change(why, by, reverts=revision_id))


def _signature() -> tuple[str, str]:
    """Who changes it, and why."""
    person = access.person()
    if not person:
        person = st.text_input("Your name", st.session_state.get(PERSON) or changes.change("").by, key="change_by")
    why = st.text_input("Reason", key="change_why", max_chars=300, placeholder="kept with the change")
    return person.strip(), why.strip()


def _append(by: str, why: str, change: Revision, problem: str = "") -> None:
    """Write it and leave, or say what is missing and stay."""
    unsigned = "Your name is missing." if not by else "A reason is missing." if not why else ""
    if problem := problem or unsigned or amendments.append(change):
        st.error(wording.sentence(problem), icon=":material/error:")
        return
    st.session_state[PERSON] = change.by
    steer.say("Saved: the change is in the list of changes and can be reverted.")
    dialogs.leave()
