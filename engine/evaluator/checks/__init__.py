"""Whether a candidate is right and how fast it is: values in, verdicts out. Starts no process and runs no candidate.

screening/                              what may not run at all, from its text and its built library
live_code.py                            what of a candidate's file runs at all
trials.py, distributions.py             the inputs of a check, and how they are drawn
contents.py, poison.py                  the inputs of a timing, and what unwritten memory holds
comparison.py, weighing.py              how far a result is off, in words too, and whether that is too far
tolerance.py                            how far it may be
recordings.py                           what a network gave the module, out of a file
arguments.py, structure.py              lists of tensors out of any arguments and results
dtypes.py, ties.py                      precision; indices that are open
float8.py, widening.py                  numbers of 8 bits, and a module that has some in double precision
executed.py                             a task's text as a module of a process
weights.py, seeding.py, inner_outputs.py  what varies and what is seeded; outputs inside a network
gradients.py                            forward and backward of a module as one call
contract.py, findings.py                what forward owes beyond right values; one record per check made
operators.py, launches.py, processor_time.py  who computed: operators, kernels on a GPU, samples of the processor
clock.py, timing_checks.py              when a timing may stop, what stands behind them, re-measuring
candidate_failures.py                   how a candidate may fail to run, in words for the model
estimate.py, flop_formulas.py           how much memory judging a task takes; how many operations it does
terms.py                                how many numbers are added up into one
masked_products.py                      how many of them the reference's masks leave
"""
