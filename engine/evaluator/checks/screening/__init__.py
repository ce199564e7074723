"""Decides before a candidate runs what its text or its built library shows. What computes is observed when it runs.

screening.py, finding.py        the entry for a text; what a finding says
python_text.py, cpp_text.py     flat rules on syntax trees
symbols.py                      what a built library links
"""

from engine.evaluator.checks.screening.finding import Finding, Rule, rule_checks, verdict_message
from engine.evaluator.checks.screening.screening import read_for, screen, screen_cpp
from engine.evaluator.checks.screening.symbols import screen_library, symbols

__all__ = [
    "Finding",
    "Rule",
    "read_for",
    "rule_checks",
    "screen",
    "screen_cpp",
    "screen_library",
    "symbols",
    "verdict_message",
]
