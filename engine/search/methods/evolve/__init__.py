"""An evolving population: parents drawn by fitness, children by mutation and crossover.

strategy.py     which step comes next, and the settings
population.py   which kernels are alive, and which of them are drawn as parents
prompts.py      what the model is asked
"""
