"""The patch ladder: edits, one re-ask with a report, SEARCH/REPLACE, a guarded rewrite. Knows replies, not kernels."""

from __future__ import annotations

from dataclasses import dataclass

from engine import prompting
from engine.actions import Ask
from engine.calling import reply_to
from engine.context import RunContext
from engine.llm import Completion, Message
from engine.patching.edits import EditError
from engine.patching.lines import numbered
from engine.patching.proposed_patch import ProposedPatch, read_patch
from engine.record import Candidate
from storage.events import PatchTried

FORMATS = ("edits", "reask", "search_replace", "rewrite")


@dataclass(frozen=True, slots=True)
class Patched:
    """A new source, what the reply offered, and the reply itself."""

    source: str
    proposed: ProposedPatch
    reply: str

    @property
    def why(self) -> str:
        """The reason that the first edit gives; empty without one."""
        return next(iter(self.proposed.whys), "")


def apply_with_fallbacks(context: RunContext, ask: Ask) -> Patched | None:
    """Ask until a patch applies; None when every rung failed. Each try is journaled, and each reply is kept."""
    candidate, talk = context.candidate(ask.about), ask.prompt(context, ask)
    source = context.source(candidate)
    for call, rung in enumerate(FORMATS):
        completion = reply_to(context, ask, call, talk, wants_edits=rung in ("edits", "reask"))
        proposed = None
        try:
            proposed = read_reply(completion)
            patched = Patched(proposed.apply(source), proposed, completion.text)
        except EditError as error:
            _record(context, call, candidate, rung, proposed, str(error), is_applied=False)
            if call + 1 < len(FORMATS):
                talk += [
                    Message("assistant", completion.text),
                    Message("user", _reask(FORMATS[call + 1], str(error), source)),
                ]
            continue
        _record(context, call, candidate, rung, proposed, f"applied as {proposed.form}", is_applied=True)
        return patched
    return None


def read_reply(completion: Completion) -> ProposedPatch:
    """What a reply offers, in whichever form.

    Raises:
        EditError: the reply was cut off or offers nothing.
    """
    if completion.finish_reason == "length":
        raise EditError(
            "The reply was cut off at the output limit, so nothing of it was used. Send fewer, smaller edits."
        )
    return read_patch(completion.text)


def _reask(rung: str, report: str, source: str) -> str:
    return prompting.fill(f"reask_{rung}.md", report=report, listing=numbered(source))


def _record(
    context: RunContext,
    call: int,
    candidate: Candidate,
    rung: str,
    proposed: ProposedPatch | None,
    reason: str,
    *,
    is_applied: bool,
) -> None:
    if (context.step, call) in context.record.patches:
        return
    told = proposed.as_json() if proposed else ""
    context.emit(
        PatchTried(
            step=context.step,
            call=call,
            candidate_id=candidate.candidate_id,
            rung=rung,
            is_applied=is_applied,
            edit_count=proposed.count if proposed else 0,
            reason=reason,
            edits_blob=context.blobs.put(told) if told else None,
            form=f"{proposed.form} ({proposed.way})" if proposed else "",
        )
    )
