"""What a raw reply offers, in whichever form, and putting it into a source: the way from a reply to a new source."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.search.patching.edit_blocks import MISSING, find_edit_json
from engine.search.patching.edits import Edit, EditError, Lines, apply_edits, refuse_too_long, refuse_unwritable, same
from engine.search.patching.reply import Swap, answer_part, find_python, find_search_replace
from engine.search.patching.search_replace import apply_search_replace
from storage import codec

MIN_SIMILARITY = 0.15
_CUTE = re.compile(r"\b(cute::\w+|make_tensor|make_layout|local_tile|local_partition|TiledCopy|TiledMMA|MMA_Atom)\b")


def guard_rewrite(source: str, rewritten: str) -> str:
    """The rewritten file, if it still is a version of the same kernel. Library calls are for the screening to judge.

    Raises:
        EditError: nothing changed, CuTe was stripped, or hardly a line is shared.
    """
    old, new = Lines.of(source).texts, Lines.of(rewritten).texts
    if same(old, new):
        raise EditError("The file is unchanged.")
    if _CUTE.search(source) and not _CUTE.search(rewritten):
        raise EditError("The rewrite strips the CuTe structure. Keep the tensors, layouts and tiles of the kernel.")
    if _shared(old, new) < MIN_SIMILARITY:
        raise EditError("The rewrite shares hardly a line with the kernel. Change what must change and keep the rest.")
    refuse_unwritable(rewritten)
    return rewritten


def _shared(old: Sequence[str], new: Sequence[str]) -> float:
    """Share of lines that both have, whatever their order (0..1)."""
    common = Counter(old) & Counter(new)
    return 2 * sum(common.values()) / max(len(old) + len(new), 1)


class NothingOffered(EditError):
    """A reply without edits, blocks or a file."""


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
        refuse_too_long(self.file, source)
        if self.edits:
            patched = apply_edits(source, self.edits)
        else:
            patched = apply_search_replace(source, self.swaps) if self.swaps else guard_rewrite(source, self.file)
        refuse_too_long(patched, source)
        return patched


def read_patch(reply: str) -> ProposedPatch:
    """What a reply offers: what comes last of line edits and SEARCH/REPLACE blocks, else a whole file.

    Raises:
        NothingOffered: none of these.
        EditError: malformed edits.
    """
    if not reply.strip():
        raise NothingOffered(f"The reply is empty. {MISSING}")
    answer = answer_part(reply)
    edits, swaps = find_edit_json(answer), find_search_replace(answer)
    if swaps and (edits is None or swaps[-1].line > edits.line):
        return ProposedPatch("SEARCH/REPLACE", "blocks", swaps=tuple(swaps))
    if edits is not None:
        return ProposedPatch("edits", edits.way, edits=tuple(edits.parsed()))
    if (rewritten := find_python(reply)) is not None:
        return ProposedPatch("rewrite", "whole file", file=rewritten)
    raise NothingOffered(MISSING)
