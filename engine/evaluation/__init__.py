"""Judging a candidate: isolation, comparison, timing. Knows no model, no loop and no screen."""
