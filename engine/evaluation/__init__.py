"""Whether a candidate is right and how fast it is, judged by processes that never run it. Knows no model and no run."""

from engine.evaluation.complete import evaluate

__all__ = ["evaluate"]
