"""Whether a candidate is right and how fast it is, judged by processes that never run it. Knows no model and no run.

complete.py             all steps on one candidate in order
judging.py, zygote.py, judge.py, apart.py  the engine's handle; has imported torch and forks the judge; the judge
worker.py, reference.py, candidate.py           the judge's handle on a child; the trusted and the untrusted child
channel.py, messages.py, arena.py, arenas.py    how they talk and share memory
gate.py, screening/     what may not run at all
sandbox/, processes.py, limits.py, lease.py     walls, process trees, limits, exclusive use of a device
checking.py, trials.py, values.py, special.py, resizing.py      which inputs a check tries
comparison.py, weighing.py, tolerance.py, widening.py, pattern.py   how far a result is off, and how far it may be
contract.py, call_checks.py, poison.py, calling.py, callee.py, callees.py   what forward owes beyond right values
timing.py, session.py, side.py, bench.py, clock.py, contents.py, quiet.py   speed by the judge's clock
idle.py, memory.py, remembering.py, threads.py, suspicion.py  work outside the clock, remembered results
compiled.py             the torch.compile baseline
findings.py, timing_proofs.py, failures.py      what was found, for people and for the model
device/                 the same on a GPU
"""
