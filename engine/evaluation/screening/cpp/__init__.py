"""What a candidate's C++ may not do, seen in its tokens. Runs no compiler.

rules.py, names.py              the rules, and the names that they look for
lexer.py, view.py               text into tokens, macros expanded; tokens seen as names, calls, functions
computing.py, tensors.py, shadows.py    by what C++ lets PyTorch compute; which names stand for tensors
"""
