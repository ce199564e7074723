// Stands in for <c10/macros/Macros.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <torch/headeronly/macros/Macros.h>
