"""Suites: tasks x arms x repeats as many runs, and what they say together. Knows no screen and no model.

definition.py       a suite from its TOML file
runner.py           the queue: so many runs at a time, whatever is killed
headroom.py         which cell gets more steps of what is left of the budget
tables.py           what a suite says, as tables and sentences of text
formats.py          figures as people read them
exporting.py        the same as CSV, JSON, LaTeX, Markdown and one HTML file
manifest.py         its best kernels with all it takes to judge them again; doing so
adopting.py         runs made one by one, as cells
example_suites.py   finished suites of the runs that come with Tilewright
starting.py         the commands of a suite from a page
metering.py         what a run has spent and how it ended, from its journal alone
"""
