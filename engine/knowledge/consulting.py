"""Which knowledge base a run asks, and what it answers for a state. Reads files; journals nothing.

What a run learns by itself, its evidence and what it has taught, counts for it whichever base it asks, unless that is
frozen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError
from storage.knowledge import choice, files, seed
from storage.knowledge.base import Base, EvidenceRows
from storage.knowledge.choice import CHOICES, EMPTY, FROZEN, OFF, ON, OWN, SEED, is_frozen, own_name
from storage.knowledge.records import Advised, Category, Evidence, FailureCase, Figures, Revision, Technique

MOST_IN_ALL = 24  # techniques of an answer where the state is not known
MOST_UNNAMED = 12  # of those that only models have named


@dataclass(frozen=True, slots=True)
class Need:
    """What a technique must apply to. Empty where that is not known: then it rules nothing out."""

    kernel_class: str = ""
    language: str = ""
    architecture: str = ""

    def allows(self, technique: Technique) -> bool:
        """Whether a technique is for such a kernel."""
        return technique.suits(self.kernel_class, self.language, self.architecture)


def check(knowledge: str) -> str:
    """The choice of a run as it is kept: one of the words, or the absolute path of a base that can be read; one that is
    frozen keeps its mark.

    Raises:
        EngineError: it is neither.
    """
    if is_frozen(knowledge):
        if (named := choice.base_of(knowledge)) in CHOICES and named != SEED:
            raise EngineError(f"{named!r} cannot be frozen: use {FROZEN}{SEED} or {FROZEN}PATH")
        return FROZEN + check(named)
    if knowledge in CHOICES or own_name(knowledge):
        return knowledge
    if knowledge.startswith(OWN):
        raise EngineError(f"{knowledge!r} names no base: after {OWN} use letters, digits, '.', '_' and '-'")
    folder = Path(knowledge).expanduser().absolute()
    words = ", ".join(CHOICES)
    if not knowledge or not folder.exists():
        raise EngineError(f"there is no knowledge base at {knowledge!r}: use {words}, {OWN}NAME, or the path of one")
    if folder.is_dir() and not any((folder / name).is_file() for name in (files.EVIDENCE, files.REVISIONS)):
        raise EngineError(
            f"{folder} holds neither {files.EVIDENCE} nor {files.REVISIONS}: use {words}, or such a folder"
        )
    try:
        _read(folder)
    except (OSError, ValueError) as error:
        raise EngineError(f"the knowledge base {folder} cannot be read: {error}") from error
    return str(folder)


def base_of(
    knowledge: str,
    home: Path | None,
    lessons: Sequence[Revision],
    rows: Sequence[Evidence],
    cases: Sequence[FailureCase] = (),
) -> Base | None:
    """The base that a run asks; None where it asks none. `home` is where runs keep what they learn, None for nowhere;
    `rows` and `cases` are what the run has shown itself.

    Raises:
        EngineError: it can no longer be read.
    """
    if knowledge == OFF:
        return None
    if is_frozen(knowledge):
        return base_of(choice.base_of(knowledge), None, (), ())
    if knowledge == ON and home is not None:
        return files.load(home)
    if (name := own_name(knowledge)) and home is not None:
        return files.load(files.own_folder(name, home), seeded=False)
    attempts, revisions, mark, seen = EvidenceRows(), list[Revision](), "", list[FailureCase]()
    if knowledge in (ON, SEED):
        revisions, mark = [seed.revision()], f"seed:{seed.digest()}"
    elif knowledge != EMPTY and not own_name(knowledge):
        check(knowledge)
        there = _read(Path(knowledge))
        revisions, mark, seen = list(there.revisions), there.mark, list(there.cases)
        for row in there.rows:
            attempts.add(row)
    for row in rows:
        attempts.add(row)
    mark = f"{mark} run:{len(rows)} taught:{len(lessons)}".strip()
    seen_ids = {case.case_id for case in seen}
    return Base(
        [*revisions, *lessons], attempts, mark, cases=[*seen, *(case for case in cases if case.case_id not in seen_ids)]
    )


def _read(folder: Path) -> Base:
    return files.load(folder)


def advise(base: Base, state: str, need: Need) -> tuple[Advised, ...]:
    """What the base knows of a state's techniques that apply, that which promises most first; of all states' where the
    state is not known. Techniques that are known by attempts alone, under a model's own name, are among them where
    those were on kernels of the same class and language."""
    entry = base.states.get(state)
    asked_state = "" if entry is not None and entry.is_disabled else state
    advised = sorted(_advised(base, asked_state, need), key=lambda advice: (-_promise(advice), advice.technique))
    return tuple(advised if asked_state else advised[:MOST_IN_ALL])


def others(base: Base, advised: Sequence[Advised], need: Need) -> tuple[str, ...]:
    """The names of techniques that apply and are not among those found: so that a model uses the same words."""
    listed = {advice.technique for advice in advised}
    allowed = (
        technique for technique in base.techniques.values() if not technique.is_disabled and need.allows(technique)
    )
    return tuple(sorted(technique.name for technique in allowed if technique.name not in listed))


def _advised(base: Base, state: str, need: Need) -> Iterator[Advised]:
    for name in base.techniques_of(state) if state else base.techniques:
        technique = base.techniques[name]
        if not technique.is_disabled and need.allows(technique):
            inherited = base.inherited_from(name, state) if state else ""
            yield _of(technique, base.figures(name, state or None), inherited)
    for name in _only_tried(base, state, need):
        yield _of(Technique(name, Category.GENERAL, ""), base.figures(name, state or None), "")


def _only_tried(base: Base, state: str, need: Need) -> list[str]:
    """The undefined techniques of a state that were tried most."""
    conditions = need.kernel_class, need.language
    tried = Counter(
        row.technique
        for row in base.attempts
        if row.technique not in base.techniques
        and state in ("", row.state)
        and (row.kernel_class, row.language) == conditions
    )
    return [name for name, _ in sorted(tried.items(), key=lambda count: (-count[1], count[0]))[:MOST_UNNAMED]]


def _of(technique: Technique, figures: Figures, inherited: str) -> Advised:
    return Advised(
        technique.name,
        technique.category,
        technique.about,
        technique.helps,
        technique.hurts,
        figures.expected_gain,
        figures.confidence,
        attempts=figures.attempts,
        faster=figures.faster,
        slower=figures.slower,
        failed=figures.failed,
        is_negative=figures.is_negative,
        inherited_from=inherited,
        parts=technique.parts,
    )


def _promise(advice: Advised) -> float:
    return advice.expected_gain * advice.confidence
