"""Profiling on the GPU: Nsight Compute around one call of a candidate, and what stands in for it where it may not.

profile.py                          the entry
nsight.py, command.py, known.py, pages.py, running.py, target.py   one Nsight Compute session and its report
whole.py, findings.py, occupancy.py, resources.py, results.py   from launches to a profile
summary.py, launch_words.py         what the model is shown
watching.py                         a profile without hardware counters
devices.py, ceilings.py, measuring.py   the GPUs here and their measured limits
"""
