"""A person's part in a run: what people ask of it, what they answer, which steps wait for their yes.

inbox.py                    commands taking effect between steps; which make sense now, and what each changes;
                            kernels edited by hand
human_state.py              what people have to do, folded from the journal
replies.py, approval.py     calls answered by hand, steps that wait for a yes
"""
