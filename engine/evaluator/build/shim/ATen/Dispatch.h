// Stands in for <ATen/Dispatch.h>; what is missing makes the build fall back to the real header.
#pragma once

#include <tilewright/dispatch.h>
