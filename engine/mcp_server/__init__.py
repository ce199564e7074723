"""The evaluator, the knowledge base and runs as tools of the Model Context Protocol, for other people's agents.
Imported where the verb `mcp` runs and nowhere else: the package `mcp` is not needed for anything else.

serving.py       the server: its instructions, standard streams, HTTP with token and origin
kernel_tools.py  tools about one kernel: screen, compile, check, evaluate, profile, tune; tasks and knowledge
run_tools.py     tools about runs: start, look, wait, steer, submit
resources.py     sources, profiles, reports
answers.py       results as short JSON, with the next sensible step in words
served.py        which tasks are served
shelf.py         the kernels that this server has judged
budgets.py       what may be spent, and what is left
bench.py         the server's side of judging: one call at a time, progress, cancelling
judge.py         the process that judges: it can be killed with all that it started
stages.py        what that process does: stage after stage

workspace_tools.py   the tools of an agent in a folder of a run, beside the server and without most of it
"""
