"""Networks: a user's whole PyTorch model as it was captured, one folder each under TILEWRIGHT_HOME/networks.

records.py      the vocabulary: what a capture found, and what happened to a network since
files.py        a network's folder: what was captured, written once, and a journal that is appended to
standing.py     where a network stands, folded from both
ranking.py      which regions are worth a kernel: share, limit, ceiling of the whole
proofs.py       what came of putting kernels back, and figures of the whole
in_network.py   the same as sentences and rows
"""
