"""The engine: one process per run that writes, judges and improves kernels. Knows no screen and no database.

search/                 one run: the loop, methods, prompts, models, patches
evaluator/              one kernel: built, checked, timed and profiled
suites/                 many runs as one: tasks x arms x repeats
networks/               a whole network: captured, its places ranked, each kind of place a task
knowledge/              what is asked of the knowledge base and given to it
supervisor.py           starts, finds and stops engine processes
run_settings.py, run_options.py, capabilities.py   settings of a new run; its options, each described once; what this
                        machine can do
connecting.py           saved models: tried, kept with their keys, removed
examined.py             whether kernels can be judged on a task
forking.py, importing.py, replaying.py, recording_runs.py, remeasuring.py   other ways a run begins or is used again
mcp_server/             the evaluator, the knowledge base and runs as tools for agents
skill/                  what teaches a coding agent to write kernels with Tilewright
exporting/              a kernel as one file that plain PyTorch loads
shown/                  what programs are told of runs, suites and networks: versioned JSON
examples.py             runs that come with Tilewright
learned_examples.py     what these show of techniques, for the knowledge base
doctor.py               what this machine has and lacks
argument_types.py       what words of a command line are read as, and what is said of wrong ones
errors.py               our own failures
__main__.py, cli/       the command line, and the only place that chooses concrete classes
"""
