"""Everything that was read at one moment, as a strategy and a person ask it. Knows no files and no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from storage.knowledge import failures
from storage.knowledge.failures import FailureRule
from storage.knowledge.figures import Known, Reckoning, Tally, known_by, tally
from storage.knowledge.records import Evidence, FailureCase, Figures, Revision, State, Technique


class Attempts:
    """Evidence in the order of its file, each id once, found by technique and state. It only grows."""

    def __init__(self) -> None:
        self.rows: list[Evidence] = []
        self.ids: set[tuple[str, str, str]] = set()
        self._of_technique: dict[str, list[int]] = {}
        self._of_both: dict[tuple[str, str], list[int]] = {}

    def add(self, row: Evidence) -> bool:
        """False when there is a row of this id, which then counts."""
        if row.evidence_id in self.ids:
            return False
        self.ids.add(row.evidence_id)
        number = len(self.rows)
        self.rows.append(row)
        self._of_technique.setdefault(row.technique, []).append(number)
        self._of_both.setdefault((row.technique, row.state), []).append(number)
        return True

    def of(self, technique: str, state: str | None, before: int) -> Iterator[Evidence]:
        """The rows of a technique, in one state or in all, among the first so many."""
        numbers = self._of_technique.get(technique) if state is None else self._of_both.get((technique, state))
        for number in numbers or ():
            if number >= before:
                return
            yield self.rows[number]


class Base:
    """The knowledge base at one moment; what is appended later is not in it.

    `mark` names exactly what was read. `damaged` lines could not be read, `repeated` lines had the id of another one.
    """

    def __init__(
        self,
        revisions: Sequence[Revision],
        attempts: Attempts,
        mark: str,
        damaged: int = 0,
        repeated: int = 0,
        cases: Sequence[FailureCase] = (),
    ) -> None:
        self.revisions = tuple(revisions)
        self.mark, self.damaged, self.repeated = mark, damaged, repeated
        self._known = known_by(self.revisions)
        self._attempts = attempts
        self._count = len(attempts.rows)
        self._tallies: dict[tuple[str | None, str, str | None], Tally] = {}
        self.cases = tuple(cases)

    @property
    def states(self) -> Mapping[str, State]:
        """By name, disabled ones too."""
        return self._known.states

    @property
    def techniques(self) -> Mapping[str, Technique]:
        """By name, disabled ones too."""
        return self._known.techniques

    @property
    def known(self) -> Known:
        """States, techniques and priors."""
        return self._known

    @property
    def rows(self) -> Sequence[Evidence]:
        """Every attempt, in the order in which they were written."""
        return self._attempts.rows[: self._count]

    def rules(self) -> list[FailureRule]:
        """Every failure that was seen, with what is told of it; those seen most first."""
        return failures.rules(failures.tally(self.cases), self._known.rules)

    def rows_of(self, technique: str, state: str | None = None) -> list[Evidence]:
        """The attempts of one technique, in one state or in all."""
        return list(self._attempts.of(technique, state, self._count))

    def figures(self, technique: str, state: str | None = None, *, device: str | None = None) -> Figures:
        """What the evidence says of a technique, in one state or in all, on one device or on all.

        Without a prior of its own a state that inherits takes what is expected in the other one, at 0.8.
        """
        return self.reckoning(device).figures(technique, state)

    def techniques_of(self, state: str) -> list[str]:
        """Techniques in use with a prior or evidence in a state, or in the one that it inherits; by name."""
        return self.reckoning(None).techniques_of(state)

    def inherited_from(self, technique: str, state: str) -> str:
        """The state whose knowledge of a technique stands in for a missing prior; empty where there is none."""
        return self.reckoning(None).inherited_from(technique, state)

    def reckoning(self, device: str | None = None) -> Reckoning:
        """Figures of any technique in any state, on one device or on all. What was added up is kept."""

        def of(technique: str, state: str | None) -> Tally:
            key = device, technique, state
            if key not in self._tallies:
                rows = self._attempts.of(technique, state, self._count)
                self._tallies[key] = tally(row for row in rows if device is None or row.device == device)
            return self._tallies[key]

        return Reckoning(self._known, of)
