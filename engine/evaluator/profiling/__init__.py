"""What hardware can do and what a kernel makes of it. Knows no model, no loop and no worker.

perf.py                         what perf and objdump tell of a kernel on the CPU
sampled_lines.py                on which lines of a kernel's file perf's samples fell
cpu_profile.py, roof.py         its profile in figures and words; the machine's limits
device/                         profiles on the GPU
"""
