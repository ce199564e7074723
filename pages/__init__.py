"""The screens: one file each, `_main.py` routes, `parts/` draws.

first.py                                        what a first visitor sees: a run as a film
overview.py, run.py, candidate.py, compare.py   all runs; one run; one kernel; several runs side by side
new_run.py, edit.py, steering.py                start a run; edit a kernel by hand; every command ever asked
benchmark.py, networks.py                       suites and experiments; whole networks and their regions
models.py, system.py                            the models that have replied; what this machine has and lacks
knowledge.py, technique.py, kernel_state.py     what runs have learned; one technique; one state
learning.py                                     what one run was told and what it added
nowhere.py                                      what is shown for an address without a page
report.py                                       a run or a comparison as one HTML file, from a shell
"""
