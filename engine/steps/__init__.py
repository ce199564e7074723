"""One file per step of the loop. Each carries out a move and emits what came of it; none decides what comes next.

write.py, conversation.py, candidates.py    prompts sent, candidates made
fallbacks.py       a patch, then SEARCH/REPLACE, then a whole file
evaluate.py, failure.py     judging a kernel; a failure in words for the model
"""
