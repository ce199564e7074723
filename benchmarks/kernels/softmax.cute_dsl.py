import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack

# Two launches: largest value and sum of every tile of a row, then each block merges those of its row and writes one tile.
THREADS, TILE = 256, 8192
WARPS = THREADS // 32


@cute.jit
def block_max(value: cutlass.Float32, parts: cute.Tensor, thread: cutlass.Int32):
    for i in cutlass.range_constexpr(5):
        value = cute.arch.fmax(value, cute.arch.shuffle_sync_bfly(value, offset=1 << i))
    if thread % 32 == 0:
        parts[thread // 32] = value
    cute.arch.sync_threads()
    value = parts[0]
    for i in cutlass.range_constexpr(1, WARPS):
        value = cute.arch.fmax(value, parts[i])
    return value


@cute.jit
def block_sum(value: cutlass.Float32, parts: cute.Tensor, thread: cutlass.Int32):
    for i in cutlass.range_constexpr(5):
        value = value + cute.arch.shuffle_sync_bfly(value, offset=1 << i)
    if thread % 32 == 0:
        parts[thread // 32] = value
    cute.arch.sync_threads()
    value = parts[0]
    for i in cutlass.range_constexpr(1, WARPS):
        value = value + parts[i]
    return value


@cute.kernel
def part_kernel(x: cute.Tensor, peaks: cute.Tensor, totals: cute.Tensor, wide: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    part, row, _ = cute.arch.block_idx()
    shared = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((WARPS, 2)))
    first = part * (TILE // wide) + thread
    v = cute.make_rmem_tensor((wide, TILE // wide // THREADS), cutlass.Float32)
    v.fill(-cutlass.Float32.inf)
    for i in cutlass.range_constexpr(TILE // wide // THREADS):
        if first + i * THREADS < x.shape[1]:
            cute.autovec_copy(x[row, first + i * THREADS, None], v[None, i])
    peak = v.load().reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, reduction_profile=0)
    peak = block_max(peak, shared[None, 0], thread)
    base = cutlass.Float32(0.0)
    if peak > -cutlass.Float32.inf:
        base = peak
    total = cute.math.exp(v.load() - base).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    total = block_sum(total, shared[None, 1], thread)
    if thread == 0:
        peaks[row, part] = peak
        totals[row, part] = total


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor, peaks: cute.Tensor, totals: cute.Tensor, wide: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    part, row, _ = cute.arch.block_idx()
    peak = -cutlass.Float32.inf
    for i in cutlass.range(peaks.shape[1]):
        peak = cute.arch.fmax(peak, peaks[row, i])
    total = cutlass.Float32(0.0)
    for i in cutlass.range(peaks.shape[1]):
        total += totals[row, i] * cute.math.exp(peaks[row, i] - peak)
    scale = 1.0 / total
    first = part * (TILE // wide) + thread
    v = cute.make_rmem_tensor((wide, TILE // wide // THREADS), cutlass.Float32)
    v.fill(0.0)
    for i in cutlass.range_constexpr(TILE // wide // THREADS):
        if first + i * THREADS < x.shape[1]:
            cute.autovec_copy(x[row, first + i * THREADS, None], v[None, i])
    v.store(cute.math.exp(v.load() - peak) * scale)
    for i in cutlass.range_constexpr(TILE // wide // THREADS):
        if first + i * THREADS < x.shape[1]:
            cute.autovec_copy(v[None, i], y[row, first + i * THREADS, None])


@cute.jit
def softmax(
    x: cute.Tensor, y: cute.Tensor, peaks: cute.Tensor, totals: cute.Tensor, wide: cutlass.Constexpr, stream: CUstream
):
    grid = [peaks.shape[1], x.shape[0], 1]
    part_kernel(x, peaks, totals, wide).launch(grid=grid, block=[THREADS, 1, 1], stream=stream)
    softmax_kernel(x, y, peaks, totals, wide).launch(grid=grid, block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, cols = x.shape
        wide = 4 if cols % 4 == 0 and not x.data_ptr() % 16 else 1
        peaks, totals = (torch.empty(rows, (cols + TILE - 1) // TILE, device=x.device) for _ in range(2))
        views = [from_dlpack(t.view(rows, -1, wide), assumed_align=4 * wide) for t in (x, y)]
        views += [from_dlpack(t) for t in (peaks, totals)]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (rows, cols, wide)
        if key not in self.compiled:
            self.compiled[key] = cute.compile(softmax, *views, wide, stream)
        self.compiled[key](*views, stream)
        return y
