import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.runtime import from_dlpack

# Two launches: mean and squared distance of every tile, then each block merges the tiles of its sample and normalises one.
THREADS, TILE = 256, 8192
WARPS = THREADS // 32


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
def part_kernel(x: cute.Tensor, means: cute.Tensor, fars: cute.Tensor, wide: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    part, sample, _ = cute.arch.block_idx()
    shared = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((WARPS, 2)))
    first = part * (TILE // wide) + thread
    count = cutlass.min(TILE, x.shape[1] * wide - part * TILE).to(cutlass.Float32)
    v = cute.make_rmem_tensor((wide, TILE // wide // THREADS), cutlass.Float32)
    v.fill(0.0)
    for i in cutlass.range_constexpr(TILE // wide // THREADS):
        if first + i * THREADS < x.shape[1]:
            cute.autovec_copy(x[sample, first + i * THREADS, None], v[None, i])
    total = v.load().reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
    mean = block_sum(total, shared[None, 0], thread) / count
    for i in cutlass.range_constexpr(TILE // wide // THREADS):
        if first + i * THREADS >= x.shape[1]:
            for j in cutlass.range_constexpr(wide):
                v[j, i] = mean
    far = v.load() - mean
    far = block_sum((far * far).reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0), shared[None, 1], thread)
    if thread == 0:
        means[sample, part] = mean
        fars[sample, part] = far


@cute.kernel
def norm_kernel(
    x: cute.Tensor, y: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, means: cute.Tensor, fars: cute.Tensor,
    eps: cutlass.Float32, wide: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    part, sample, _ = cute.arch.block_idx()
    shared = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((WARPS, 2)))
    each = x.shape[1] * wide
    total = cutlass.Float32(0.0)
    for p in cutlass.range(thread, means.shape[1], THREADS):
        total += means[sample, p] * cutlass.min(TILE, each - p * TILE).to(cutlass.Float32)
    mean = block_sum(total, shared[None, 0], thread) / each
    far = cutlass.Float32(0.0)
    for p in cutlass.range(thread, means.shape[1], THREADS):
        shift = means[sample, p] - mean
        far += fars[sample, p] + shift * shift * cutlass.min(TILE, each - p * TILE).to(cutlass.Float32)
    far = block_sum(far, shared[None, 1], thread)
    scale = cute.math.rsqrt(far / each + eps)
    first = part * (TILE // wide) + thread
    v = cute.make_rmem_tensor(wide, cutlass.Float32)
    w = cute.make_rmem_tensor(wide, cutlass.Float32)
    b = cute.make_rmem_tensor(wide, cutlass.Float32)
    for i in cutlass.range_constexpr(TILE // wide // THREADS):
        at = first + i * THREADS
        if at < x.shape[1]:
            cute.autovec_copy(x[sample, at, None], v)
            cute.autovec_copy(weight[at, None], w)
            cute.autovec_copy(bias[at, None], b)
            v.store((v.load() - mean) * scale * w.load() + b.load())
            cute.autovec_copy(v, y[sample, at, None])


@cute.jit
def layer_norm(
    x: cute.Tensor, y: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, means: cute.Tensor, fars: cute.Tensor,
    eps: cutlass.Float32, wide: cutlass.Constexpr, stream: CUstream,
):
    grid = [means.shape[1], x.shape[0], 1]
    part_kernel(x, means, fars, wide).launch(grid=grid, block=[THREADS, 1, 1], stream=stream)
    norm_kernel(x, y, weight, bias, means, fars, eps, wide).launch(grid=grid, block=[THREADS, 1, 1], stream=stream)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)
        self.compiled = {}

    def forward(self, x):
        x, each = x.contiguous(), self.norm.weight.numel()
        y = torch.empty_like(x)
        samples = x.numel() // each
        weight, bias = self.norm.weight.detach(), self.norm.bias.detach()
        wide = 4 if each % 4 == 0 and not (x.data_ptr() | weight.data_ptr() | bias.data_ptr()) % 16 else 1
        means, fars = (torch.empty(samples, (each + TILE - 1) // TILE, device=x.device) for _ in range(2))
        views = [from_dlpack(t.view(samples, -1, wide), assumed_align=4 * wide) for t in (x, y)]
        views += [from_dlpack(t.view(-1, wide), assumed_align=4 * wide) for t in (weight, bias)]
        views += [from_dlpack(t) for t in (means, fars)]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (samples, each, wide)
        if key not in self.compiled:
            self.compiled[key] = cute.compile(layer_norm, *views, self.norm.eps, wide, stream)
        self.compiled[key](*views, self.norm.eps, stream)
        return y
