"""One run: a model is asked, its kernels are judged, and the next step is chosen. Of the evaluator it knows the seam.

loop.py                 the loop; read this first
abreast.py              the loop of a run with several step indexes at work
actions.py              what a method may ask of the loop
methods/, steps/        what comes next; carrying it out
context.py              what every step works with
calling.py, arrived.py  one model call, from the budget to the journal; its reply, kept until the journal has it
limits.py, daily.py     budgets of a run, and of a day
llm/, patching/         the models; from a raw reply to a new source
human/                  commands from people, calls they answer, steps they approve
prompting.py            prompt files and how they fit a model's window; prompt_pack.py: a person's own in their place
exemplars.py            which example kernel a prompt shows
accounts.py             on whose account devices are used
"""
