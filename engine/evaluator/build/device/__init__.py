"""Building candidates for an NVIDIA device with nvcc: where the tools are, how a request becomes a library.

installation.py, flags.py   nvcc, headers, tools; what a candidate may add
recipe.py           the files of one build, device and host half at the same time
build.py            running it; errors cut short, registers and spills
"""
