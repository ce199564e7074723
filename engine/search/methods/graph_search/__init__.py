"""Monte-Carlo search on the graph of techniques: walks from the first kernel, each with one expansion at its end.

strategy.py     the next action
state.py        what it remembers of a run: the graph, N and Q of its edges, the expansion being worked on,
                what it teaches the knowledge base
selection.py    which edge a walk takes, and what comes back along it
replies.py      what a model's answers must hold: a sequence of techniques, their known names, a new method
prompts.py      what the model is asked
settings.py     what can be set
"""
