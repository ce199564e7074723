import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: d = c + u @ v^T on a Hopper GPU, in TF32: the copy engine (TMA) brings tiles to shared memory, three stages
# deep, and a warpgroup's instructions (wgmma) read them there.
cpp_source = "torch::Tensor update(torch::Tensor c, torch::Tensor u, torch::Tensor v);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/arch/copy_sm90_desc.hpp>
#include <cutlass/arch/barrier.h>

using namespace cute;

constexpr int BM = 128, BN = 128, BK = 32, STAGES = 3, THREADS = 128;  // one warpgroup
// Rows of BK floats are 128 bytes: the layout that TMA writes and wgmma reads, swizzled in 16-byte pieces.
using Swizzled = GMMA::Layout_K_SW128_Atom<tfloat32_t>;
using LayoutU = decltype(tile_to_shape(Swizzled{}, Shape<Int<BM>, Int<BK>, Int<STAGES>>{}));
using LayoutV = decltype(tile_to_shape(Swizzled{}, Shape<Int<BN>, Int<BK>, Int<STAGES>>{}));

struct Storage {
  alignas(1024) tfloat32_t u[cosize_v<LayoutU>];
  alignas(1024) tfloat32_t v[cosize_v<LayoutV>];
  uint64_t arrived[STAGES];
};

template <class TmaU, class TmaV>
__global__ void __launch_bounds__(THREADS) update_kernel(
    __grid_constant__ TmaU const tma_u, __grid_constant__ TmaV const tma_v, float const* c, float* d, int M, int N,
    int K) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage& smem = *reinterpret_cast<Storage*>(memory);
  Tensor sU = make_tensor(make_smem_ptr(smem.u), LayoutU{});
  Tensor sV = make_tensor(make_smem_ptr(smem.v), LayoutV{});
  auto tiler = Shape<Int<BM>, Int<BN>, Int<BK>>{};
  auto at = make_coord(blockIdx.y, blockIdx.x, _);
  // TMA takes coordinates, not addresses; what lies outside the tensor arrives as zeros.
  Tensor gU = local_tile(tma_u.get_tma_tensor(make_shape(M, K)), tiler, at, Step<_1, X, _1>{});  // (BM, BK, k)
  Tensor gV = local_tile(tma_v.get_tma_tensor(make_shape(N, K)), tiler, at, Step<X, _1, _1>{});  // (BN, BK, k)
  auto [tUgU, tUsU] = tma_partition(tma_u, _0{}, Layout<_1>{}, group_modes<0, 2>(sU), group_modes<0, 2>(gU));
  auto [tVgV, tVsV] = tma_partition(tma_v, _0{}, Layout<_1>{}, group_modes<0, 2>(sV), group_modes<0, 2>(gV));
  constexpr int BYTES = (BM + BN) * BK * sizeof(tfloat32_t);  // of one stage
  int const tiles = size<2>(gU);
  auto load = [&](int t) {
    if (threadIdx.x == 0 && t < tiles) {
      uint64_t& arrived = smem.arrived[t % STAGES];
      set_barrier_transaction_bytes(arrived, BYTES);
      copy(tma_u.with(arrived), tUgU(_, t), tUsU(_, t % STAGES));
      copy(tma_v.with(arrived), tVgV(_, t), tVsV(_, t % STAGES));
    }
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) initialize_barrier(smem.arrived[s], 1);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();

  TiledMMA mma = make_tiled_mma(SM90_64x128x8_F32TF32TF32_SS_TN<>{});
  auto thread = mma.get_slice(threadIdx.x);
  Tensor tDrU = thread.make_fragment_A(thread.partition_A(sU));  // descriptors: (1, MMA_M, MMA_K, STAGES)
  Tensor tDrV = thread.make_fragment_B(thread.partition_B(sV));
  Tensor mC = make_tensor(make_gmem_ptr(c), make_shape(M, N), make_stride(int64_t(N), _1{}));
  Tensor mD = make_tensor(make_gmem_ptr(d), make_shape(M, N), make_stride(int64_t(N), _1{}));
  Tensor tDgC = thread.partition_C(local_tile(mC, tiler, at, Step<_1, _1, X>{}));
  Tensor tDgD = thread.partition_C(local_tile(mD, tiler, at, Step<_1, _1, X>{}));
  Tensor tDcD = thread.partition_C(local_tile(make_identity_tensor(shape(mD)), tiler, at, Step<_1, _1, X>{}));
  Tensor sum = thread.make_fragment_C(tDgD);
  clear(sum);

  for (int t = 0; t < STAGES - 1; ++t) load(t);
  for (int t = 0; t < tiles; ++t) {
    load(t + STAGES - 1);  // into the stage of tile t - 1, which everybody has left
    wait_barrier(smem.arrived[t % STAGES], t / STAGES % 2);
    warpgroup_fence_operand(sum);
    warpgroup_arrive();
    gemm(mma, tDrU(_, _, _, t % STAGES), tDrV(_, _, _, t % STAGES), sum);
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    warpgroup_fence_operand(sum);
    __syncthreads();
  }
  CUTE_UNROLL
  for (int i = 0; i < size(sum); ++i)
    if (elem_less(tDcD(i), shape(mD))) tDgD(i) = tDgC(i) + sum(i);
}

torch::Tensor update(torch::Tensor c, torch::Tensor u, torch::Tensor v) {
  TORCH_CHECK(c.is_contiguous() && u.is_contiguous() && v.is_contiguous(), "expected contiguous tensors");
  int const M = u.size(0), N = v.size(0), K = u.size(1);
  TORCH_CHECK(K % 4 == 0, "expected a multiple of 4 columns: TMA wants rows of whole 16 bytes");
  auto d = torch::empty_like(c);
  if (M == 0 || N == 0) return d;
  auto in = [](torch::Tensor const& x) {
    return make_gmem_ptr(reinterpret_cast<tfloat32_t const*>(x.data_ptr<float>()));
  };
  Tensor mU = make_tensor(in(u), make_shape(M, K), make_stride(int64_t(K), _1{}));
  Tensor mV = make_tensor(in(v), make_shape(N, K), make_stride(int64_t(K), _1{}));
  auto tma_u = make_tma_atom(SM90_TMA_LOAD{}, mU, LayoutU{}(_, _, _0{}), Shape<Int<BM>, Int<BK>>{});
  auto tma_v = make_tma_atom(SM90_TMA_LOAD{}, mV, LayoutV{}(_, _, _0{}), Shape<Int<BN>, Int<BK>>{});
  auto kernel = update_kernel<decltype(tma_u), decltype(tma_v)>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(Storage))));
  dim3 const grid((N + BN - 1) / BN, (M + BM - 1) / BM);
  kernel<<<grid, THREADS, sizeof(Storage), at::cuda::getCurrentCUDAStream()>>>(
      tma_u, tma_v, c.data_ptr<float>(), d.data_ptr<float>(), M, N, K);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return d;
}
"""

extension = load_inline(
    name="update",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["update"],
    extra_cuda_cflags=["-gencode=arch=compute_90a,code=sm_90a"],
)


class ModelNew(nn.Module):
    def forward(self, c, u, v):
        return extension.update(c, u, v)
