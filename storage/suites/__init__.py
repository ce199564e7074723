"""Suites: tasks x arms x repeats, kept across runs as one journal each under TILEWRIGHT_HOME/suites.

records.py      the vocabulary: what a suite is made of, and what happens in it
files.py        a suite's folder: appended under a lock, read line by line
standing.py     where a suite and each of its cells stand, folded from its journal
results.py      what one run has come to, as plain figures
measured.py     how these follow from a run's record
statistics.py   means, shares, medians, tests and their intervals
summary.py      what a suite says as a whole: per arm and class, arms in pairs
curves.py       fast_p at every speed-up, the best kernel so far over what was spent
reaching.py     what it takes to come to a share of the hardware limit
"""
