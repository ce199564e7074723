"""What the compare page is made of.

compared_runs.py    the runs, what stands in the way, one figure over tasks
compare_chart.py    the charts: one curve a run; early against late profiles
compare_table.py, compare_kernels.py    the table; two kernels head to head, timed again
"""
