"""The command line's own parts: arguments, live view, printing. Knows records, not how a kernel is judged.

arguments/              grammar and help, by what the verbs are about
subcommands.py          what needs no toolchain: list, show, command, export, patch, fork, tasks
person.py               answer, submit, record
labelling.py            label, delete, undelete
advance.py              many runs that a person answers
sharing.py              replay, remeasure
suites.py               many runs as one: run, resume, stop, show, export
networks.py             a whole network: capture, rank, show, list, delete
network_kernels.py      kernels for it: search, put back, ship, report, measure again
reproducing.py          the best kernels of a suite judged again
knowledge.py            what is known across runs: list, show, change, export, import
report.py               runs from their folders
experience.py           a run as training data: prompt, reply, reward
live.py                 a run at work on a terminal
tuned.py                sweeps over a kernel's tunables
kernel_files.py         one kernel file outside a run: evaluate, tune, screen
engine_process.py       how a process becomes the engine of a run
judgement.py            one evaluation, one compilation, on a terminal
lint.py, pool_status.py whether kernels can be judged on tasks; what this host's devices do
given.py, terminal.py   texts that a person hands over; the one way to a terminal
"""
