"""A run: what it was asked to do, what has happened in it, what that comes to; and the files that hold it.

settings.py, models.py, budgets.py   what a run was asked to do
saved_models.py                      models by name, in a file that all runs share
events/, journal.py                  everything that can happen in a run, and the file it is written to
record.py                            the fold of the journal: kernels, steps, calls, steering, spending; read this first
lanes.py, owners.py                  the same as each of several step indexes at work sees it; whose an event is
tuning.py                            a sweep over a kernel's numbers, folded
call_outcomes.py                     what the calls came to, folded
cut_off.py                           work in steps that were cut off, folded
waiting.py                           who waited for what: spans of a run's time, folded
steering/                            what people may ask of a run, say with it and have set
folder.py, liveness.py, blobs.py, labels.py, remeasurements.py, trash.py   the other files of a run
damage.py                            what of those files is damaged or gone
exposure.py, forks.py, method_words.py   when profiles are shown; where a fork began; how a method calls its steps
"""
