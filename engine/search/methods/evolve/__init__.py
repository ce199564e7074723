"""An evolving population: parents drawn by fitness, children by mutation and crossover.

strategy.py     which step comes next, who is alive and drawn as a parent, and the settings
prompts.py      what the model is asked
"""
