"""The two ways to answer on this machine, a processor and a GPU. They know no model and no run.

cpu.py, cuda.py, local.py       the two toolchains and what they share
cached.py, remembered.py        one that remembers, and how records are kept
evaluating.py                   all stages on one candidate, as one answer
requirements.py                 whether this machine has what they need
"""
