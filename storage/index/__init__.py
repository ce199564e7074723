"""The DuckDB index over run folders: read by pages, filled from the files, deleted at will.

database.py, schema.sql        the file: opened or rebuilt, written by one thread, read by many
ingest.py, chunks.py           follows the files; new lines, piece by piece
fold.py                        a run's record as rows: what the index stores of a run is made here
rows.py                        records as rows
queries/                       everything a screen asks of it
memory.py                      what was read, kept until something is written
past.py                        an index of one run as it stood at an earlier event
"""
