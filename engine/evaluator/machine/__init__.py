"""What Linux and the CUDA driver do for the evaluation, without a word about candidates. Imports nothing from above.

processes.py                    process trees, and what threads do as the kernel tells
lease.py, turns.py, quiet.py    exclusive use of a device; who is next; how busy the machine is
devices.py, device_health.py    the GPUs of this machine; whether one still works
samples.py                      where a process's threads are, sampled from outside
process_memory.py, device_memory.py, shared_tensors.py  tensors that two processes see
stopwatch.py                    where the time of one piece of work goes
worker_limits.py                how long and how large an evaluation may get
"""
