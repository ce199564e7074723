"""Building candidates for an NVIDIA device: where the tools are, how a source becomes a library. Runs no kernel.

installation.py, flags.py           nvcc, headers, tools
build.py, recipe.py, phases.py      one build; device and host half at the same time
gate.py, resources.py, diagnostics.py   compiling without a device; registers and spills; errors cut short
"""
