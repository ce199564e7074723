"""Building candidates for the host CPU with g++: where the tools are, how a request becomes a library. Judges nothing.

installation.py, flags.py           g++, ninja and headers, and what to install; what a candidate may add
recipe.py, build.py                 the files of one build, and running it
diagnostics.py                      errors cut short; what g++ vectorised
"""
