"""The engine: one process per run that writes, judges and improves kernels. Knows no screen and no database.

loop.py                 the loop; read this first
abreast.py              the loop of a run with several step indexes at work
lanes.py, owners.py     what each of them sees; whose an event is
actions.py              what a strategy may ask of the loop
strategies/, steps/     what comes next; carrying it out
languages/              in which kernels are written
context.py              what every step works with
record.py, limits.py    what has happened and was spent, folded from the journal; budgets
knowledge/              what is asked of the knowledge base and given to it
tuning.py               which variants of a kernel the tuner tries, and which it keeps
calling.py, arrived.py  one model call, from the budget to the journal; its reply, kept until the journal has it
daily.py                what a day may cost
prompting.py            prompt files and how they fit a model's window; prompt_pack.py: a person's own in their place
exemplars.py            which example kernel a prompt shows
llm/, patching/         the models; from a raw reply to a new source
human/                  commands from people, calls they answer, steps they approve
toolchain_table.py      the toolchains by name
toolchains/, evaluation/, profiling/            build, judge and time, profile
tasks.py, run_settings.py, capabilities.py      tasks, settings of a new run, what this machine can do
fitting.py, examined.py whether judging a task fits this host, and whether kernels can be judged on it
suites/                 many runs as one: tasks x arms x repeats
supervisor.py           starts, finds and stops engine processes
forking.py, importing.py, replaying.py, recording_runs.py, remeasuring.py   other ways a run begins or is used again
exporting.py            a kernel as one file that plain PyTorch loads
doctor.py               what this machine has and lacks
errors.py               our own failures
__main__.py, cli/       the command line, and the only place that chooses concrete classes
"""
