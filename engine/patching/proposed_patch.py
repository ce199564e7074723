"""What a raw reply offers, in whichever form, and putting it into a source: the way from a reply to a new source."""

from __future__ import annotations

import json
from dataclasses import dataclass

from engine.patching.edit_blocks import MISSING, find_edit_json
from engine.patching.edits import Edit, EditError, apply_edits
from engine.patching.reply import Swap, answer_part, find_python, find_search_replace
from engine.patching.rewrite import apply_search_replace, guard_rewrite
from storage import codec


@dataclass(frozen=True, slots=True)
class ProposedPatch:
    """One of: line edits, SEARCH/REPLACE blocks, a whole file. `way` says where in the reply it was found."""

    form: str
    way: str
    edits: tuple[Edit, ...] = ()
    swaps: tuple[Swap, ...] = ()
    file: str = ""

    @property
    def count(self) -> int:
        """How many edits it holds; a whole file counts as one."""
        return len(self.edits) or len(self.swaps) or 1

    @property
    def whys(self) -> tuple[str, ...]:
        """The reasons given with the edits."""
        return tuple(edit.why for edit in self.edits if edit.why)

    def as_json(self) -> str:
        """The edits as text for people; empty for a whole file, which is the reply itself."""
        if self.edits:
            return codec.dumps(list(self.edits))
        swaps = [{"search": "\n".join(s.search), "replacement": "\n".join(s.replacement)} for s in self.swaps]
        return json.dumps(swaps) if swaps else ""

    def apply(self, source: str) -> str:
        """The new source; all or nothing.

        Raises:
            EditError: it does not fit, with a report for the model.
        """
        if self.edits:
            return apply_edits(source, self.edits)
        return apply_search_replace(source, self.swaps) if self.swaps else guard_rewrite(source, self.file)


def read_patch(reply: str) -> ProposedPatch:
    """What a reply offers: what comes last of line edits and SEARCH/REPLACE blocks, else a whole file.

    Raises:
        EditError: nothing, or malformed edits.
    """
    if not reply.strip():
        raise EditError(f"The reply is empty. {MISSING}")
    answer = answer_part(reply)
    found, swaps = find_edit_json(answer), find_search_replace(answer)
    if swaps and (found is None or swaps[-1].line > found.line):
        return ProposedPatch("SEARCH/REPLACE", "blocks", swaps=tuple(swaps))
    if found is not None:
        return ProposedPatch("edits", found.way, edits=tuple(found.parsed()))
    if (rewritten := find_python(reply)) is not None:
        return ProposedPatch("rewrite", "whole file", file=rewritten)
    raise EditError(MISSING)
