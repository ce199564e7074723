"""KernelBlaster: trajectories of steps, each step one technique drawn from the knowledge base, which learns from them.

strategy.py     the next action
state.py        what it remembers of a run: trajectories, the step being worked on, the round's attempts
drawing.py      which technique a step tries, drawn at random by predicted gain and relevance
rewards.py      what an attempt has brought: its gain, its reward, predicted against measured
replies.py      what a model's answers must hold: a state, a plan, a verification, edits of what is known
verification.py when a judge's word refuses a kernel
lessons.py      what the knowledge base is taught
prompts.py      what the model is asked
settings.py     what can be set
"""
