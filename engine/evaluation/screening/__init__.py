"""Decides from a candidate's text and its built library what it may not do, before anything runs. Runs no candidate.

screening.py, finding.py        the entry: ModelNew as a whole, the built library; and what it says
python/, cpp/                   what Python and C++ may not do
operators.py                    which names of PyTorch compute
structure.py                    whether a new version still has its parent's CuTe structure
"""

from engine.evaluation.screening.finding import Finding, Rule, rule_checks, verdict_message
from engine.evaluation.screening.screening import imported_symbols, screen, screen_library
from engine.evaluation.screening.structure import lost_structure

__all__ = [
    "Finding",
    "Rule",
    "imported_symbols",
    "lost_structure",
    "rule_checks",
    "screen",
    "screen_library",
    "verdict_message",
]
