// Stands in for <ATen/ATen.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/tensor.h>
#include <tilewright/dispatch.h>
