import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.runtime import from_dlpack

# Example: y = softmax(scale * q @ k^T) @ k for (heads, queries, WIDTH) and (heads, keys, WIDTH); scores are never stored. A warp
# has 16 queries, its block walks over tiles of keys that cp.async brings one tile ahead. Both products are TF32 instructions with
# float32's precision: x = big + small, and x * y is nearly big * big + big * small + small * big; each tile's sums begin at 0 and
# are added outside, because a tensor core cuts off where it should round. Sums of the first product are the operand of the second
# as they lie in registers: of eight keys thread t of four must have t and t + 4 and has 2t and 2t + 1, so the values are read in
# this order too.

WIDTH, WARPS, BK = 64, 4, 32
BQ, THREADS = 16 * WARPS, 32 * WARPS
ROW = WIDTH + 4  # numbers of a row in shared memory: the 32 reads of a warp meet 32 banks in both products


@cute.jit
def multiply(mma: cute.TiledMma, sums: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
    """sums += a * b over eight elements of the summed extent; a tensor core reads the upper 19 bits of a number."""
    parts = []
    for whole in (a, b):
        big, small = (cute.make_rmem_tensor(whole.shape, cutlass.Float32) for _ in range(2))
        big.store(whole.load())
        bits = cute.recast_tensor(big, cutlass.Int32)
        bits.store((bits.load() + 4096) & -8192)  # rounded to these
        small.store(whole.load() - big.load())
        parts.append([cute.recast_tensor(part, cutlass.TFloat32) for part in (big, small)])
    for i, j in ((1, 0), (0, 1), (0, 0)):  # the small ones first
        cute.gemm(mma, sums, parts[0][i], parts[1][j], sums)


@cute.jit
def bring(k: cute.Tensor, tile: cute.Tensor, first: cutlass.Int32, thread: cutlass.Int32):
    """Start the copies of BK keys, 16 bytes each. Beyond the end the last key is repeated: numbers, whose weight becomes 0."""
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    for i in cutlass.range_constexpr(BK * WIDTH // 4 // THREADS):
        key, quad = (thread + i * THREADS) // (WIDTH // 4), thread % (WIDTH // 4)
        source = k[cutlass.min(first + key, k.shape[0] - 1), None]
        cute.copy(atom, cute.local_tile(source, (4,), (quad,)), cute.local_tile(tile[key, None], (4,), (quad,)))


@cute.kernel
def lookup_kernel(q: cute.Tensor, k: cute.Tensor, y: cute.Tensor, scale: cutlass.Float32, mma: cute.TiledMma):
    thread, _, _ = cute.arch.thread_idx()
    block, head, _ = cute.arch.block_idx()
    q, k, y = (t[cutlass.Int64(head), None, None] for t in (q, k, y))
    queries, keys, first = q.shape[0], k.shape[0], block * BQ
    smem = cutlass.memory.SmemAllocator()
    stages = cute.make_layout((BK, WIDTH, 2), stride=(ROW, 1, BK * ROW))
    shared = smem.allocate_tensor(cutlass.Float32, stages, byte_alignment=16)

    # What this thread has, as (values of an instruction, instructions along M or N, along the summed extent or N).
    mine = mma.get_slice(thread)
    at = mine.partition_A(cute.make_identity_tensor((BQ, WIDTH)))
    query = cute.make_rmem_tensor(at.shape, cutlass.Float32)
    for i in cutlass.range_constexpr(cute.size(query)):
        query[i] = scale * q[cutlass.min(first + at[i][0], queries - 1), at[i][1]]
    places = mine.partition_C(cute.make_identity_tensor((BQ, BK)))
    score = cute.make_rmem_tensor(places.shape, cutlass.Float32)  # ((2 columns, 2 rows), 1, BK / 8)
    weight = cute.make_tensor(score.iterator, cute.make_layout(((2, 2), 1, BK // 8), stride=((2, 1), 0, 4)))
    at = mine.partition_C(cute.make_identity_tensor((BQ, WIDTH)))
    sums, added = (cute.make_rmem_tensor(at.shape, cutlass.Float32) for _ in range(2))
    sums.fill(0.0)
    score_of, sums_of, added_of = (  # (row of the thread, its columns)
        cute.make_tensor(t.iterator, cute.make_layout((2, (2, n // 8)), stride=(2, (1, 4))))
        for t, n in ((score, BK), (sums, WIDTH), (added, WIDTH))
    )
    peak, total, left = (cute.make_rmem_tensor(2, cutlass.Float32) for _ in range(3))
    peak.fill(-cutlass.Float32.inf)
    total.fill(0.0)

    tiles = cute.ceil_div(keys, BK)
    bring(k, shared[None, None, 0], 0, thread)
    cute.arch.cp_async_commit_group()
    for n in cutlass.range(tiles, unroll=1):
        if n + 1 < tiles:
            bring(k, shared[None, None, (n + 1) % 2], (n + 1) * BK, thread)
        cute.arch.cp_async_commit_group()  # empty at the end: all but the last group hold this tile
        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()
        tile = shared[None, None, n % 2]
        in_order = cute.make_layout((WIDTH, (4, 2, BK // 8)), stride=(1, (2 * ROW, ROW, 8 * ROW)))
        as_key, as_value = mine.partition_B(tile), mine.partition_B(cute.make_tensor(tile.iterator, in_order))

        score.fill(0.0)
        for step in cutlass.range_constexpr(WIDTH // 8):
            multiply(mma, score, query[None, None, step], as_key[None, None, step])
        if cutlass.const_expr(keys % BK != 0):
            if n == tiles - 1:
                for i in cutlass.range_constexpr(cute.size(score)):
                    if n * BK + places[i][1] >= keys:
                        score[i] = -cutlass.Float32.inf
        for r in cutlass.range_constexpr(2):  # four neighbouring threads have a row
            held = score_of[r, None].load()
            higher = cute.arch.fmax(peak[r], held.reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, reduction_profile=0))
            higher = cute.arch.warp_reduction_max(higher, threads_in_group=4)
            held = cute.math.exp(held - higher)
            score_of[r, None].store(held)
            left[r] = cute.math.exp(peak[r] - higher)
            total[r] = left[r] * total[r] + held.reduce(cute.ReductionOp.ADD, 0.0, reduction_profile=0)
            peak[r] = higher
        added.fill(0.0)
        for step in cutlass.range_constexpr(BK // 8):
            multiply(mma, added, weight[None, None, step], as_value[None, None, step])
        for r in cutlass.range_constexpr(2):
            sums_of[r, None].store(left[r] * sums_of[r, None].load() + added_of[r, None].load())
        cute.arch.sync_threads()  # the tile is overwritten next

    for r in cutlass.range_constexpr(2):
        whole = cute.arch.warp_reduction_sum(total[r], threads_in_group=4)
        sums_of[r, None].store(sums_of[r, None].load() / whole)
    for i in cutlass.range_constexpr(cute.size(sums)):
        if first + at[i][0] < queries:
            y[first + at[i][0], at[i][1]] = sums[i]


@cute.jit
def soft_lookup(q: cute.Tensor, k: cute.Tensor, y: cute.Tensor, scale: cutlass.Float32, stream: CUstream):
    mma = cute.make_tiled_mma(warp.MmaTF32Op((16, 8, 8)), cute.make_layout((WARPS, 1, 1)))
    lookup_kernel(q, k, y, scale, mma).launch(
        grid=[cute.ceil_div(q.shape[1], BQ), q.shape[0], 1], block=[THREADS, 1, 1], stream=stream
    )


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.compiled = {}

    def forward(self, q, k):
        q, k = q.contiguous(), k.contiguous()
        heads, queries, width = q.shape
        if width != WIDTH or heads > 65535 or k.data_ptr() % 16:
            raise ValueError("expected at most 65535 heads of rows of 64, keys on 16 bytes")
        y = torch.empty_like(q)
        if not y.numel():
            return y
        views = [from_dlpack(q), from_dlpack(k, assumed_align=16), from_dlpack(y)]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (heads, queries, k.shape[1])
        if key not in self.compiled:
            self.compiled[key] = cute.compile(soft_lookup, *views, self.scale, stream)
        self.compiled[key](*views, self.scale, stream)
        return y
