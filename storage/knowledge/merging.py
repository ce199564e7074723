"""What of another knowledge base is taken over into this one, and where the two contradict each other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from storage import read_only
from storage.knowledge import exported, seed
from storage.knowledge.base import Base
from storage.knowledge.exported import Exported, KnowledgeError, T, marked
from storage.knowledge.figures import Known, known_by
from storage.knowledge.files import EVIDENCE, FAILURES, REVISIONS, Writer, writing
from storage.knowledge.records import Evidence, FailureCase, Prior, Revision, RuleWords, State, Technique

LISTED = 40
KEPT_LATER = ("over_eager", "over_best", "limit_share")  # figures that older rows lack


class Prefer(StrEnum):
    """Whose word counts where both have one."""

    MINE = "mine"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One thing that both have and that differs. `kind`: attempt, failure, revision, state, technique,
    prior or rule."""

    kind: str
    name: str
    mine: Evidence | FailureCase | Revision | State | Technique | Prior | RuleWords | None
    theirs: Evidence | FailureCase | Revision | State | Technique | Prior | RuleWords | None


class ConflictsError(KnowledgeError):
    """Two knowledge bases contradict each other; nothing was changed."""

    def __init__(self, origin: str, conflicts: Sequence[Conflict]) -> None:
        self.conflicts = conflicts
        listed = "\n".join(f"  {conflict.kind} {conflict.name}" for conflict in conflicts[:LISTED])
        if len(conflicts) > LISTED:
            listed += f"\n  and {len(conflicts) - LISTED} more"
        super().__init__(
            f"{len(conflicts)} of what {origin} has is different here, so nothing was imported:\n{listed}\n"
            "Import again with --prefer mine or --prefer theirs"
        )


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. `known` rows were here already; `conflicts` were settled as preferred. `failures` are rows of
    kernels that failed, mended a failure or were written under failure rules."""

    origin: str
    attempts: int
    revisions: int
    known: int
    conflicts: Sequence[Conflict]
    failures: int = 0


def import_file(path: Path, prefer: Prefer | None = None, origin: str = "", folder: Path | None = None) -> Imported:
    """Take over everything of an exported file that is not here yet.

    Raises:
        ConflictsError: something is different here and `prefer` does not say whose word counts.
        KnowledgeError: the file is no whole exported knowledge base, or this server is read-only.
    """
    read_only.guard(KnowledgeError, "import what others know")
    theirs = exported.read(path)
    with writing(folder) as writer:
        return _merge(writer, theirs, prefer, origin or theirs.origin)


def conflicts(base: Base, theirs: Exported) -> list[Conflict]:
    """Everything that both have and that differs."""
    return [*_rows_apart(base, theirs), *_words_apart(base, theirs)]


def _merge(writer: Writer, theirs: Exported, prefer: Prefer | None, origin: str) -> Imported:
    base = writer.base()
    differing = conflicts(base, theirs)
    if differing and prefer is None:
        raise ConflictsError(origin, differing)
    if prefer is Prefer.THEIRS:
        _replace_rows(writer, base, differing, origin)
    new = writer.add_evidence(marked(row, origin) for row in theirs.evidence)
    changed = writer.add_revisions(
        [*_new_words(base, theirs), *(marked(revision, origin) for revision in theirs.revisions)]
    )
    if settling := _settling(writer.base().known, differing, prefer, theirs, origin):
        writer.add_revisions([settling])
    cases = writer.add_cases(marked(case, origin) for case in theirs.cases)
    unchanged = len(theirs.evidence) + len(theirs.revisions) + len(theirs.cases) - new - changed - cases
    return Imported(origin, new, changed, max(0, unchanged), differing, cases)


def _rows_apart(base: Base, theirs: Exported) -> Iterator[Conflict]:
    mine = {row.evidence_id: row for row in base.rows}
    for row in theirs.evidence:
        if (here := mine.get(row.evidence_id)) and not _is_same(here, row):
            yield Conflict("attempt", " / ".join(row.evidence_id), here, row)
    cases = {case.case_id: case for case in base.cases}
    for case in theirs.cases:
        if (known_case := cases.get(case.case_id)) and not _is_same(known_case, case):
            yield Conflict("failure", " / ".join(case.case_id), known_case, case)
    changes = {revision.revision_id: revision for revision in base.revisions}
    for revision in theirs.revisions:
        if (other := changes.get(revision.revision_id)) and not _is_same(other, revision):
            yield Conflict("revision", revision.revision_id, other, revision)


def _is_same(one: T, other: T) -> bool:
    """Whether two rows say the same; a row from before a figure was kept does not contradict one that has it."""
    if isinstance(one, Evidence) and isinstance(other, Evidence):
        lacking: dict[str, Any] = {n: None for n in KEPT_LATER if None in (getattr(one, n), getattr(other, n))}
        lacking |= {} if one.task_hash and other.task_hash else {"task_hash": ""}
        return replace(one, origin="", **lacking) == replace(other, origin="", **lacking)
    return replace(one, origin="") == replace(other, origin="")


def _words_apart(base: Base, theirs: Exported) -> Iterator[Conflict]:
    """Names that a change of theirs is about and that mean something else here, or would after it."""
    there = known_by([*([theirs.seed] if theirs.seed else []), *theirs.revisions])
    new = [
        revision
        for revision in theirs.revisions
        if revision.revision_id not in {mine.revision_id for mine in base.revisions}
    ]
    after = known_by([*base.revisions, *new])
    about = known_by([replace(revision, reverts="") for revision in theirs.revisions])
    for kind, mine, other, then, named in _side_by_side(base.known, there, after, about):
        for name, word in mine.items():
            if (name in named and other.get(name) != word) or then.get(name) != word:
                yield Conflict(kind, _shown(word), word, other.get(name))


def _shown(word: State | Technique | Prior | RuleWords) -> str:
    if isinstance(word, RuleWords):
        return word.rule
    return f"{word.technique} in {word.state}" if isinstance(word, Prior) else word.name


_Words = Mapping[object, State | Technique | Prior | RuleWords]


def _side_by_side(*all_known: Known) -> Iterator[tuple[str, _Words, _Words, _Words, _Words]]:
    for kind, field in (("state", "states"), ("technique", "techniques"), ("prior", "priors"), ("rule", "rules")):
        first, second, third, fourth = (getattr(known, field) for known in all_known)
        yield kind, first, second, third, fourth


def _new_words(base: Base, theirs: Exported) -> list[Revision]:
    """What another version of Tilewright was shipped with and this one does not know, as a change."""
    shipped = theirs.seed
    if shipped is None or shipped == seed.revision():
        return []
    mine = base.known
    states = tuple(state for state in shipped.states if state.name not in mine.states)
    techniques = tuple(technique for technique in shipped.techniques if technique.name not in mine.techniques)
    priors = tuple(prior for prior in shipped.priors if (prior.state, prior.technique) not in mine.priors)
    if not (states or techniques or priors):
        return []
    why = f"shipped with the version of Tilewright at {theirs.origin}"
    new = replace(shipped, revision_id=f"seed of {theirs.digest}", why=why, origin=theirs.origin)
    return [replace(new, states=states, techniques=techniques, priors=priors)]


def _replace_rows(writer: Writer, base: Base, differing: Iterable[Conflict], origin: str) -> None:
    """Their attempts and changes in place of ours with the same ids; the files of before are kept."""
    attempts = {
        conflict.theirs.evidence_id: conflict.theirs for conflict in differing if isinstance(conflict.theirs, Evidence)
    }
    changes = {
        conflict.theirs.revision_id: conflict.theirs for conflict in differing if isinstance(conflict.theirs, Revision)
    }
    if attempts:
        rows = (attempts.get(row.evidence_id, row) for row in base.rows)
        writer.replace([marked(row, origin) if row.evidence_id in attempts else row for row in rows], EVIDENCE)
    if changes:
        changed = (
            changes.get(revision.revision_id, revision)
            for revision in base.revisions
            if revision.revision_id != seed.SEED
        )
        writer.replace(
            [marked(revision, origin) if revision.revision_id in changes else revision for revision in changed],
            REVISIONS,
        )
    if cases := {
        conflict.theirs.case_id: conflict.theirs for conflict in differing if isinstance(conflict.theirs, FailureCase)
    }:
        both = (cases.get(case.case_id, case) for case in base.cases)
        writer.replace([marked(case, origin) if case.case_id in cases else case for case in both], FAILURES)
    if attempts or changes or cases:
        writer.base()


def _settling(
    now: Known, differing: Iterable[Conflict], prefer: Prefer | None, theirs: Exported, origin: str
) -> Revision | None:
    """The change that makes the preferred words count, where the imported ones do not do so by themselves."""
    settled = [
        conflict.mine if prefer is Prefer.MINE else conflict.theirs or _switched_off(conflict.mine)
        for conflict in differing
    ]
    states = tuple(state for state in settled if isinstance(state, State) and now.states.get(state.name) != state)
    techniques = tuple(
        technique
        for technique in settled
        if isinstance(technique, Technique) and now.techniques.get(technique.name) != technique
    )
    priors = tuple(
        prior
        for prior in settled
        if isinstance(prior, Prior) and now.priors.get((prior.state, prior.technique)) != prior
    )
    rules = tuple(rule for rule in settled if isinstance(rule, RuleWords) and now.rules.get(rule.rule) != rule)
    if not (states or techniques or priors or rules):
        return None
    return Revision(
        revision_id=f"import-{theirs.digest}-{time.time_ns()}",
        at=time.time(),
        by="import",
        why=f"kept {prefer} where {origin} differs",
        states=states,
        techniques=techniques,
        priors=priors,
        rules=rules,
    )


def _switched_off(mine: object) -> State | Technique | RuleWords | None:
    """What counts here instead of a word that no longer counts there: of a rule, the repair's own words."""
    if isinstance(mine, RuleWords):
        return RuleWords(mine.rule)
    return replace(mine, is_disabled=True) if isinstance(mine, State | Technique) else None
