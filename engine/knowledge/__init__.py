"""What the engine makes of the knowledge base and gives to it. Knows profiles and records, no journal and no model.

readings.py     a profile in figures that rules can name
states.py       the state of a kernel, from its profile
evidence.py     attempts that are over, as rows
failures.py     what kernels show of failures, as rows
rewards.py      the graded reward of a kernel
reward_model.py  a small model of rewards, and whether it ranks better than the order of arrival
consulting.py   which base a run asks, and what it answers
transitions.py  what it answers of the graph of techniques
"""
