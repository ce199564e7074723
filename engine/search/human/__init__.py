"""A person's part in a run: what people ask of it, what they answer, which steps wait for their yes.

inbox.py                    commands taking effect between steps, or breaking off a wait; which make sense now;
                            kernels edited by hand
replies.py, approval.py     calls answered by hand, steps that wait for a yes
"""
