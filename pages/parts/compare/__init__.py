"""What the compare page is made of.

compared_runs.py                                           the runs, what stands in the way, one figure over tasks
compare_chart.py, compare_curve.py, compare_exposure.py    the charts: one curve a run; early against late profiles
compare_table.py, compare_kernels.py, remeasure_panel.py   the table; two kernels head to head, timed again
"""
