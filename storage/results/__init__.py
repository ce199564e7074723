"""What judging a kernel gives, as values: written by the evaluator, kept in journals, shown on pages. Knows no file.

vocabulary.py, policy.py        how an evaluation ends, kernel classes; what a task allows a kernel to do
evaluation_results.py           what building, checking and timing a kernel came to: a speed-up, its interval and its
                                noise are worked out here, from the pairs that were taken
baselines.py                    what a user would run instead: which there are, by which names, and which are usual
in_words.py                     figures as people read them
check_records.py, observed.py   what stands behind it: one record a check; operators and kernels that ran
timed_twice.py                  whether two timings of a kernel whose speed-up is hard to believe agree
flags.py                        what a flagged check means to a person: to be looked at, or only noted
examination.py                  whether kernels can be judged on a task at all
profile_results.py, counters.py, kernel_names.py   what a profiler measured, and its counters in words
hardware_limit.py               what a device is, and the time that no kernel of a task can beat on it
deployment.py                   what a kernel's callers rely on beside its answer: graph, stream, memory of a call
relative.py, timeline.py        ratios of measured times; where the time of an evaluation went
"""
