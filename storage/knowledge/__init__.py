"""What runs have learned, kept across runs: append-only files and what follows from their rows.

records.py      states, techniques, evidence, revisions: one frozen record each
"""
