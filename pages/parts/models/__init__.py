"""What the page of the models is made of beside its table of patches.

connect.py        how to connect one, with one small call
by_model.py       what each has come to, and what it costs
calibration.py    what each predicted, against what was measured
"""
