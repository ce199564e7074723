import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: d = c + u @ v^T on tensor cores with float32's precision: every operand is split into two TF32 parts, and
# three products are added, for each tile of K by itself: a tensor core cuts off what it adds, and over a long sum that
# costs more than the parts do. Tiles come by cp.async into swizzled shared memory. Where TF32 itself is precise enough,
# one product and one sum will do.
cpp_source = "torch::Tensor update(torch::Tensor c, torch::Tensor u, torch::Tensor v);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>

using namespace cute;

constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3, THREADS = 128;

// Values in two parts of 11 bits, which a tensor core takes without loss.
template <class Values, class Part>
__device__ void split(Values const& values, Part& high, Part& low) {
  CUTE_UNROLL
  for (int i = 0; i < size(values); ++i) {
    high(i) = tfloat32_t(values(i));
    low(i) = tfloat32_t(values(i) - float(high(i)));
  }
}

__global__ void __launch_bounds__(THREADS) update_kernel(
    float const* c, float const* u, float const* v, float* d, int M, int N, int K) {
  Tensor mU = make_tensor(make_gmem_ptr(u), make_shape(M, K), make_stride(int64_t(K), _1{}));
  Tensor mV = make_tensor(make_gmem_ptr(v), make_shape(N, K), make_stride(int64_t(K), _1{}));
  Tensor mC = make_tensor(make_gmem_ptr(c), make_shape(M, N), make_stride(int64_t(N), _1{}));
  Tensor mD = make_tensor(make_gmem_ptr(d), make_shape(M, N), make_stride(int64_t(N), _1{}));
  auto tiler = Shape<Int<BM>, Int<BN>, Int<BK>>{};
  auto at = make_coord(blockIdx.y, blockIdx.x, _);
  Tensor gU = local_tile(mU, tiler, at, Step<_1, X, _1>{});  // (BM, BK, k)
  Tensor gV = local_tile(mV, tiler, at, Step<X, _1, _1>{});  // (BN, BK, k)
  Tensor cU = local_tile(make_identity_tensor(shape(mU)), tiler, at, Step<_1, X, _1>{});
  Tensor cV = local_tile(make_identity_tensor(shape(mV)), tiler, at, Step<X, _1, _1>{});

  // Rows of 32 floats are 128 bytes: without the swizzle, which exchanges 16-byte pieces by the row's number, the eight
  // rows that a fragment reads would lie in the same four banks.
  auto piece = composition(Swizzle<3, 2, 3>{}, Layout<Shape<_8, Int<BK>>, Stride<Int<BK>, _1>>{});
  auto layoutU = tile_to_shape(piece, Shape<Int<BM>, Int<BK>, Int<STAGES>>{});
  auto layoutV = tile_to_shape(piece, Shape<Int<BN>, Int<BK>, Int<STAGES>>{});
  __shared__ alignas(128) float smemU[cosize_v<decltype(layoutU)>], smemV[cosize_v<decltype(layoutV)>];
  Tensor sU = make_tensor(make_smem_ptr(smemU), layoutU);
  Tensor sV = make_tensor(make_smem_ptr(smemV), layoutV);

  auto copying = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>, float>{},
                                 Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _4>>{});
  auto mine = copying.get_slice(threadIdx.x);
  Tensor tUgU = mine.partition_S(gU);  // (4, BM / 16, 1, k)
  Tensor tVgV = mine.partition_S(gV);
  Tensor tUcU = mine.partition_S(cU);
  Tensor tVcV = mine.partition_S(cV);
  Tensor tUsU = mine.partition_D(sU);  // (4, BM / 16, 1, STAGES)
  Tensor tVsV = mine.partition_D(sV);
  int const tiles = size<2>(gU);
  auto load = [&](int t) {
    int const stage = t % STAGES;
    if (t < tiles) {
      CUTE_UNROLL
      for (int i = 0; i < size<1>(tUsU); ++i)  // what lies outside is filled with zeros
        copy(copying.with(elem_less(tUcU(_0{}, i, _0{}, t), shape(mU))), tUgU(_, i, _, t), tUsU(_, i, _, stage));
      CUTE_UNROLL
      for (int i = 0; i < size<1>(tVsV); ++i)
        copy(copying.with(elem_less(tVcV(_0{}, i, _0{}, t), shape(mV))), tVgV(_, i, _, t), tVsV(_, i, _, stage));
    }
    cp_async_fence();  // also where nothing was loaded: waiting counts fences
  };

  TiledMMA mma = make_tiled_mma(SM80_16x8x8_F32TF32TF32F32_TN{}, Layout<Shape<_2, _2>>{});  // 4 warps: 32 x 16 x 8
  auto thread = mma.get_slice(threadIdx.x);
  Tensor tDsU = thread.partition_A(sU);  // (MMA, MMA_M, MMA_K, STAGES)
  Tensor tDsV = thread.partition_B(sV);  // (MMA, MMA_N, MMA_K, STAGES)
  Tensor tDgC = thread.partition_C(local_tile(mC, tiler, at, Step<_1, _1, X>{}));  // (MMA, MMA_M, MMA_N)
  Tensor tDgD = thread.partition_C(local_tile(mD, tiler, at, Step<_1, _1, X>{}));
  Tensor tDcD = thread.partition_C(local_tile(make_identity_tensor(shape(mD)), tiler, at, Step<_1, _1, X>{}));
  Tensor sum = thread.make_fragment_C(tDgD);
  Tensor of_tile = make_fragment_like(sum);
  clear(sum);
  Tensor u_high = make_fragment_like<tfloat32_t>(tDsU(_, _, _0{}, _0{}));  // one step along K
  Tensor v_high = make_fragment_like<tfloat32_t>(tDsV(_, _, _0{}, _0{}));
  Tensor u_low = make_fragment_like<tfloat32_t>(tDsU(_, _, _0{}, _0{}));
  Tensor v_low = make_fragment_like<tfloat32_t>(tDsV(_, _, _0{}, _0{}));

  for (int t = 0; t < STAGES - 1; ++t) load(t);
  for (int t = 0; t < tiles; ++t) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();       // tile t has arrived, and nobody reads tile t - 1 any more
    load(t + STAGES - 1);  // into the stage of tile t - 1
    clear(of_tile);
    CUTE_UNROLL
    for (int k = 0; k < size<2>(tDsU); ++k) {
      split(tDsU(_, _, k, t % STAGES), u_high, u_low);
      split(tDsV(_, _, k, t % STAGES), v_high, v_low);
      gemm(mma, u_low, v_high, of_tile);
      gemm(mma, u_high, v_low, of_tile);
      gemm(mma, u_high, v_high, of_tile);
    }
    CUTE_UNROLL
    for (int i = 0; i < size(sum); ++i) sum(i) += of_tile(i);  // rounded, as the cores do not
  }
  CUTE_UNROLL
  for (int i = 0; i < size(sum); ++i)
    if (elem_less(tDcD(i), shape(mD))) tDgD(i) = tDgC(i) + sum(i);
}

torch::Tensor update(torch::Tensor c, torch::Tensor u, torch::Tensor v) {
  TORCH_CHECK(c.is_contiguous() && u.is_contiguous() && v.is_contiguous(), "expected contiguous tensors");
  int const M = u.size(0), N = v.size(0), K = u.size(1);
  TORCH_CHECK(K % 4 == 0, "expected a multiple of 4 columns: cp.async moves 16 aligned bytes");
  auto d = torch::empty_like(c);
  if (M == 0 || N == 0) return d;
  dim3 const grid((N + BN - 1) / BN, (M + BM - 1) / BM);
  update_kernel<<<grid, THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      c.data_ptr<float>(), u.data_ptr<float>(), v.data_ptr<float>(), d.data_ptr<float>(), M, N, K);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return d;
}
"""

extension = load_inline(name="update", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["update"])


class ModelNew(nn.Module):
    def forward(self, c, u, v):
        return extension.update(c, u, v)
