import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: z[i] = log of the sum over j of exp(scale * q[i] . k[j]), for (H, L, D) queries and keys. The scores are
# never stored: a warp walks over tiles of keys with a running maximum and a running sum, rescaled when the maximum
# moves.
cpp_source = "torch::Tensor score_total(torch::Tensor q, torch::Tensor k, double scale);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>

using namespace cute;

// A warp has EACH queries, a lane one key of a tile.
constexpr int BK = 32, D = 64, WARPS = 8, EACH = 4, BQ = WARPS * EACH;

__global__ void score_kernel(float const* q, float const* k, float* z, int L, float scale) {
  int64_t const plane = int64_t(blockIdx.y) * L;
  Tensor mQ = make_tensor(make_gmem_ptr(q + plane * D), make_shape(L, Int<D>{}), make_stride(Int<D>{}, _1{}));
  Tensor mK = make_tensor(make_gmem_ptr(k + plane * D), make_shape(L, Int<D>{}), make_stride(Int<D>{}, _1{}));
  Tensor mZ = make_tensor(make_gmem_ptr(z + plane), make_shape(L));
  // One float of padding: the lanes of a warp read a column of keys from 32 different banks.
  __shared__ float smemQ[BQ * D], smemK[BK * (D + 1)];
  Tensor sQ = make_tensor(make_smem_ptr(smemQ), Layout<Shape<Int<BQ>, Int<D>>, Stride<Int<D>, _1>>{});
  Tensor sK = make_tensor(make_smem_ptr(smemK), Layout<Shape<Int<BK>, Int<D>>, Stride<Int<D + 1>, _1>>{});
  int const q0 = blockIdx.x * BQ, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < BQ * D; i += WARPS * 32)
    sQ(i / D, i % D) = q0 + i / D < L ? scale * mQ(q0 + i / D, i % D) : 0.0f;

  float highest[EACH], sum[EACH];
  for (int e = 0; e < EACH; ++e) highest[e] = -INFINITY, sum[e] = 0.0f;
  for (int k0 = 0; k0 < L; k0 += BK) {
    __syncthreads();  // nobody reads the tile of before any more
    for (int i = threadIdx.x; i < BK * D; i += WARPS * 32)
      sK(i / D, i % D) = k0 + i / D < L ? mK(k0 + i / D, i % D) : 0.0f;
    __syncthreads();
    float score[EACH] = {};
    for (int d = 0; d < D; ++d)
      CUTE_UNROLL
      for (int e = 0; e < EACH; ++e) score[e] += sQ(warp * EACH + e, d) * sK(lane, d);
    if (k0 + lane < L)
      CUTE_UNROLL
      for (int e = 0; e < EACH; ++e) {
        float const top = fmaxf(highest[e], score[e]);
        sum[e] = sum[e] * expf(highest[e] - top) + expf(score[e] - top);
        highest[e] = top;
      }
  }
  // Each lane has met other keys: maxima and sums of the lanes are merged in the same way.
  for (int e = 0; e < EACH; ++e) {
    float top = highest[e];
    for (int o = 16; o > 0; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, o));
    float part = sum[e] * expf(highest[e] - top);
    for (int o = 16; o > 0; o >>= 1) part += __shfl_xor_sync(0xffffffffu, part, o);
    int const row = q0 + warp * EACH + e;
    if (lane == 0 && row < L) mZ(row) = top + logf(part);
  }
}

torch::Tensor score_total(torch::Tensor q, torch::Tensor k, double scale) {
  TORCH_CHECK(q.dim() == 3 && q.is_contiguous() && k.is_contiguous() && q.size(2) == D, "expected (H, L, 64)");
  int const heads = q.size(0), L = q.size(1);
  TORCH_CHECK(k.size(1) == L && heads <= 65535, "expected as many keys as queries");
  auto z = torch::empty({heads, L}, q.options());
  if (heads == 0 || L == 0) return z;
  score_kernel<<<dim3((L + BQ - 1) / BQ, heads), WARPS * 32, 0, at::cuda::getCurrentCUDAStream()>>>(
      q.data_ptr<float>(), k.data_ptr<float>(), z.data_ptr<float>(), L, static_cast<float>(scale));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return z;
}
"""

extension = load_inline(
    name="score_total", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["score_total"]
)


class ModelNew(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, q, k):
        return extension.score_total(q, k, self.scale)
