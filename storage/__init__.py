"""Run folders, journals and the DuckDB index over them. Knows nothing of engines, models or screens.

records.py, events.py, proof.py, models.py, policy.py   the vocabulary; what happens in a run
codec.py, journal.py, commands.py, blobs.py, folder.py, liveness.py   a run folder's files
damage.py                   what of those files is damaged or gone
budgets.py, choices.py, verbs.py, attendance.py, exposure.py, forks.py   what commands carry, as text and back
database.py, projection.py, chunks.py, ingest.py, memory.py   the index and its upkeep
queries/                    everything a screen asks of it
counters.py, kernel_names.py, relative.py   profiler counters, kernel names, ratios
remeasurements.py           two kernels timed again
read_only.py                the one guard in front of everything a dashboard can write
"""
