"""What the list of all runs is made of.

runs_filter.py      which runs, in which order or groups, as the address says
runs_table.py       one line a run, and what can be done from it
example_runs.py     runs that come with Tilewright, to open and remove
getting_started.py  what it says to somebody without a run of their own
run_totals.py       figures over all runs, and one line a group
label_dialogs.py    names, tags, notes, the archive; deleting and undoing it
"""
