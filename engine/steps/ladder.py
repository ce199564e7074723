"""The patch ladder: edits, one re-ask with a report, SEARCH/REPLACE, a guarded rewrite. Knows replies, not kernels."""

from __future__ import annotations

from dataclasses import dataclass

from engine import prompting
from engine.bench import Bench
from engine.history import Attempt
from engine.llm import Completion, Message
from engine.patching.edits import EditError, apply_edits, numbered
from engine.patching.reply import find_edits, find_python, find_search_replace
from engine.patching.rewrite import apply_search_replace, guard_rewrite
from storage import codec
from storage.events import PatchTried
from storage.records import Role

RUNGS = ("edits", "reask", "search_replace", "rewrite")


@dataclass(frozen=True, slots=True)
class Patched:
    """A new source, how it was read from the reply, and the reply itself."""

    source: str
    form: str
    edit_count: int
    edits_json: str
    whys: tuple[str, ...]
    reply: str


def climb(bench: Bench, role: Role, attempt: Attempt, messages: list[Message], *, exposed: bool) -> Patched | None:
    """Ask until a patch applies; None when every rung failed. Each try is journaled, and each reply is kept."""
    source, talk = bench.source(attempt), list(messages)
    for call, rung in enumerate(RUNGS):
        completion = bench.ask(call, role, talk, attempt.candidate_id, exposed=exposed)
        try:
            patched = read_patch(source, completion)
        except EditError as error:
            _record(bench, call, attempt, rung, None, str(error))
            if call + 1 < len(RUNGS):
                talk += [
                    Message("assistant", completion.text),
                    Message("user", _reask(RUNGS[call + 1], str(error), source)),
                ]
            continue
        _record(bench, call, attempt, rung, patched, f"applied as {patched.form}")
        return patched
    return None


def read_patch(source: str, completion: Completion) -> Patched:
    """The new source that a reply describes, in whichever form it offers.

    Raises:
        EditError: the reply was cut off, offers nothing, or what it offers does not apply.
    """
    text = completion.text
    if completion.finish_reason == "length":
        raise EditError(
            "The reply was cut off at the output limit, so nothing of it was used. Send fewer, smaller edits."
        )
    if pairs := find_search_replace(text):
        return Patched(apply_search_replace(source, pairs), "SEARCH/REPLACE", len(pairs), "", (), text)
    try:
        edits = find_edits(text)
    except EditError:
        if (rewritten := find_python(text)) is None:
            raise
        return Patched(guard_rewrite(source, rewritten), "rewrite", 1, "", (), text)
    whys = tuple(edit.why for edit in edits if edit.why)
    return Patched(apply_edits(source, edits), "edits", len(edits), codec.dumps(edits), whys, text)


def _reask(rung: str, report: str, source: str) -> str:
    return prompting.fill(f"reask_{rung}.md", report=report, listing=numbered(source))


def _record(bench: Bench, call: int, attempt: Attempt, rung: str, patched: Patched | None, reason: str) -> None:
    if (bench.step, call) in bench.history.patches:
        return
    edits = bench.blobs.put(patched.edits_json) if patched and patched.edits_json else None
    count = patched.edit_count if patched else 0
    bench.emit(PatchTried(bench.step, call, attempt.candidate_id, rung, patched is not None, count, reason, edits))
