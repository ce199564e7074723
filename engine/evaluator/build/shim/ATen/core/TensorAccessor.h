// Stands in for <ATen/core/TensorAccessor.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/accessor.h>
