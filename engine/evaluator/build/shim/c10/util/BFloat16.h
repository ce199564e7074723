// Stands in for <c10/util/BFloat16.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <torch/headeronly/util/BFloat16.h>
