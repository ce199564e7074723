import cutlass
import cutlass.cute as cute
import torch
import torch.nn as nn
from cuda.bindings.driver import CUstream
from cutlass import pipeline
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.utils import LayoutEnum, hopper_helpers

# Example: d = c + u @ v^T in one launch after the operands are split into two bfloat16 parts: with u' = (big, big, small) and
# v' = (big, small, big) side by side along K, one plain product adds the three that count. TMA fills STAGES tiles ahead, two warp
# groups multiply by wgmma, and the addition of c happens where the sums are, in registers.

BM, BN, BK, STAGES = 128, 128, 64, 4
THREADS = 256
PART = cutlass.BFloat16


@cute.kernel
def split_kernel(w: cute.Tensor, parts: cute.Tensor, small_at: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, row, _ = cute.arch.block_idx()
    k = block * THREADS + thread
    if k < parts.shape[1] // 3:
        value = cutlass.Float32(0.0)
        if k < w.shape[1]:
            value = w[row, k]
        big = value.to(PART)
        small = (value - big.to(cutlass.Float32)).to(PART)
        for i in cutlass.range_constexpr(3):
            if cutlass.const_expr(i == small_at):
                parts[row, k + i * (parts.shape[1] // 3)] = small
            else:
                parts[row, k + i * (parts.shape[1] // 3)] = big


@cute.kernel
def product_kernel(
    load_u: cute.CopyAtom, u: cute.Tensor, load_v: cute.CopyAtom, v: cute.Tensor, c: cute.Tensor, d: cute.Tensor,
    mma: cute.TiledMma, layout_u: cute.ComposedLayout, layout_v: cute.ComposedLayout,
):
    thread, _, _ = cute.arch.thread_idx()
    block_m, block_n, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.memory.SmemAllocator()
    shared_u = smem.allocate_tensor(PART, layout_u.outer, byte_alignment=1024, swizzle=layout_u.inner)
    shared_v = smem.allocate_tensor(PART, layout_v.outer, byte_alignment=1024, swizzle=layout_v.inner)
    tile_bytes = (BM + BN) * BK * PART.width // 8
    loads = pipeline.PipelineTmaAsync.create(
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS // 32),  # a warp releases a stage once
        tx_count=tile_bytes,
        barrier_storage=smem.allocate_array(cutlass.Int64, 2 * STAGES),
        cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
    )
    tiles_u = cute.local_tile(u, (BM, BK), (block_m, None))  # (BM, BK, tiles of K)
    tiles_v = cute.local_tile(v, (BN, BK), (block_n, None))
    one = cute.make_layout(1)
    to_u, from_u = cpasync.tma_partition(load_u, 0, one, cute.group_modes(shared_u, 0, 2), cute.group_modes(tiles_u, 0, 2))
    to_v, from_v = cpasync.tma_partition(load_v, 0, one, cute.group_modes(shared_v, 0, 2), cute.group_modes(tiles_v, 0, 2))

    # Operands are descriptors of shared memory, the same for the 128 threads of a warp group; the sums are each thread's own.
    group = cute.arch.make_warp_uniform(thread // 128)
    of_group = mma.get_slice(cute.make_layout(THREADS // 128, stride=128)(group))
    part_u = mma.make_fragment_A(of_group.partition_A(shared_u))
    part_v = mma.make_fragment_B(of_group.partition_B(shared_v))
    places = mma.get_slice(thread).partition_C(cute.make_identity_tensor((BM, BN)))
    sums = cute.make_rmem_tensor(places.shape, cutlass.Float32)
    sums.fill(0.0)
    mma.set(warpgroup.Field.ACCUMULATE, True)

    count = cute.size(tiles_u, mode=[2])
    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    used = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    if warp == 0:
        for _ in cutlass.range(cutlass.min(count, STAGES - 1), unroll=1):
            loads.producer_acquire(filled)
            full = loads.producer_get_barrier(filled)
            cute.copy(load_u, from_u[None, filled.count], to_u[None, filled.index], tma_bar_ptr=full)
            cute.copy(load_v, from_v[None, filled.count], to_v[None, filled.index], tma_bar_ptr=full)
            loads.producer_commit(filled)
            filled.advance()
    for _ in cutlass.range(count, unroll=1):
        loads.consumer_wait(used)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(part_u, mode=[2])):
            cute.gemm(mma, sums, part_u[None, None, k, used.index], part_v[None, None, k, used.index], sums)
        warpgroup.commit_group()
        if warp == 0 and filled.count < count:  # while the tensor cores work
            loads.producer_acquire(filled)
            full = loads.producer_get_barrier(filled)
            cute.copy(load_u, from_u[None, filled.count], to_u[None, filled.index], tma_bar_ptr=full)
            cute.copy(load_v, from_v[None, filled.count], to_v[None, filled.index], tma_bar_ptr=full)
            loads.producer_commit(filled)
            filled.advance()
        warpgroup.wait_group(0)
        loads.consumer_release(used)
        used.advance()

    for i in cutlass.range_constexpr(cute.size(sums)):
        m, n = block_m * BM + places[i][0], block_n * BN + places[i][1]
        if m < d.shape[0] and n < d.shape[1]:
            d[m, n] = sums[i] + c[m, n]


@cute.jit
def update(
    c: cute.Tensor, u: cute.Tensor, v: cute.Tensor, d: cute.Tensor, parts_u: cute.Tensor, parts_v: cute.Tensor,
    stream: CUstream,
):
    blocks = cute.ceil_div(parts_u.shape[1] // 3, THREADS)
    split_kernel(u, parts_u, 2).launch(grid=[blocks, u.shape[0], 1], block=[THREADS, 1, 1], stream=stream)
    split_kernel(v, parts_v, 1).launch(grid=[blocks, v.shape[0], 1], block=[THREADS, 1, 1], stream=stream)
    mma = hopper_helpers.make_trivial_tiled_mma(
        PART, PART, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, (THREADS // 128, 1, 1), (64, BN)
    )
    layout_u = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (BM, BN, BK), PART, STAGES)
    layout_v = hopper_helpers.make_smem_layout_b(LayoutEnum.ROW_MAJOR, (BM, BN, BK), PART, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp()
    load_u, tma_u = cpasync.make_tiled_tma_atom(op, parts_u, cute.slice_(layout_u, (None, None, 0)), (BM, BK))
    load_v, tma_v = cpasync.make_tiled_tma_atom(op, parts_v, cute.slice_(layout_v, (None, None, 0)), (BN, BK))
    product_kernel(load_u, tma_u, load_v, tma_v, c, d, mma, layout_u, layout_v).launch(
        grid=[cute.ceil_div(d.shape[0], BM), cute.ceil_div(d.shape[1], BN), 1], block=[THREADS, 1, 1], stream=stream
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, c, u, v):
        c, u, v = c.contiguous(), u.contiguous(), v.contiguous()
        d = torch.empty_like(c)
        (M, K), N = u.shape, v.shape[0]
        if not d.numel():
            return d
        wide = 3 * BK * ((K + BK - 1) // BK)
        parts = [torch.empty(rows, wide, dtype=torch.bfloat16, device=c.device) for rows in (M, N)]
        views = [from_dlpack(t) for t in (c, u, v, d)] + [from_dlpack(t, assumed_align=16) for t in parts]
        stream = CUstream(torch.cuda.current_stream().cuda_stream)
        key = (M, N, K)
        if key not in self.compiled:
            self.compiled[key] = cute.compile(update, *views, stream)
        self.compiled[key](*views, stream)
        return d
