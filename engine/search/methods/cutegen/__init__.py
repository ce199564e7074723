"""CuTeGen, the default method: generate, test, diagnose, patch, and one optimisation per depth.

strategy.py     the next action; which kernel a depth starts from; when profiles are collected and shown
state.py        what it remembers of a run
settings.py     what can be set
prompts.py      what it asks the model
"""
