"""A run or a comparison as one HTML file that needs no server and no script.

report_run.py           one run, its depths
report_comparison.py    several runs
report_html.py          templates/ filled, every value escaped; a curve in pixels
"""
