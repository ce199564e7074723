"""Which kernels stand on the roofline of one: itself, its nearest profiled ancestor, its base and the run's best."""

from __future__ import annotations

from collections.abc import Sequence

from pages.parts import index
from pages.parts.kernel import machine_use, roofline
from pages.parts.kernel.roofline import Point
from storage import queries
from storage.queries import AttemptRow, CandidateRow


def points(run_id: str, candidate: CandidateRow, attempts: Sequence[AttemptRow]) -> list[Point]:
    """The kernel first; each kernel once, under its nearest relation. Empty where its own place is not known."""
    db = index.current()
    numbers = {a.candidate_id: a.number for a in attempts}
    found: list[Point] = []
    for name, roles in relations(candidate, queries.profiled_ancestor(db, run_id, candidate.candidate_id), attempts):
        also = ", ".join(role for role in roles if role != "this")
        told = f"kernel {numbers.get(name, '?')}" + (f" ({also})" if also else "")
        place = roofline.point(told, machine_use.whole(queries.metrics(db, run_id, name)), roles[0])
        if place:
            found.append(place)
        elif roles[0] == "this":
            return []
    return found


def relations(
    candidate: CandidateRow, ancestor: str | None, attempts: Sequence[AttemptRow]
) -> list[tuple[str, list[str]]]:
    """Each kernel once with all that it is to this one. The arrow starts at the ancestor, so it is never left out."""
    best = next((a.candidate_id for a in attempts if a.is_best), None)
    wanted = (("this", candidate.candidate_id), ("parent", ancestor), ("base", candidate.base_id), ("best", best))
    found: dict[str, list[str]] = {}
    for role, name in wanted:
        if name:
            found.setdefault(name, []).append(role)
    return list(found.items())
