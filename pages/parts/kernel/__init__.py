"""What a kernel's page is made of: a file for each tab, and what tabs are filled with.

kernel_header.py, story.py                       who it is and what can be done with it; why it is as fast as it is
diff_tab.py, repair_tab.py                       what changed, and all of its source; diagnosis and patch
errors_tab.py                                    why it failed
prompts_tab.py, prompt_sections.py               what the model was asked and said; one prompt by section
retrieved.py                                     what the knowledge base had answered before it
sweep_table.py                                   what the tuner tried for it
workloads_table.py                               what was measured of it at each workload of its task
same_kernel.py                                   the same source on each model of device that it was timed on
mark.py                                          what a person found who read it
tool_calls.py                                    what the model tried with tools before it
walk.py                                          the edges that were weighed on the way to it
profile_tab.py, roofline.py, machine_use.py      where its time goes
hot_lines.py                                     which of its source lines take it
metrics.py                                       every figure of a profile, and what a change of it means
trust_tab.py, trust_charts.py                    how far it can be trusted; its errors and timed calls as pictures
"""
