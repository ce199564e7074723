"""Results of other systems as runs to look at and go on from. What they recorded is kept apart from what we measure."""
