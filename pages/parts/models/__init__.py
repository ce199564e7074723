"""What the page of the models is made of beside its table of patches.

connect.py        how to connect one, by a form that saves it
saved_list.py     those that are saved
trial_result.py   one small call to one, and what came of it
by_model.py       what each has come to, and what it costs
calibration.py    what each predicted, against what was measured
"""
