"""How a candidate's source becomes a library, on the host or for a GPU. Judges nothing and runs no candidate.

request.py                      load_inline inside a worker becomes a build request, and is checked
tunables.py                     numbers that a source declares open to tuning
build_cache.py                  built libraries under the hash of all that went into them
light_headers.py, shim/         light stand-ins for PyTorch's headers, and what is linked for them
just_in_time.py                 Triton, which compiles when a kernel is launched: what is kept and chosen
cute_dsl.py                     the same for CuTe's Python DSL, and how it compiles where there is no GPU
host/, device/                  building with g++, with nvcc: installation, flags, recipe, build
"""
