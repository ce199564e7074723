"""What programs are told of runs, suites and networks: versioned records, printed as JSON. Knows no terminal and no
server.

runs.py        a run: its record as plain values, and what to do next
trying.py      what the knowledge base offers for a run's best kernel
sweeps.py      a sweep over a kernel's tunables
suites.py      a suite with its cells
networks.py    a network's regions by what a kernel would save
schemas.py     each form's JSON Schema
"""
