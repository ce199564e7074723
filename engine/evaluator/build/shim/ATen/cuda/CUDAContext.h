// Stands in for <ATen/cuda/CUDAContext.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/stream.h>
