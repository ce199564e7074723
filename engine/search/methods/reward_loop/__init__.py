"""The reward loop of TritonGym's design: every attempt has a graded reward, and the next one is told of it.

strategy.py    which step comes next, and the settings
rewards.py     the attempts so far with their rewards
prompts.py     what the model is asked
"""
