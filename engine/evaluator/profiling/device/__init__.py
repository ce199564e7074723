"""Profiling on the GPU: Nsight Compute around one call of a candidate, and what stands in for it where it may not.

profile.py                          the entry, and the record
nsight.py, target.py                one Nsight Compute session, and the program under it
launch_counters.py, bottleneck.py   from printed counters to findings
source_lines.py                     samples by source line and instruction
summary.py                          what the model is shown
without_counters.py                 a profile without hardware counters
ceilings.py                         the device's measured limits
"""
