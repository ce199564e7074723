"""Run folders, journals and the DuckDB index over them. Knows nothing of engines, models or screens.

records.py, check_records.py, models.py, policy.py   the vocabulary
evaluation_results.py, profile_results.py, hardware_limit.py   what is measured of a kernel, and of a device
untrusted.py                whatever is not ours, read within limits of bytes, depth, digits and time
events/                     everything that can happen in a run
codec.py, journal.py, commands.py, blobs.py, folder.py, liveness.py   a run folder's files
past.py                     a run as it stood at an earlier point of its journal
damage.py                   what of those files is damaged or gone
verbs.py, command_arguments.py, budgets.py, steering_state.py   what people may ask of a run, say with it and have set
exposure.py, forks.py       when profiles are shown; what a run was forked from
database.py, projection.py, chunks.py, ingest.py, memory.py   the index and its upkeep
knowledge/                  what is kept across runs
suites/                     many runs as one; lines.py: files of lines that many processes append to
queries/                    everything a screen asks of it
counters.py, kernel_names.py, relative.py   profiler counters, kernel names, ratios
remeasurements.py           two kernels timed again
read_only.py                the one guard in front of everything a dashboard can write
"""
