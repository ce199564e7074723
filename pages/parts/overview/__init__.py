"""What the list of all runs is made of."""
