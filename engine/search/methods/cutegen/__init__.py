"""CuTeGen, the default method: generate, test, diagnose, patch, and one optimisation per depth.

strategy.py     the next action
state.py        what it remembers of a run
settings.py     what can be set
prompts.py      what it asks the model
base_policy.py, schedule.py     which kernel the next depth starts from; when profiles are collected and shown
"""
