"""What people do in a run: the verbs, what is said with them, the file they travel in, and what holds of them.

verbs.py, command_arguments.py   what may be asked, and what is said with it
commands.py                      the file between dashboard and engine
steering_state.py                what people have set and still holds
human_state.py                   what a person has to do: open questions, steps that wait for a yes
"""
