"""What is said of a run wherever it is shown: alerts, damage, where it comes from, what its engine does now."""
