"""What a kernel's page is made of: a file for each tab, and what tabs are filled with.

kernel_header.py, story.py, kernel_actions.py    who it is; why it is as fast as it is; what can be done with it
diff_tab.py, source_tab.py, repair_tab.py        what changed; all of it; diagnosis and patch
errors_tab.py, compiler_log.py                   why it failed
prompts_tab.py, transcript.py                    what the model was asked and said
profile_tab.py, roofline.py, machine_use.py      where its time goes
metrics.py, metric_sense.py                      every figure of a profile, and what a change of it means
trust_tab.py, trust.py                           how far it can be trusted
"""
