"""The kernel is a method, and memory is handed over as a pointer and a number of elements that may change from call to call.

Task: swish batch_size=4096 dim=16384
Verdict: passed
"""
import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import make_ptr


class Swish:
    def __init__(self, threads):
        self.threads = threads

    @cute.kernel
    def compute(self, x: cute.Tensor, y: cute.Tensor, count: cutlass.Int64):
        thread, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        at = cutlass.Int64(block) * self.threads + thread
        if at < count:
            v = x[at]
            y[at] = v / (1.0 + cute.math.exp(-v))

    @cute.jit
    def __call__(self, x: cute.Pointer, y: cute.Pointer, count: cutlass.Int64, stream: CUstream):
        layout = cute.make_layout(count)
        flat_x, flat_y = cute.make_tensor(x, layout), cute.make_tensor(y, layout)
        blocks = cute.ceil_div(count, self.threads)
        self.compute(flat_x, flat_y, count).launch(grid=[blocks, 1, 1], block=[self.threads, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = None

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        memory = [make_ptr(cutlass.Float32, t.data_ptr(), cute.AddressSpace.gmem, assumed_align=4) for t in (x, y)]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        if self.compiled is None:
            self.compiled = cute.compile(Swish(256), *memory, x.numel(), stream)
        self.compiled(*memory, x.numel(), stream)
        return y
