"""Results of other systems as runs to look at and go on from. What they recorded is kept apart from what we measure.

kernels.py      kernels as another system left them on disk
importing.py    writes them into a run
forked.py       the first kernel of a fork
"""
