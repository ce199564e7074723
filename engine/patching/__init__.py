"""From a model's raw reply to a new source, or to a report the model can act on. Knows no model and no run."""
