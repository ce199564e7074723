"""Building candidates for an NVIDIA device with nvcc: where the tools are, how a request becomes a library.

installation.py, flags.py           nvcc, headers, tools; what a candidate may add
recipe.py, build.py                 the files of one build, device and host half at the same time, and running it
diagnostics.py                      errors cut short; registers and spills
"""
