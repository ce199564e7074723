// Stands in for <c10/cuda/CUDAFunctions.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/stream.h>
