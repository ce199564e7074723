"""The walls around untrusted children and around compilers that read untrusted source.

Covered, where the system offers it (`walls.Walls` says what does, and every evaluation records it): a file system of
its own with the toolchain read-only and a little memory-backed scratch; a process tree of its own, so that nothing
else can be signalled, traced or seen; no network; a user without privileges; a filter on system calls; limits on wall
and processor time, memory, processes, files and output; an environment without keys; only the judge's own pipes and
one shared buffer open; every descendant ended, whatever session or group it moved to.
Not covered: faults of the kernel itself, side channels (shared caches, memory bandwidth), and reading what the
toolchain's own folders hold. Where neither namespaces nor Landlock exist a child can read and write this user's files.

    probe.py, walls.py      the strongest walls that hold here, tried out
    enclosure.py, command.py, environment.py    starting a child behind them
    room.py, landlock.py, seccomp.py, kernel.py     its file system, the filters, the Linux calls Python lacks
"""

from engine.evaluation.sandbox.command import Done, run
from engine.evaluation.sandbox.enclosure import Enclosed, OwnFailure, Wanted, start
from engine.evaluation.sandbox.environment import environment
from engine.evaluation.sandbox.room import Room
from engine.evaluation.sandbox.walls import Walls

__all__ = [
    "Done",
    "Enclosed",
    "OwnFailure",
    "Room",
    "Walls",
    "Wanted",
    "environment",
    "run",
    "start",
]
