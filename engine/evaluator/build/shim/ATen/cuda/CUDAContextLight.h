// Stands in for <ATen/cuda/CUDAContextLight.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/stream.h>
