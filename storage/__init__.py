"""Everything that is kept, as files and as values. Knows nothing of engines, models or screens.

run/            a run: settings, events, journal, steering, and the record that they fold into
results/        what judging a kernel gives, as values
index/          the DuckDB index over all runs, and what screens ask of it
knowledge/      what is kept across runs
suites/         many runs as one
networks/       whole networks, as they were captured
home.py, files.py, locks.py   where it all lies; lines appended and files replaced so that nothing is lost; locks
keys.py         keys of saved models, in a keyring or in files of their own
codec.py        records to JSON and back
untrusted.py    whatever is not ours, read within limits of bytes, depth, digits and time
device_use.py   what the devices of this host do
differences.py  in which lines two texts differ, in bounded time
access_token.py the token of whatever is served over HTTP
read_only.py    the one guard in front of everything a dashboard can write
"""
