"""Repeated sampling: first kernels that know nothing of each other.

strategy.py    which step comes next, and the settings
"""
