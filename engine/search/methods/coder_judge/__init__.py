"""Coder and judge: one model role criticises, another rewrites, and every round's kernel is profiled.

strategy.py     the next action, and what it remembers of a run
prompts.py      what the judge and the coder are asked
"""
