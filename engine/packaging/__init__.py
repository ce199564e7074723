"""Kernels of runs as an installable Python package: operators of PyTorch with guards, gradients and a fallback.

packing.py      runs to files: what `package` and the dashboard's button call
networks.py     regions of a network to files
kernels.py      what is taken of one run: the kernel, its reference, its sizes, its figures
described.py    asks a reference in a sandbox what it takes (describing.py runs there)
literals.py, calls.py    what a kernel's file builds and calls, read from its text alone
rewriting.py    a kernel's file as it stands in a package
folders.py      the folder around the package: for pip, or for the kernel builder of Hugging Face
card.py         CARD.md: where the kernel comes from, how it was judged, what it gains
template/       what every package has, as it is copied into it; runs without Tilewright
"""
