"""What every screen is drawn with. Knows no run.

table.py, bars.py, plot.py   rows that open something; small bars; a Plotly figure
lanes.py                     lanes over time: who had the work
diagonal.py                  predicted against measured gains as such a figure
figures.py, editor.py        large and small figures in a row; a box for code
code.py, diff.py             coloured sources; two of them beside each other
"""
