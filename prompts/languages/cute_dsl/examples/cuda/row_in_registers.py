import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack

# Example: y = x / (1 + the largest |x| of the row) with one read: a block per row holds it in registers. A thread-value layout
# says which elements of the row a thread has: (thread, (element of an access, access)) -> column.

THREADS = 256
WARPS = THREADS // 32


@cute.kernel
def row_kernel(x: cute.Tensor, y: cute.Tensor, tv: cute.Layout):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    cols = x.shape[1]
    mine_x = cute.composition(x[row, None], tv)
    mine_y = cute.composition(y[row, None], tv)
    v = cute.make_rmem_tensor(tv.shape[1], cutlass.Float32)
    v.fill(0.0)
    for j in cutlass.range_constexpr(tv.shape[1][1]):
        if tv((thread, (0, j))) < cols:
            cute.autovec_copy(mine_x[thread, (None, j)], v[None, j])
    held = v.load()
    peak = cute.where(held < 0.0, -held, held).reduce(cute.ReductionOp.MAX, 0.0, reduction_profile=0)
    peak = block_max(peak, thread)
    v.store(held / (1.0 + peak))
    for j in cutlass.range_constexpr(tv.shape[1][1]):
        if tv((thread, (0, j))) < cols:
            cute.autovec_copy(v[None, j], mine_y[thread, (None, j)])


@cute.jit
def block_max(value: cutlass.Float32, thread: cutlass.Int32):
    for i in cutlass.range_constexpr(5):
        value = cute.arch.fmax(value, cute.arch.shuffle_sync_bfly(value, offset=1 << i))
    smem = cutlass.memory.SmemAllocator()
    parts = smem.allocate_tensor(cutlass.Float32, cute.make_layout(WARPS))
    if thread % 32 == 0:
        parts[thread // 32] = value
    cute.arch.sync_threads()
    value = parts[0]
    for i in cutlass.range_constexpr(1, WARPS):
        value = cute.arch.fmax(value, parts[i])
    return value


@cute.jit
def rows(x: cute.Tensor, y: cute.Tensor, wide: cutlass.Constexpr, stream: CUstream):
    accesses = cute.ceil_div(x.shape[1], THREADS * wide)
    tv = cute.make_layout((THREADS, (wide, accesses)), stride=(wide, (1, THREADS * wide)))
    row_kernel(x, y, tv).launch(grid=[x.shape[0], 1, 1], block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        if not x.numel():
            return y
        if x.shape[1] > 16384:
            raise ValueError("longer rows take two passes, or several blocks for each row")
        wide = 4 if x.shape[1] % 4 == 0 and not x.data_ptr() % 16 else 1
        views = [from_dlpack(t, assumed_align=4 * wide) for t in (x, y)]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (*x.shape, wide)
        if key not in self.compiled:
            self.compiled[key] = cute.compile(rows, *views, wide, stream)
        self.compiled[key](*views, stream)
        return y
