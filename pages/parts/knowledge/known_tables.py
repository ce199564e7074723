"""States and techniques with what the evidence says of them: tables, their filters, and the words for both."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

import streamlit as st

from pages.parts import access, index, wording
from pages.parts.steering import dialogs
from pages.parts.steering.dialogs import Dialog
from pages.parts.widgets import table
from storage.knowledge import browsing
from storage.knowledge.browsing import EvidenceChoices, KnownStateRow, TechniqueFilter, TechniqueRow, UndefinedRow
from storage.knowledge.records import Bottleneck, Category, Figures, Technique
from storage.results.vocabulary import KernelClass

T = TypeVar("T")
# What the beginnings of architectures' names mean.
GPUS = ("sm_",)
PROCESSORS = ("avx512", "avx2", "sse")
SINCE_AMPERE = ("sm_8", "sm_9", "sm_10", "sm_11", "sm_12")
GENERATIONS = {
    "sm_8": "Ampere and Ada", "sm_9": "Hopper", "sm_10": "Blackwell", "sm_11": "Thor", "sm_12": "Blackwell desktop",
}  # fmt: skip
PAGE_SIZE = 50
# Names of their own: an address holds only this page's.
VIEW, PART, UNTRIED, FIND, STATE, DEVICE, CATEGORY, CLASS, ORDER = (
    "show", "part", "untried_part", "find_known", "in_state", "on_device", "category", "of_class", "order",
)  # fmt: skip
BOTTLENECK_TONE: dict[Bottleneck, wording.Tone] = {
    Bottleneck.MEMORY: "blue",
    Bottleneck.COMPUTE: "orange",
    Bottleneck.LATENCY: "violet",
    Bottleneck.HYBRID: "green",
    Bottleneck.OVERHEAD: "gray",
}
CATEGORY_TONE: dict[Category, wording.Tone] = {
    Category.MEMORY: "blue",
    Category.COMPUTE: "orange",
    Category.LATENCY: "violet",
    Category.GENERAL: "gray",
}
EXPECTED = (
    "“Expected” is the gain of the next attempt: what was measured, and as two attempts what was expected before any. "
    "So with few attempts it can lie above both other figures."
)
TECHNIQUE_COLUMNS = [
    table.Column("name", "Technique"),
    table.Column("category", "Works on", help="what holds a kernel up that it helps: memory, compute or latency"),
    table.Column("attempts", "Faster", "nowrap", "attempts whose kernel became faster, of all attempts"),
    table.Column("gain", "Measured gain", "right", "over the parent kernel: geometric mean of the timed attempts"),
    table.Column("predicted", "Predicted", "right", "geometric mean of the gains that models predicted"),
    table.Column(
        "expected", "Expected", "right", "from the measured gains and from what was expected before, as two attempts"
    ),
    table.Column("confidence", "Confidence", "right", "how likely an attempt is to make the kernel faster"),
    table.Column("used", "Last attempt", "right"),
]
UNDEFINED_COLUMNS = [column for column in TECHNIQUE_COLUMNS if column.key not in ("category", "expected", "confidence")]
STATE_COLUMNS = [
    table.Column("name", "State"),
    table.Column("bottleneck", "Limited by"),
    table.Column("about", "Recognised by", "wide"),
    table.Column("techniques", "Techniques", "right", "how many are offered to a kernel in this state"),
    table.Column(
        "attempts", "Faster", "nowrap", "attempts from this state whose kernel became faster, of all attempts"
    ),
    table.Column("gain", "Measured gain", "right", "over the parent kernel: geometric mean of the timed attempts"),
    table.Column("used", "Last attempt", "right"),
]
NEGATIVE_COLUMNS = [
    table.Column("name", "Technique"),
    table.Column("state", "In state", "nowrap wide"),
    table.Column("attempts", "Faster", "nowrap"),
    table.Column("slower", "Slower", "right"),
    table.Column("failed", "Failed", "right", "wrong result, does not compile, or the patch did not apply"),
    table.Column("gain", "Measured gain", "right", "over the parent kernel: geometric mean of the timed attempts"),
    table.Column("expected", "Expected", "right"),
    table.Column("used", "Last attempt", "right"),
]


class Order(StrEnum):
    """In which order techniques stand."""

    PROMISE = "most promising"
    ATTEMPTS = "most attempts"
    GAIN = "largest measured gain"
    LATEST = "latest attempt"
    NAME = "name"


def draw_techniques() -> str | None:
    """Filters and table; what was opened just now, if anything."""
    base = index.known()
    chosen, order = _filter(browsing.choices(base), [row.state.name for row in browsing.states(base)])
    techniques = ordered(browsing.techniques(base, chosen), order)
    if not techniques:
        st.info("No technique matches all filters.", icon=":material/filter_alt_off:")
        return None
    if chosen != TechniqueFilter():
        return draw_rows(techniques, chosen)
    tried = [row for row in techniques if row.figures.attempts]
    if tried:
        st.caption(EXPECTED)
    opened = draw_rows(tried, chosen) if tried else None
    undefined = _draw_undefined(browsing.undefined(base))
    return opened or undefined or _draw_untried([row for row in techniques if not row.figures.attempts])


def _draw_untried(untried: Sequence[TechniqueRow]) -> str | None:
    """What is only known by name, folded away: evidence comes first."""
    if not untried:
        return None
    title = f"Not tried by any run yet: {wording.counted(len(untried), 'technique')}"
    with st.expander(title, icon=":material/library_books:", key="untried", on_change="rerun") as fold:
        return draw_rows(untried, TechniqueFilter(), UNTRIED) if fold.open else None


def _draw_undefined(undefined: Sequence[UndefinedRow]) -> str | None:
    """Techniques that only models have named, those with most attempts; the one opened just now, if any."""
    if not undefined:
        return None
    st.markdown("## Named by models, not defined yet")
    rows = [table.Row(row.name, undefined_cells(row), technique_link(row.name)) for row in undefined[:PAGE_SIZE]]
    opened = table.draw("Techniques that only models have named", UNDEFINED_COLUMNS, rows, key="undefined",
                        is_cards=True)  # fmt: skip
    st.caption(f"{showing(0, len(rows), len(undefined), 'name')}, most attempts first. Open one to define it.")
    return opened


def undefined_cells(row: UndefinedRow) -> dict[str, table.Cell]:
    """One such name as cells."""
    return figure_cells(row.figures) | {"name": table.link(row.name)}


def draw_rows(techniques: Sequence[TechniqueRow], chosen: TechniqueFilter, part: str = PART) -> str | None:
    """A page of these techniques; what was opened just now, if anything. `part` is the key of which page it is."""
    shown, offset = a_part(techniques, part)
    rows = [table.Row(row.technique.name, technique_cells(row), technique_link(row.technique.name)) for row in shown]
    key = "techniques:untried" if part == UNTRIED else "techniques"
    opened = table.draw("Techniques", TECHNIQUE_COLUMNS, rows, key=key, is_cards=True)
    where = f" in {chosen.state}" if chosen.state else ""
    where += f" on {chosen.device}" if chosen.device else ""
    st.caption(
        f"{showing(offset, len(shown), len(techniques), 'technique')}; figures of all attempts{wording.plain(where)}"
    )
    return opened


def _filter(choices: EvidenceChoices, states: Sequence[str]) -> tuple[TechniqueFilter, Order]:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="known_filter"):
        text = st.text_input(
            "Find", key=FIND, type="search", placeholder="name or sentence", width=170, bind="query-params",
            on_change=first_part,
        )  # fmt: skip
        state = choice("State", STATE, states, 250)
        device = choice("Device", DEVICE, choices.devices, 170)
        category = choice("Works on", CATEGORY, list(Category), 120)
        kernel_class = choice("Kernel class", CLASS, list(KernelClass), 130)
        order = st.selectbox(
            "Order", list(Order), key=ORDER, width=180, bind="query-params", on_change=first_part
        )  # fmt: skip
    chosen = TechniqueFilter(category, kernel_class, "", device, state, text or "")
    return chosen, Order(order or Order.PROMISE)


def choice(label: str, key: str, options: Sequence[str], width: int) -> str:
    """One of the options, or any. Trap: the address holds the name on screen, so it must not change with the data."""
    return str(
        st.selectbox(
            label, ["", *map(str, options)], format_func=lambda option: option or "any", key=key, width=width,
            bind="query-params", on_change=first_part,
        ) or ""
    )  # fmt: skip


def first_part() -> None:
    """Another choice begins on its first page."""
    st.session_state[PART] = 1


def a_part(rows: Sequence[T], key: str = PART) -> tuple[Sequence[T], int]:
    """The page of it that was asked for, and how many come before."""
    number = part_number(len(rows), key)
    return rows[(number - 1) * PAGE_SIZE : number * PAGE_SIZE], (number - 1) * PAGE_SIZE


def part_number(total: int, key: str = PART) -> int:
    """The page asked for, if there is more than one."""
    parts = -(-total // PAGE_SIZE)
    return min(int(st.pagination(parts, key=key, bind="query-params")), parts) if parts > 1 else 1


def showing(offset: int, count: int, total: int, noun: str) -> str:
    """Which part of what fits is on screen."""
    return f"Showing {offset + 1:,}–{offset + count:,} of {wording.counted(total, noun)}"


def ordered(rows: Sequence[TechniqueRow], order: Order) -> list[TechniqueRow]:
    """In this order; disabled ones last."""
    keys = {
        Order.PROMISE: lambda row: 0.0,
        Order.ATTEMPTS: lambda row: -row.figures.attempts,
        Order.GAIN: lambda row: -(row.figures.mean_gain or 0.0),
        Order.LATEST: lambda row: -(row.figures.last_used or 0.0),
        Order.NAME: lambda row: row.technique.name.casefold(),
    }
    return sorted(sorted(rows, key=keys[order]), key=lambda row: row.technique.is_disabled)


def technique_link(name: str) -> str:
    """The deep link of its story."""
    return f"technique?technique={wording.in_address(name)}"


def technique_cells(row: TechniqueRow) -> dict[str, table.Cell]:
    """One technique as cells."""
    technique, seen = row.technique, row.figures
    note = limits_of(technique) if not row.inherited_from else f"as in {row.inherited_from}"
    return {
        "name": table.link(technique.name, note, badges(technique, seen)),
        "category": table.pill(technique.category, CATEGORY_TONE[technique.category]),
    } | figure_cells(seen)


def figure_cells(seen: Figures) -> dict[str, table.Cell]:
    """What the evidence says, as cells."""
    return {
        "attempts": attempts_cell(seen),
        "gain": gain_cell(
            seen.mean_gain,
            seen.faster > 0,
            seen.slower > 0,
            f"median {wording.speedup(seen.median_gain)}" if seen.median_gain else "",
        ),
        "predicted": wording.speedup(seen.predicted),
        "expected": wording.speedup(seen.expected_gain),
        "confidence": wording.percent(seen.confidence),
        "slower": wording.count(seen.slower),
        "failed": wording.count(seen.failed),
        "used": table.age(seen.last_used),
    }


def attempts_cell(seen: Figures) -> table.Cell:
    """How many attempts became faster."""
    if not seen.attempts:
        return table.text("not tried", "muted")
    return table.bar(f"{seen.faster:,} of {seen.attempts:,}", seen.success or 0.0)


def gain_cell(gain: float | None, has_faster: bool, has_slower: bool, note: str = "") -> table.Cell:
    """A measured gain; green above 1, red below, grey where no attempt of it was measurably faster, or slower."""
    if gain is None:
        return table.text(wording.NONE, "muted")
    tone = "green" if gain >= 1.005 and has_faster else "red" if gain < 0.995 and has_slower else "muted"
    return table.text(wording.speedup(gain), tone, note)


def badges(technique: Technique, seen: Figures) -> list[table.Cell]:
    """What sets a technique apart."""
    pills = off_badge(technique)
    if seen.is_negative:
        pills.append(table.pill("mostly fails", "red", "lost", "more than half of its attempts failed or were slower"))
    if technique.parts:
        pills.append(table.pill(f"made of {len(technique.parts)}", "gray", "", " → ".join(technique.parts)))
    return pills


def off_badge(technique: Technique) -> list[table.Cell]:
    """That it is turned off, if it is."""
    return [table.pill("off", "gray", "stopped", "not offered to any run")] if technique.is_disabled else []


def limits_of(technique: Technique) -> str:
    """To what it is limited; empty where it applies everywhere."""
    return " · ".join(
        ", ".join(names) for names in (technique.classes, technique.languages, devices_of(technique)) if names
    )


def devices_of(technique: Technique) -> list[str]:
    """Architectures in words; those without a word by name."""
    groups = {GPUS: ["GPUs"], PROCESSORS: ["processors"], SINCE_AMPERE: ["GPUs from Ampere on"]}
    return groups.get(technique.architectures) or [GENERATIONS.get(name, name) for name in technique.architectures]


def draw_states() -> str | None:
    """Every state; what was opened just now, if anything."""
    states = browsing.states(index.known())
    rows = [table.Row(row.state.name, state_cells(row), state_link(row.state.name)) for row in states]
    if access.may_steer():
        st.button(
            "Add a state", icon=":material/add:", key="add_state", on_click=dialogs.ask, args=(Dialog.KERNEL_STATE,)
        )
    opened = table.draw("States", STATE_COLUMNS, rows, key="states", is_cards=True)
    st.caption("A state opens the techniques that are known for it. A discovered one was named in a run.")
    return opened


def state_link(name: str) -> str:
    """The deep link of a state."""
    return f"kernel_state?state={wording.in_address(name)}"


def state_cells(row: KnownStateRow) -> dict[str, table.Cell]:
    """One state as cells."""
    state = row.state
    pills: list[table.Cell] = []
    if state.is_disabled:
        pills.append(table.pill("off", "gray", "stopped", "no run is told of it"))
    if state.is_discovered:
        pills.append(table.pill("discovered", "violet", "", "named in a run"))
    note = f"like {state.inherits}" if state.inherits else ""
    return {
        "name": table.link(state.name, note, pills),
        "bottleneck": table.pill(state.bottleneck, BOTTLENECK_TONE[state.bottleneck]),
        "about": table.text(state.about, "", ", ".join(state.secondary)),
        "techniques": wording.count(row.techniques),
        "attempts": attempts_cell(row.figures),
        "gain": gain_cell(row.figures.mean_gain, row.figures.faster > 0, row.figures.slower > 0),
        "used": table.age(row.figures.last_used),
    }


def draw_negative() -> str | None:
    """What mostly failed, state by state; what was opened just now, if anything."""
    pairs = browsing.negative(index.known())
    if not pairs:
        st.info(
            "Nothing here: no defined technique was tried at least twice in one state and mostly failed or made "
            "kernels slower.",
            icon=":material/thumb_up:",
        )
        return None
    shown, offset = a_part(pairs)
    rows = [
        table.Row(f"{row.technique.name}\n{row.state}", negative_cells(row), technique_link(row.technique.name))
        for row in shown
    ]
    opened = table.draw("Techniques that did not help", NEGATIVE_COLUMNS, rows, key="negative", is_cards=True)
    st.caption(
        f"{showing(offset, len(shown), len(pairs), 'pair')}. Tried at least twice, and more than half of the attempts "
        "failed or made the kernel slower. A run that consults the knowledge base is told of these first."
    )
    return opened.split("\n")[0] if opened else None


def negative_cells(row: TechniqueRow) -> dict[str, table.Cell]:
    """One technique in one state as cells."""
    return {
        "name": table.link(row.technique.name, row.technique.hurts, off_badge(row.technique)),
        "state": row.state or table.text("state not known", "muted"),
    } | figure_cells(row.figures)
