"""Decides from a candidate's text and its built library what it may not do, before anything runs. Runs no candidate."""

from engine.evaluation.screening.finding import Finding, Rule, proofs, verdict_message
from engine.evaluation.screening.library import imported_symbols, screen_library
from engine.evaluation.screening.screening import screen
from engine.evaluation.screening.structure import lost_structure

__all__ = [
    "Finding",
    "Rule",
    "imported_symbols",
    "lost_structure",
    "proofs",
    "screen",
    "screen_library",
    "verdict_message",
]
