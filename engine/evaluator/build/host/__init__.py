"""Building candidates for the host CPU with g++: where the tools are, how a request becomes a library. Judges nothing.

installation.py, flags.py   g++, ninja and headers, and what to install; what a candidate may add
recipe.py           the files of one build
build.py            running it; errors cut short, what g++ vectorised
"""
