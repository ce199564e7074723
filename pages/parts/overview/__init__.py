"""What the list of all runs is made of: runs_table.py, its rows, which of them and in which order."""
