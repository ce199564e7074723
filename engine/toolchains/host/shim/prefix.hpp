// Precompiled once per flag set and put in front of every candidate: the headers that cost the time.
#include <torch/extension.h>

// cute/tensor.hpp must come first: the algorithm headers do not stand alone.
#include <cute/tensor.hpp>

#include <cute/algorithm/axpby.hpp>
#include <cute/algorithm/clear.hpp>
#include <cute/algorithm/copy.hpp>
#include <cute/algorithm/fill.hpp>
#include <cute/algorithm/gemm.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>

#include "vector_length.hpp"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
