"""A kernel's source: its diff to its parent, or to any other kernel of the run, whose pair stands in the address; and
all of it, highlighted, with a download."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from pages.parts import index, method, texts, wording
from pages.parts.kernel import errors_tab, hot_lines, repair_tab, sweep_table
from pages.parts.widgets import code, diff
from storage.index.queries import AttemptRow, CandidateRow

MOST_CHOICES = 400


def draw(run_id: str, candidate: CandidateRow) -> None:
    """Choose the other side, then show the diff."""
    others = near(candidate, index.attempts(run_id), st.query_params.get("against", ""))
    others.pop(candidate.candidate_id, None)
    if not others:
        st.caption("The only kernel so far: nothing to compare with. See the Source tab.")
        sweep_table.draw(run_id, candidate.candidate_id)
        return
    other = others[_chosen(candidate, others)]
    is_swapped = st.query_params.get("swap") == "1"
    old, new = texts.read(run_id, other.source_blob), texts.read(run_id, candidate.source_blob)
    step = method.words(run_id).step
    sides = [(label(other, candidate, step), old), (f"kernel {candidate.number}", new)]
    (old_name, old), (new_name, new) = sides[::-1] if is_swapped else sides
    heat = [hot_lines.heat(run_id, side.candidate_id, side.latency_ms) for side in (other, candidate)]
    left, right = heat[::-1] if is_swapped else heat
    without = [name for name, side in ((old_name, left), (new_name, right)) if not side and any(heat)]
    lacks = f" {wording.capital(without[0].split(' (')[0])} has no such profile." if without else ""
    margin = f"{hot_lines.HEAT}{lacks}" if any(heat) else ""
    _bar(candidate, others, other, step, is_swapped, _files(run_id, old_name, new_name, old, new), margin)
    if len(others) < len(index.attempts(run_id)) - 1:
        st.caption(f"Listed: the {len(others):,} nearest of {len(index.attempts(run_id)):,} kernels.")
    review = repair_tab.led_here(index.current(), run_id, candidate.candidate_id)
    for text in (old, new):
        if text.is_gone:
            texts.say_gone(text, "source")
            return
    key = f"diff:{candidate.candidate_id}:{other.candidate_id}:{is_swapped}"
    counts = texts.counts(*((candidate, other) if is_swapped else (other, candidate)))
    diff.draw(old.text, new.text, (old_name, new_name), key=key, counts=counts, heat=(left, right))
    if review and other.candidate_id == candidate.parent_id:
        repair_tab.draw_review(run_id, candidate, review)
    sweep_table.draw(run_id, candidate.candidate_id)


def near(candidate: CandidateRow, attempts: Sequence[AttemptRow], asked: str) -> dict[str, AttemptRow]:
    """The kernels to choose from: of a long run those nearest to this one, its relations, the best and the one asked
    for."""
    if len(attempts) <= MOST_CHOICES:
        return {a.candidate_id: a for a in attempts}
    related = {candidate.parent_id, candidate.base_id, asked}
    return {
        a.candidate_id: a
        for a in attempts
        if abs(a.number - candidate.number) <= MOST_CHOICES // 2 or a.is_best or a.candidate_id in related
    }


def shortcuts(candidate: CandidateRow, others: Mapping[str, AttemptRow]) -> dict[str, str]:
    """The kernels worth a button of their own: parent, base and best, each once."""
    best = next((a.candidate_id for a in others.values() if a.is_best), "")
    related = {"parent": candidate.parent_id or "", "base": candidate.base_id or "", "best": best}
    named: dict[str, str] = {}
    for name, other in related.items():
        if other in others and other not in named.values():
            named[name] = other
    return named


def _chosen(candidate: CandidateRow, others: Mapping[str, AttemptRow]) -> str:
    """What the address says; else the parent; else the first."""
    asked = st.query_params.get("against", "")
    if asked in others:
        return asked
    parent = candidate.parent_id or ""
    return parent if parent in others else next(iter(others))


def _bar(
    candidate: CandidateRow,
    others: Mapping[str, AttemptRow],
    other: AttemptRow,
    step: str,
    is_swapped: bool,
    files: Sequence[tuple[str, Callable[[], str], str]],
    margin: str,
) -> None:
    """The other side, buttons for what is chosen most, and what stands in the margin, if anything."""
    key = _choice(candidate.candidate_id)
    if st.session_state.get(key) != other.candidate_id:  # the address says so, or nothing was chosen yet
        st.session_state[key] = other.candidate_id
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Compare with", width="content")
        st.selectbox(
            "Compare with", list(others), key=key, format_func=lambda name: label(others[name], candidate, step),
            width=440, on_change=_choose_from, args=(key,), label_visibility="collapsed",
        )  # fmt: skip
        for name, target in shortcuts(candidate, others).items():
            st.button(
                name.capitalize(), key=f"against:{name}", on_click=choose, args=(target,), width="content",
                disabled=target == other.candidate_id, help=f"compare with {label(others[target], candidate, step)}",
            )  # fmt: skip
        st.button(
            "Swap sides", key="swap_sides", icon=":material/swap_horiz:", on_click=_swap, args=(not is_swapped,),
            width="content",
        )  # fmt: skip
        with st.popover("Download", icon=":material/download:", width="content"):
            for name, make, file in files:
                st.download_button(
                    name, make, file, mime="text/plain", icon=":material/download:", on_click="ignore",
                    key=f"download:{file}", width="stretch",
                )  # fmt: skip
        if margin:
            st.caption("In the margin: profiler samples", help=margin, width="content")


def _files(
    run_id: str, old_name: str, new_name: str, old: texts.Text, new: texts.Text
) -> list[tuple[str, Callable[[], str], str]]:
    """What can be downloaded: made when somebody asks for it."""
    names = [name.split(" · ")[0] for name in (old_name, new_name)]
    stems = ["-".join(name.split(" ")[:2]) for name in names]
    patch = f"{run_id}-{'-to-'.join(stems)}.diff"
    return [
        ("Diff", lambda: diff.unified(old.text, new.text, (names[0], names[1])), patch),
        (names[0].capitalize(), lambda: old.text, f"{run_id}-{stems[0]}.py"),
        (names[1].capitalize(), lambda: new.text, f"{run_id}-{stems[1]}.py"),
    ]  # fmt: skip


def choose(other_id: str) -> None:
    """Put the other side into the address."""
    st.query_params["against"] = other_id


def _choose_from(key: str) -> None:
    # Trap: what a kernel's page that is being left still has to say is heard with the next one's address.
    if key == _choice(st.query_params.get("candidate", "")):
        choose(str(st.session_state[key]))


def _choice(candidate_id: str) -> str:
    """The key of what the kernel is compared with."""
    return f"compare:{candidate_id}"


def _swap(is_swapped: bool) -> None:
    if is_swapped:
        st.query_params["swap"] = "1"
    else:
        st.query_params.pop("swap", None)


def label(a: AttemptRow, candidate: CandidateRow, step: str) -> str:
    """One line for one kernel."""
    relation = (
        " (parent)"
        if a.candidate_id == candidate.parent_id
        else " (base)"
        if a.candidate_id == candidate.base_id
        else ""
    )
    best = " (best)" if a.is_best else ""
    outcome = wording.ratio(a) if a.speedup else wording.VERDICT_NAME[a.verdict] if a.verdict else "not judged"
    return f"kernel {a.number}{relation}{best} · {step} {a.depth} · {outcome}"


MOST_LINES = 4_000


def draw_source(run_id: str, candidate: CandidateRow) -> None:
    """Source with line numbers, and what the compiler noted of them."""
    source = texts.read(run_id, candidate.source_blob)
    if source.is_gone:
        texts.say_gone(source, "source")
        return
    text = source.text
    count = len(text.splitlines())
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Download", text, file_name=f"{run_id}-{candidate.candidate_id}.py", mime="text/x-python",
            icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.caption(f"{count:,} lines · a Python module that defines `ModelNew`")
    errors_tab.draw_notes(run_id, candidate)
    if count > MOST_LINES:
        st.info(f"Showing {MOST_LINES:,} of {count:,} lines; download it to see all.", icon=":material/content_cut:")
    lines = code.lines("\n".join(text.split("\n", MOST_LINES)[:MOST_LINES]))
    heat = hot_lines.heat(run_id, candidate.candidate_id, candidate.latency_ms)
    if heat:
        st.caption(hot_lines.HEAT)
    code.draw("Kernel source", lines, key=f"source:{candidate.candidate_id}", heat=heat)
