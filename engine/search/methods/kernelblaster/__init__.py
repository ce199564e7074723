"""KernelBlaster: trajectories of steps, each step one technique drawn from the knowledge base, which learns from them.

strategy.py     the next action; when a judge's word refuses a kernel
state.py        what it remembers of a run: trajectories, the round's attempts, the step being worked on
                and its technique, drawn at random by predicted gain and relevance
rewards.py      what an attempt has brought: its gain, its reward, predicted against measured
replies.py      what a model's answers must hold: a state, a plan, a verification, edits of what is known
lessons.py      what the knowledge base is taught
prompts.py      what the model is asked
settings.py     what can be set
"""
