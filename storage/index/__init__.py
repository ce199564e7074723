"""The DuckDB index over run folders and the knowledge base: read by pages, filled from the files, deleted at will.

database.py, schema.sql        the file: opened or rebuilt, written by one thread, read by many
ingest.py, chunks.py           follows the files; new lines, piece by piece
projection.py, knowledge_projection.py   one line to the rows that it stands for
queries/                       everything a screen asks of it
memory.py                      what was read, kept until something is written
past.py                        an index of one run as it stood at an earlier event
"""
