"""Everything that was read at one moment, as a strategy and a person ask it. Knows no files and no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from storage.knowledge import failures, same_change
from storage.knowledge.failures import FailureRule
from storage.knowledge.figures import Known, Reckoning, Tally, known_by, tally
from storage.knowledge.records import Evidence, FailureCase, Figures, Revision, State, Technique
from storage.knowledge.same_change import EvidenceId


class EvidenceRows:
    """Evidence in the order of its file, each id once. It only grows."""

    def __init__(self) -> None:
        self.rows: list[Evidence] = []
        self.ids: set[EvidenceId] = set()

    def add(self, row: Evidence) -> bool:
        """False when there is a row of this id, which then counts."""
        if row.evidence_id in self.ids:
            return False
        self.ids.add(row.evidence_id)
        self.rows.append(row)
        return True


class Base:
    """The knowledge base at one moment; what is appended later is not in it.

    `mark` names exactly what was read. `damaged` lines could not be read, `repeated` lines had the id of another one.
    """

    def __init__(
        self,
        revisions: Sequence[Revision],
        evidence: EvidenceRows,
        mark: str,
        damaged: int = 0,
        repeated: int = 0,
        cases: Sequence[FailureCase] = (),
    ) -> None:
        self.revisions = tuple(revisions)
        self.mark, self.damaged, self.repeated = mark, damaged, repeated
        self._known = known_by(self.revisions)
        self._evidence = evidence
        self._count = len(evidence.rows)
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
        """Every row, in the order in which they were written; several may tell of one change of a kernel."""
        return self._evidence.rows[: self._count]

    @property
    def attempts(self) -> Sequence[Evidence]:
        """Each change of a kernel once, in the order in which they were first written."""
        return self._once[0]

    def told_by(self, attempt: Evidence) -> Sequence[Evidence]:
        """The rows that tell of an attempt."""
        return self._once[1].get(attempt.evidence_id, (attempt,))

    def runs_of(self, attempt: Evidence) -> list[str]:
        """The runs that tell of an attempt, that whose kernel stands for it first."""
        return list(dict.fromkeys([attempt.run_id, *(row.run_id for row in self.told_by(attempt))]))

    def rules(self) -> list[FailureRule]:
        """Every failure that was seen, with what is told of it; those seen most first."""
        return failures.rules(failures.tally(self.cases), self._known.rules)

    def attempts_of(self, technique: str, state: str | None = None) -> list[Evidence]:
        """The attempts of one technique, in one state or in all."""
        return list(self._of.get((technique, state), ()))

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
                rows = self._of.get((technique, state), ())
                self._tallies[key] = tally(row for row in rows if device is None or row.device == device)
            return self._tallies[key]

        return Reckoning(self._known, of)

    @cached_property
    def _once(self) -> tuple[list[Evidence], dict[EvidenceId, tuple[Evidence, ...]]]:
        return same_change.once(self.rows)

    @cached_property
    def _of(self) -> Mapping[tuple[str, str | None], list[Evidence]]:
        """The attempts of each technique in each state, and in all for None."""
        found: dict[tuple[str, str | None], list[Evidence]] = {}
        for attempt in self.attempts:
            found.setdefault((attempt.technique, None), []).append(attempt)
            found.setdefault((attempt.technique, attempt.state), []).append(attempt)
        return found
