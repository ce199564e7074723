// Stands in for <c10/util/Half.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <torch/headeronly/util/Half.h>
