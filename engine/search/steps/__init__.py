"""One file per step of the loop. Each carries out a move and emits what came of it; none decides what comes next.

ask.py                      a prompt sent; its reply as a patch, then SEARCH/REPLACE, then a whole file
conversation.py             what the prompts of all methods share
guidance.py                 what a prompt advises, and the example of a structure that a kernel lacks
history.py                  what a prompt tells of the run's past, cut by worth
briefing.py                 device, contract and headroom in words
candidates.py               candidates made, step indexes ended
knowledge.py                asking the knowledge base, and teaching it
ranking.py                  drawn kernels ranked before they cost device time
compiler.py                 what torch.compile writes for the task, as a hint
tune.py                     a sweep over the numbers that a kernel declares open to tuning
tools.py, tool_calls.py     a turn in which the model calls tools; one call carried out
evaluate.py                 judging a kernel; a failure in words for the model
"""
