"""The processes that judge a candidate: the engine asks, an evaluator answers, two workers run reference and candidate.

    engine ── client ── fork server (has imported torch) ── evaluator (a process per request) ── worker pair

client.py, forkserver.py                the engine's side, and the process that forks evaluators
process.py                              the evaluator: hands each act of a request to who does it, screening first
estimating.py                           what judging a task takes, found out in a sandbox
apart.py                                parts of an evaluator in processes of their own
first_calls.py                          the compile step of what is compiled when it is launched
checking.py                             correct or not: all trials, and the verdict over them
timing.py                               how fast, and what a candidate does unasked
weight_faults.py                        which weights a wrong candidate does not read, or misuses
examining.py, task_facts.py             whether a reference can be judged against; what its calls do
evaluation_request.py                   what an evaluation is asked about
worker_pair.py, worker.py, channel.py   the two workers, the handle on one, and how processes talk
reference_worker.py, candidate_worker.py, model_caller.py   what runs in the trusted and in the untrusted worker
compiler_source.py, compiled_start.py   what torch.compile writes for the task; a candidate out of it
held_state.py                           the state of the reference: as constructed, varied, put back
half_baseline.py, alternatives.py       what is timed as the baseline in half precision, and beside eager
scaled_products.py                      products of FP8 matrices by torch._scaled_mm, as one of these
deploying.py, capturing.py               what is told of a kernel's deployment, on either side
timed_worker.py, sampled.py             a worker that runs only while it is asked; samples of where it is
observer.py                             which operators and kernels ran
observing.py                            a profile on the CPU; profiler and sanitizer on a GPU
"""
