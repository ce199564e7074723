import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack

# Example: z = scale * x + y. The tensors are (count, WIDE) views: a row is what one thread moves in one access of 16 bytes, and
# neighbouring threads take neighbouring rows. Each thread has DEEP rows in flight before it computes.

THREADS, DEEP = 256, 4


@cute.kernel
def scaled_add_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, scale: cutlass.Float32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    count, wide = x.shape
    first = block * (THREADS * DEEP) + thread
    a = cute.make_rmem_tensor((wide, DEEP), cutlass.Float32)
    b = cute.make_rmem_tensor((wide, DEEP), cutlass.Float32)
    for i in cutlass.range_constexpr(DEEP):
        if first + i * THREADS < count:
            cute.autovec_copy(x[first + i * THREADS, None], a[None, i])
            cute.autovec_copy(y[first + i * THREADS, None], b[None, i])
    a.store(scale * a.load() + b.load())
    for i in cutlass.range_constexpr(DEEP):
        if first + i * THREADS < count:
            cute.autovec_copy(a[None, i], z[first + i * THREADS, None])


@cute.jit
def scaled_add(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, scale: cutlass.Float32, stream: CUstream):
    blocks = cute.ceil_div(x.shape[0], THREADS * DEEP)
    scaled_add_kernel(x, y, z, scale).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.compiled = {}

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        z = torch.empty_like(x)
        if not z.numel():
            return z
        wide = 4 if z.numel() % 4 == 0 and not (x.data_ptr() | y.data_ptr()) % 16 else 1
        views = [from_dlpack(t.view(-1, wide), assumed_align=4 * wide) for t in (x, y, z)]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (z.numel(), wide)
        if key not in self.compiled:
            self.compiled[key] = cute.compile(scaled_add, *views, self.scale, stream)
        self.compiled[key](*views, self.scale, stream)
        return z
