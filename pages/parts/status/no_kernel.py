"""A run that ended because no reply of its model held a kernel: whether it is one, and what it is told by."""

from __future__ import annotations

from pages.parts import index, texts, wording
from storage.index import queries
from storage.index.queries import ModelCallRow, RunRow
from storage.run.settings import RunState

QUOTED = 120
READ = 12
NEEDS = "A reply brings a kernel as a Python file in a code block, with a class ModelNew."


def gave_none(run: RunRow, state: RunState) -> bool:
    """Whether the run ended because no reply of the model held a kernel: to resume it would end it at once."""
    if state is not RunState.FAILED or run.attempts or not queries.count_unusable_replies(index.current(), run.run_id):
        return False
    return not getattr(queries.states(index.current(), run.run_id)[-1].event, "error_blob", None)


def failure(run: RunRow) -> str:
    """That the model gave no kernel, and what it said instead, as Markdown."""
    calls = queries.unusable_replies(index.current(), run.run_id, READ)
    said = [" ".join(reply(run, call).split()) for call in calls]
    quoted = f"“{wording.cut(said[-1], QUOTED)}”" if said[-1] else "nothing"
    every = len(said) > 1 and len(set(said)) == 1
    told = f"it replied {quoted} each time" if every else f"last it replied {quoted}"
    told = f"it replied {quoted}" if len(said) == 1 else told
    calls_made = wording.counted(run.model_calls, "call")
    return f"**The model gave no kernel in {calls_made}:** {wording.plain(f'{told}. {NEEDS}')}"


def reply(run: RunRow, call: ModelCallRow) -> str:
    """What a call was answered with."""
    return texts.source(run.run_id, call.reply_blob)
