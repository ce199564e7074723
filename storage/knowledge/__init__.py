"""What runs have learned, kept across runs: append-only files and what follows from their rows.

choice.py       which base a run asks
records.py      states, techniques, evidence, revisions: one frozen record each
failures.py     failure rules: what goes wrong again and again, what mended it, and what writers are told of it
figures.py      from revisions to what is known by name, from attempts to figures
graph.py        which technique followed which
same_change.py  rows that tell of one change of a kernel, as one attempt
base.py         everything that was read at one moment, as a strategy and a person ask it
browsing.py     the rows that pages list of it
files.py        the files under TILEWRIGHT_HOME/knowledge: appended under a lock, folded from where they were read to
exported.py, merging.py   all of it as one file; what is taken over from such a file, and what contradicts
changes.py      what a person changes, as revisions
seed.toml       the states and techniques that Tilewright is shipped with; seed.py reads it
"""
