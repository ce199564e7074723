// The current stream and device guards, under PyTorch's names, without its headers. Knows no kernel.
#pragma once

#include <tilewright/check.h>

namespace tilewright {
void* current_stream(int device);
void* enter_device(int index);
void leave_device(void* guard);
}  // namespace tilewright
