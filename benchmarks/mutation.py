"""One change of the evaluator that its tests must notice, and where its tests lie."""

from __future__ import annotations

from dataclasses import dataclass

TESTS = "tests/engine/evaluator"
EVALUATOR = "engine/evaluator"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one line that a check must not survive. `old` stands once in the file."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def of(name: str, tests: tuple[str, ...], *changes: tuple[str, str]) -> list[Mutation]:
    """Several mutations of one module, named by its path below the evaluator."""
    return [Mutation(f"{EVALUATOR}/{name}.py", old, new, tests) for old, new in changes]
