"""What a candidate's Python does, read without running it, and what it may not do.

rules.py                        the rules, and the names that they look for
reader.py, reader_state.py      the reading, statement by statement, and what it knows so far
expressions.py, attributes.py, function_calls.py, library_calls.py    what each kind of syntax gives
values.py, containers.py        what an expression may stand for; methods of containers and strings
"""
