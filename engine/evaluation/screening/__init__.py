"""Decides from a candidate's text and its built library what it may not do, before anything runs. Runs no candidate.

screening.py, finding.py                the entry, and what it says
reader.py, state.py, scopes.py, statements.py, expressions.py, values.py, calls.py, uses.py  Python, never run
arguments.py, arithmetic.py, attributes.py, containers.py, keeping.py, library_calls.py, strings.py  its rules
python_rules.py, python_names.py, operators.py, model.py    what Python may not do
tokens.py, macros.py, cpp_view.py, cpp_types.py, cpp_tensors.py, cpp_shadows.py   C++ read as tokens
cpp_rules.py, cpp_names.py, cpp_computing.py, structure.py  what C++ may not do, and the CuTe structure
library.py                              what the built library takes from others
tables.py                               tables of names as plain words
"""

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
