import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Example: d = c + u @ v^T on a Blackwell GPU (sm_100a), in TF32: the copy engine (TMA) brings tiles to shared memory,
# tcgen05 instructions add their product in tensor memory, and each thread loads one row of it for the last step.
# This file has been compiled for sm_100a; it has not been run.
cpp_source = "torch::Tensor update(torch::Tensor c, torch::Tensor u, torch::Tensor v);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/arch/copy_sm90_desc.hpp>
#include <cute/arch/tmem_allocator_sm100.hpp>
#include <cutlass/arch/barrier.h>

using namespace cute;

constexpr int BM = 128, BN = 128, BK = 32, THREADS = 128;
using Tiler = Shape<Int<BM>, Int<BN>, Int<BK>>;
using Instruction = SM100_MMA_TF32_SS<tfloat32_t, tfloat32_t, float, BM, BN, UMMA::Major::K, UMMA::Major::K>;
using Mma = decltype(make_tiled_mma(Instruction{}));
using Swizzled = UMMA::Layout_K_SW128_Atom<tfloat32_t>;
using LayoutU = decltype(UMMA::tile_to_mma_shape(Swizzled{}, partition_shape_A(Mma{}, Shape<Int<BM>, Int<BK>>{})));
using LayoutV = decltype(UMMA::tile_to_mma_shape(Swizzled{}, partition_shape_B(Mma{}, Shape<Int<BN>, Int<BK>>{})));

struct Storage {
  alignas(1024) tfloat32_t u[cosize_v<LayoutU>];
  alignas(1024) tfloat32_t v[cosize_v<LayoutV>];
  alignas(16) uint64_t arrived;
  alignas(16) uint64_t multiplied;
  alignas(16) uint32_t tensor_memory;
};

template <class TmaU, class TmaV>
__global__ void __launch_bounds__(THREADS) update_kernel(
    __grid_constant__ TmaU const tma_u, __grid_constant__ TmaV const tma_v, float const* c, float* d, int M, int N,
    int K) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Storage& smem = *reinterpret_cast<Storage*>(memory);
  Tensor sU = make_tensor(make_smem_ptr(smem.u), LayoutU{});  // (MMA, MMA_M, MMA_K)
  Tensor sV = make_tensor(make_smem_ptr(smem.v), LayoutV{});  // (MMA, MMA_N, MMA_K)
  auto at = make_coord(blockIdx.y, blockIdx.x, _);
  Tensor mC = make_tensor(make_gmem_ptr(c), make_shape(M, N), make_stride(int64_t(N), _1{}));
  Tensor mD = make_tensor(make_gmem_ptr(d), make_shape(M, N), make_stride(int64_t(N), _1{}));

  Mma mma;
  auto block = mma.get_slice(_0{});  // the instruction belongs to the block, not to a thread
  Tensor gU = block.partition_A(local_tile(tma_u.get_tma_tensor(make_shape(M, K)), Tiler{}, at, Step<_1, X, _1>{}));
  Tensor gV = block.partition_B(local_tile(tma_v.get_tma_tensor(make_shape(N, K)), Tiler{}, at, Step<X, _1, _1>{}));
  Tensor gC = block.partition_C(local_tile(mC, Tiler{}, at, Step<_1, _1, X>{}));  // (MMA, MMA_M, MMA_N)
  Tensor gD = block.partition_C(local_tile(mD, Tiler{}, at, Step<_1, _1, X>{}));
  Tensor cD = block.partition_C(local_tile(make_identity_tensor(shape(mD)), Tiler{}, at, Step<_1, _1, X>{}));
  auto [tUgU, tUsU] = tma_partition(tma_u, _0{}, Layout<_1>{}, group_modes<0, 3>(sU), group_modes<0, 3>(gU));
  auto [tVgV, tVsV] = tma_partition(tma_v, _0{}, Layout<_1>{}, group_modes<0, 3>(sV), group_modes<0, 3>(gV));
  Tensor rU = block.make_fragment_A(sU);    // descriptors of shared memory
  Tensor rV = block.make_fragment_B(sV);
  Tensor sum = block.make_fragment_C(gD);   // in tensor memory

  bool const is_first_warp = threadIdx.x < 32;
  TMEM::Allocator1Sm allocator{};
  if (is_first_warp) allocator.allocate(BN, &smem.tensor_memory);  // columns, a power of two from 32
  if (threadIdx.x == 0) {
    initialize_barrier(smem.arrived, 1);
    initialize_barrier(smem.multiplied, 1);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  sum.data() = smem.tensor_memory;

  constexpr int BYTES = (BM + BN) * BK * sizeof(tfloat32_t);
  mma.accumulate_ = UMMA::ScaleOut::Zero;  // the first product overwrites
  for (int t = 0; t < size<3>(gU); ++t) {
    if (threadIdx.x == 0) {
      set_barrier_transaction_bytes(smem.arrived, BYTES);
      copy(tma_u.with(smem.arrived), tUgU(_, t), tUsU);
      copy(tma_v.with(smem.arrived), tVgV(_, t), tVsV);
    }
    wait_barrier(smem.arrived, t % 2);
    if (is_first_warp) {
      for (int k = 0; k < size<2>(rU); ++k) {
        gemm(mma, rU(_, _, k), rV(_, _, k), sum);
        mma.accumulate_ = UMMA::ScaleOut::One;
      }
      cutlass::arch::umma_arrive(&smem.multiplied);
    }
    wait_barrier(smem.multiplied, t % 2);  // the tiles may be overwritten
  }

  TiledCopy load = make_tmem_copy(SM100_TMEM_LOAD_32dp32b1x{}, sum);
  auto thread = load.get_slice(threadIdx.x);
  Tensor tC = thread.partition_D(gC);
  Tensor tD = thread.partition_D(gD);
  Tensor place = thread.partition_D(cD);
  Tensor result = make_tensor<float>(shape(tD));
  copy(load, thread.partition_S(sum), result);
  CUTE_UNROLL
  for (int i = 0; i < size(result); ++i)
    if (elem_less(place(i), shape(mD))) tD(i) = tC(i) + result(i);
  __syncthreads();
  if (is_first_warp) {
    allocator.release_allocation_lock();
    allocator.free(smem.tensor_memory, BN);
  }
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
  auto tma_u = make_tma_atom(SM90_TMA_LOAD{}, mU, LayoutU{}, Shape<Int<BM>, Int<BK>>{});
  auto tma_v = make_tma_atom(SM90_TMA_LOAD{}, mV, LayoutV{}, Shape<Int<BN>, Int<BK>>{});
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
    extra_cuda_cflags=["-gencode=arch=compute_100a,code=sm_100a"],
)


class ModelNew(nn.Module):
    def forward(self, c, u, v):
        return extension.update(c, u, v)
