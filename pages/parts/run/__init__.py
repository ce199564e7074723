"""What a run's page is made of.

run_header.py, key_figures.py                  name and menu, what needs a person; one line of figures
activity.py                                    the reply as it comes in; what happened
feed_sentences.py                              what happened, one sentence each
curve_chart.py, curve_marks.py                 the speed-up curve: its rows, its traces, the lines around them
first_kernel.py                                in place of an empty curve: how far the first kernel is
lineage_strip.py, kernels_table.py             which kernel came from which; all kernels, and what they failed of
seek_bar.py                                    in a replay: to any of its steps
unusable_replies.py                            replies that brought no kernel, with their prompts
selection.py, kernel_panel.py                  which kernel is open beside the curve; that kernel
spending.py                                    what it has spent, its limits, where its time went
result_panel.py                                what it has come to, once it is over, and what can be done with it
"""
