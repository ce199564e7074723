"""What stands around untrusted children and around compilers that read untrusted source.

Covered, where the system offers it (`isolation.Isolation` says what does, and every evaluation records it): a file
system of its own with the toolchain read-only and a little memory-backed scratch; a process tree of its own, so that
nothing else can be signalled, traced or seen; no network; a user without privileges; a filter on system calls; limits
on wall and processor time, memory, processes, files and output; an environment without keys; only the evaluator's own
pipes and one shared buffer open; every descendant ended, whatever session or group it moved to.
Not covered: faults of the kernel itself, side channels (shared caches, memory bandwidth), and reading what the
toolchain's own folders hold. Where neither namespaces nor Landlock exist a child can read and write this user's files.

    probe.py, isolation.py      the strongest isolation that holds here, tried out
    child.py                    starting a child in it, a program too
    hiding.py                   programs of this user's from which keys and runs are hidden: less than a sandbox
    filesystem.py, filters.py, linux.py     what it sees, the filters, the Linux calls Python lacks
"""

from engine.evaluator.sandbox.child import ChildSpec, Done, OwnFailure, SandboxedChild, run, start
from engine.evaluator.sandbox.filesystem import SandboxFilesystem
from engine.evaluator.sandbox.isolation import Isolation, environment

__all__ = [
    "ChildSpec",
    "Done",
    "Isolation",
    "OwnFailure",
    "SandboxFilesystem",
    "SandboxedChild",
    "environment",
    "run",
    "start",
]
