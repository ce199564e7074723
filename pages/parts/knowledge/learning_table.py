"""What runs were told by the knowledge base, what they tried then, and what they added to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from pages.parts import index, method, run_settings, wording
from pages.parts.knowledge import evidence_table, known_tables
from pages.parts.widgets import table
from storage import codec
from storage.index import queries
from storage.index.queries import TakenRow, fetch, learning
from storage.index.queries.learning import AnswerRow, LearningRun
from storage.knowledge import choice
from storage.knowledge.browsing import EvidenceFilter
from storage.knowledge.records import Outcome
from storage.run.events import Taught

MOST_OFFERED = 6
RUN_COLUMNS = [
    table.Column("run", "Run"),
    table.Column("asked", "Answers", "right", "how often the knowledge base answered it about a kernel"),
    table.Column("attempts", "Faster", "nowrap", "of the attempts that it added, those whose kernel became faster"),
    table.Column(
        "changes",
        "Changes",
        "right",
        "states, techniques and expectations that it taught this knowledge base",
    ),
    table.Column("at", "Latest", "right"),
]
TAKEN_COLUMNS = [
    table.Column("edge", "Edge"),
    table.Column("visits", "N (walks)", "right", "walks that took it; papers call it N"),
    table.Column(
        "value",
        "Q (gains)",
        "right",
        "sum of what came back along it, which papers call Q: log speed-ups over the first kernel, a failure as -1",
    ),
    table.Column("mean", "Q/N (mean gain)", "right", "what a walk along it brought on average, as a log speed-up"),
    table.Column("prior", "Prior", "right", "log gain that the knowledge base expected before this run took it"),
]
TAUGHT_COLUMNS = [
    table.Column("what", "Change", "wide"),
    table.Column("step", "Step", "right"),
    table.Column("at", "When", "right"),
]
COLUMNS = [
    table.Column("kernel", "About"),
    table.Column("state", "State", "nowrap"),
    table.Column("offered", "Told of", help="techniques, the most promising first; those that went wrong before apart"),
    table.Column("tried", "Tried then", help="techniques of the kernels that were made from it before it asked again"),
    table.Column("at", "When", "right"),
]


def draw_runs() -> str | None:
    """Every run that asked or added something; the one opened just now, if any."""
    db = index.current()
    runs = learning.learning_runs(db, index.known())
    total = len(runs)
    if not total:
        st.info("No run has asked the knowledge base or added an attempt to it yet.", icon=":material/school:")
        return None
    offset = (known_tables.part_number(total) - 1) * known_tables.PAGE_SIZE
    shown = runs[offset : offset + known_tables.PAGE_SIZE]
    titles = queries.titles(db, [row.run_id for row in shown])
    rows = [table.Row(row.run_id, run_cells(row, titles), address(row.run_id)) for row in shown]
    opened = table.draw("Runs that asked or added something", RUN_COLUMNS, rows, key="learning_runs", is_cards=True)
    st.caption(f"{known_tables.showing(offset, len(shown), total, 'run')}, latest first")
    return opened


def address(run_id: str) -> str:
    """The deep link of what a run was told."""
    return f"learning?run={wording.in_address(run_id)}"


def run_cells(row: LearningRun, titles: Mapping[str, str]) -> dict[str, table.Cell]:
    """One run as cells."""
    title = titles.get(row.run_id, "Run of another home")
    added = table.bar(f"{row.faster:,} of {row.attempts:,}", row.faster / row.attempts) if row.attempts else None
    return {
        "run": table.link(title, row.run_id),
        "asked": wording.count(row.asked) if row.asked else table.text("did not ask", "muted"),
        "attempts": added,
        "changes": table.text(
            wording.count(row.changes),
            "",
            f"{row.elsewhere:,} {choice.where_taught(_asked(row.run_id))}" if row.elsewhere else "",
        ),
        "at": table.age(row.last_at),
    }


def _asked(run_id: str) -> str:
    """The knowledge base that a run was to ask; that of all runs where its settings cannot be read."""
    try:
        return run_settings.of(run_id).knowledge
    except (FileNotFoundError, codec.DecodeError):
        return choice.ON


def draw_run(run_id: str) -> str | None:
    """What one run was told, and what it added; the attempt or the kernel that was opened just now, if any."""
    st.markdown("## What it was told")
    asked = _draw_answers(run_id)
    _draw_taken(run_id)
    _draw_taught(run_id)
    st.markdown("## Attempts that it added")
    return (
        evidence_table.draw_attempts(EvidenceFilter(run_id=run_id), "added", nothing="This run has added no attempt.")
        or asked
    )


def _draw_taught(run_id: str) -> None:
    """What it taught, and where that was written down; nothing of a run that taught nothing."""
    taught = learning.taught(index.current(), run_id)
    if not taught:
        return
    st.markdown("## What it taught")
    rows = [table.Row(str(entry.seq), taught_cells(entry)) for entry in taught]
    table.draw("What this run taught", TAUGHT_COLUMNS, rows, key="taught", is_cards=True)
    here = {revision.revision_id for revision in index.known().revisions}
    st.caption(where_taught(_asked(run_id), is_here=taught[0].event.revision_id in here))


def taught_cells(entry: fetch.RunEntry[Taught]) -> dict[str, table.Cell]:
    """A change as cells."""
    what = entry.event.summary
    return {"what": what[:1].upper() + what[1:], "step": str(entry.event.depth), "at": table.age(entry.at)}


def where_taught(asked: str, *, is_here: bool) -> str:
    """Which base holds what was taught, and whether the run itself was told of it, by the base that it asks."""
    if is_here:
        return "Newest first; *Knowledge* has them under *changes*."
    if asked == choice.OFF:
        return "Kept in the run alone: it asks no knowledge base; no base holds these, and no prompt told of them."
    held = "" if asked == choice.ON or choice.own_name(asked) else " and counts for its own questions"
    return f"Written down {choice.where_taught(asked)}{held}, newest first."


def _draw_taken(run_id: str) -> None:
    """The edges of the graph of techniques that the run has walked along; nothing in a method without walks."""
    edges = queries.taken(index.current(), run_id)
    if not edges:
        return
    st.markdown("## Edges of the graph that it took")
    rows = [table.Row(f"{row.source} → {row.target}", taken_cells(row)) for row in edges]
    table.draw("Edges of the graph of techniques", TAKEN_COLUMNS, rows, key="taken", is_cards=True)
    st.caption("One technique after another. A walk counts for every edge that it took, and for no other.")


def taken_cells(row: TakenRow) -> dict[str, table.Cell]:
    """An edge as cells."""
    return {
        "edge": f"{row.source} → {row.target}",
        "visits": f"{row.visits:,}",
        "value": f"{row.value:+.2f}",
        "mean": f"{row.value / row.visits:+.2f}",
        "prior": f"{row.prior:+.2f}",
    }


def _draw_answers(run_id: str) -> str | None:
    db = index.current()
    total = learning.count_answers(db, run_id)
    if not total:
        st.caption("This run has not asked the knowledge base.")
        return None
    offset = (known_tables.part_number(total, "answers_part") - 1) * known_tables.PAGE_SIZE
    answers = learning.answers(db, index.known(), run_id, known_tables.PAGE_SIZE, offset)
    if not method.words(run_id).names_others:
        answers = [replace(row, others=[]) for row in answers]
    rows = [table.Row(str(row.seq), cells(row), kernel_link(row)) for row in answers]
    opened = table.draw("What this run was told", COLUMNS, rows, key="told", is_cards=True)
    tried = [(row, name) for row in answers for name in row.tried if name]
    st.caption(f"{known_tables.showing(offset, len(answers), total, 'answer')}, newest first. {share_offered(tried)}")
    chosen = next((row for row in answers if str(row.seq) == opened), None)
    return f"{run_id}\n{chosen.candidate_id}\n" if chosen else None


def share_offered(tried: Sequence[tuple[AnswerRow, str]]) -> str:
    """How many of these techniques the run had been told of, each with the answer that it was tried after."""
    by_name = sum(row.is_other(name) for row, name in tried)
    told = sum(row.is_offered(name) for row, name in tried) + by_name
    how = f", {by_name} of them by name alone, as known from other states" if by_name else ""
    return f"Of the techniques that were tried after these, {wording.share(told, len(tried))} had been offered{how}."


def kernel_link(row: AnswerRow) -> str:
    """The deep link of the kernel that was asked about."""
    return f"candidate?run={wording.in_address(row.run_id)}&candidate={wording.in_address(row.candidate_id)}"


def cells(row: AnswerRow) -> dict[str, table.Cell]:
    """One answer as cells."""
    offered = [name for name in row.offered if name not in row.negative]
    more = f" and {len(offered) - MOST_OFFERED} more" if len(offered) > MOST_OFFERED else ""
    shown = ", ".join(offered[:MOST_OFFERED]) + more
    state = table.text("not known", "muted", row.why)
    if row.state:
        limit = f"limited by {row.bottleneck}, " if row.bottleneck else ""
        state = table.text(row.state, "", f"{limit}confidence {wording.percent(row.state_confidence)}", row.why)
    return {
        "kernel": table.link(f"Kernel {row.number}" if row.number else row.candidate_id, f"step {row.step}"),
        "state": state,
        "offered": table.text(shown or "nothing", "" if shown else "muted", _beside(row), ", ".join(row.others)),
        "tried": _tried(row),
        "at": table.age(row.at),
    }


def _beside(row: AnswerRow) -> str:
    rather_not = f"rather not: {', '.join(row.negative)}" if row.negative else ""
    by_name = f"{len(row.others):,} more by name, known from other states" if row.others else ""
    return "; ".join(filter(None, (rather_not, by_name)))


def _tried(row: AnswerRow) -> table.Cell:
    """What was tried, each with how it ended; those that were offered by name alone or by nobody are told apart."""
    if not row.tried:
        return table.text("nothing yet", "muted")
    pills = [
        table.pill(name or "no technique named", _tone(outcome), "", outcome or "not over yet")
        for name, outcome in zip(row.tried, row.outcomes, strict=True)
    ]
    by_name = [name for name in row.tried if row.is_other(name)]
    unknown = [name for name in row.tried if name and not row.is_offered(name) and not row.is_other(name)]
    notes = {"offered by name alone, as known from other states": by_name, "not offered": unknown}
    note = "; ".join(f"{how}: {', '.join(names)}" for how, names in notes.items() if names)
    return table.text("", "", note, "", pills)


def _tone(outcome: str) -> wording.Tone:
    return evidence_table.OUTCOME_TONE[Outcome(outcome)] if outcome else "blue"
