"""One file per step of the loop. Each carries out a move and emits what came of it; none decides what comes next.

ask.py                      a prompt sent; its reply as a patch, then SEARCH/REPLACE, then a whole file
conversation.py             what the prompts of all methods share
candidates.py               candidates made, step indexes ended
evaluate.py                 judging a kernel; a failure in words for the model
"""
