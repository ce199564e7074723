"""What hardware can do and what a kernel makes of it. Knows no model and no loop.

observing.py, observation.py, counters.py, instructions.py   what is seen of a worker on the CPU
report.py, bound.py, roof.py        its record and words, what limits it, the machine's limits
device/                             profiles on the GPU
"""
