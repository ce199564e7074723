"""A run or a comparison as one HTML file that needs no server and no script.

report_run.py, report_depths.py      one run; its depths
report_comparison.py                 several runs
report_html.py, report_figure.py     elements, escaped; a curve as SVG
"""
