"""Building candidates for the host CPU: where the tools are, how a source becomes a library. Judges nothing.

installation.py, checks.py, flags.py    g++, ninja, headers, and what to install
intercept.py, order.py              load_inline inside a worker becomes an order
build.py, recipe.py, shelf.py       one build, and the cache of built libraries
light.py, runtime.py                light stand-ins for PyTorch's headers
diagnostics.py, remarks.py          errors cut short; what g++ vectorised
"""
