import torch
import torch.nn as nn
import triton
import triton.language as tl

# Three TF32 products a float32 one. Tensor cores cut off what they add, so a tile's sum is added outside of them: the factor
# `one`, known only at run time, keeps the compiler from adding it inside.


@triton.autotune(
    configs=[
        triton.Config({"BM": bm, "BN": bn, "BK": 32}, num_warps=warps, num_stages=stages)
        for bm, bn, warps, stages in ((128, 128, 8, 3), (128, 64, 4, 3), (64, 128, 4, 4), (128, 128, 4, 2))
    ],
    key=["M", "N", "K"],
)
@triton.jit
def product_kernel(a, b, c, M, N, K, one, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    down, across = tl.num_programs(0), tl.num_programs(1)
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), down, across, 8)  # neighbours share tiles in L2
    m, n, k = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    from_a = a + m.to(tl.int64)[:, None] * K + k[None, :]
    from_b = b + k.to(tl.int64)[:, None] * N + n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        is_k = k < K - first
        u = tl.load(from_a, mask=(m < M)[:, None] & is_k[None, :], other=0.0)
        v = tl.load(from_b, mask=is_k[:, None] & (n < N)[None, :], other=0.0)
        total += tl.dot(u, v, input_precision="tf32x3") * one
        from_a += BK
        from_b += BK * N
    tl.store(c + m.to(tl.int64)[:, None] * N + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :])


class ModelNew(nn.Module):
    def forward(self, A, B):
        a, b = A.contiguous(), B.contiguous()
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty(M, N, dtype=torch.float32, device=a.device)
        grid = lambda chosen: (triton.cdiv(M, chosen["BM"]), triton.cdiv(N, chosen["BN"]))
        product_kernel[grid](a, b, c, M, N, K, 1.0)
        return c
