"""The evaluation on a GPU: memory shared between processes by the driver, calls timed on the device.

driver.py, arena.py, memory.py          the CUDA driver's calls, device memory shared between processes
callee.py, side.py, busy.py  one model on the GPU, one side of a timing, work that goes on after the answer
staged.py, profiled.py, sanitizer.py    a candidate laid out for ncu or compute-sanitizer, and running them
faults.py                               GPU faults in words for the model
"""
