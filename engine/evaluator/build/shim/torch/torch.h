// Stands in for <torch/torch.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/tensor.h>
#include <tilewright/dispatch.h>
