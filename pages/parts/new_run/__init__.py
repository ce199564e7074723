"""What the page that starts a run is made of.

module_field.py   what to optimise: a shipped task, a file, a pasted or uploaded module
setup.py          with what: model, method, toolchain, language
budget_form.py    within which limits
baselines_form.py what its kernels are told over beside eager
examination.py    whether kernels can be judged on it
forecast.py       what the run will take: recording, memory, time, tokens and money
command_line.py   the same run as a command
kept.py           what was chosen there, while another page is shown
like.py           what it begins with where it is to be like another run
"""
