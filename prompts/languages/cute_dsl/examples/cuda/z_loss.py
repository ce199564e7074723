import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack

# Example: the mean over rows of log(sum of exp(x))^2 with one read of x. Warps stay and walk over the rows; each lane keeps a running
# maximum and a sum that is rescaled when the maximum moves. A second small launch adds up what each block found, in a fixed order.

THREADS, WARPS, BLOCKS = 256, 8, 1024
DEEP = 4  # accesses of a lane in flight
LOWEST = -3.0e38  # a maximum of nothing: finite, so that LOWEST - LOWEST is 0


@cute.kernel
def partial_sums(x: cute.Tensor, partial: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp, lane = thread // 32, thread % 32
    rows, count, wide = x.shape  # a row is `count` accesses of `wide` numbers
    v = cute.make_rmem_tensor((wide, DEEP), cutlass.Float32)
    loss = cutlass.Float32(0.0)
    for row in cutlass.range(block * WARPS + warp, rows, blocks * WARPS, unroll=1):
        peak, total = cutlass.Float32(LOWEST), cutlass.Float32(0.0)
        for first in cutlass.range(lane, count, DEEP * 32, unroll=1):
            v.fill(-cutlass.Float32.inf)  # adds nothing where the row has ended
            for i in cutlass.range_constexpr(DEEP):
                if first + i * 32 < count:
                    cute.autovec_copy(x[row, first + i * 32, None], v[None, i])
            held = v.load()
            higher = cute.arch.fmax(peak, held.reduce(cute.ReductionOp.MAX, LOWEST, reduction_profile=0))
            part = cute.math.exp(held - higher).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
            total = total * cute.math.exp(peak - higher) + part
            peak = higher
        higher = cute.arch.warp_reduction_max(peak)  # each lane has met other columns
        total = cute.arch.warp_reduction_sum(total * cute.math.exp(peak - higher))
        log_total = higher + cute.math.log(total)
        loss += log_total * log_total
    smem = cutlass.memory.SmemAllocator()
    parts = smem.allocate_tensor(cutlass.Float32, cute.make_layout(WARPS))
    if lane == 0:
        parts[warp] = loss
    cute.arch.sync_threads()
    if thread == 0:
        for i in cutlass.range_constexpr(1, WARPS):
            loss += parts[i]
        partial[block] = loss


@cute.kernel
def mean_of_partials(partial: cute.Tensor, out: cute.Tensor, rows: cutlass.Int32):
    lane, _, _ = cute.arch.thread_idx()
    total = cutlass.Float32(0.0)
    for i in cutlass.range_constexpr(BLOCKS // 32):
        total += partial[i * 32 + lane]
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        out[0] = total / rows.to(cutlass.Float32)


@cute.jit
def z_loss(x: cute.Tensor, partial: cute.Tensor, out: cute.Tensor, stream: CUstream):
    partial_sums(x, partial).launch(grid=[BLOCKS, 1, 1], block=[THREADS, 1, 1], stream=stream)
    mean_of_partials(partial, out, x.shape[0]).launch(grid=[1, 1, 1], block=[32, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        partial = torch.empty(BLOCKS, dtype=torch.float32, device=x.device)
        out = torch.empty((), dtype=torch.float32, device=x.device)
        wide = 4 if cols % 4 == 0 and not x.data_ptr() % 16 else 1
        views = [from_dlpack(x.view(rows, cols // wide, wide), assumed_align=4 * wide)]
        views += [from_dlpack(t) for t in (partial, out.view(1))]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (rows, cols, wide)
        if key not in self.compiled:
            self.compiled[key] = cute.compile(z_loss, *views, stream)
        self.compiled[key](*views, stream)
        return out
