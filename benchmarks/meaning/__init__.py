"""Mutants of a task's meaning: its own module as a candidate with one thing done wrongly, as kernels do things wrongly.

expressions.py    one wrong expression in `forward`
modules.py        one layer of the constructor that computes something else from the same weights
making.py         from a reference's text to its mutants
truth.py          a child process that tells in float64 how far a mutant's answer is from the reference's
"""
