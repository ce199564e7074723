import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

# Two launches: mean and squared distance of every tile, then each block merges the tiles of its sample and normalises one.
cpp_source = "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);"

cuda_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cute/tensor.hpp>

using namespace cute;

constexpr int THREADS = 256, WARPS = THREADS / 32, HELD = 8;  // float4 per thread
constexpr int QUADS = THREADS * HELD, TILE = 4 * QUADS;       // elements of a tile

// (THREADS, HELD): neighbouring threads take neighbouring float4 in every access.
using ByThread = Layout<Shape<Int<THREADS>, Int<HELD>>, Stride<_1, Int<THREADS>>>;

// The float4 of a thread in one tile of an array of `tiles` tiles.
template <class T>
__device__ auto of_thread(T* all, int tiles, int tile) {
  Tensor array = make_tensor(make_gmem_ptr(all), make_layout(make_shape(Int<QUADS>{}, tiles), make_stride(_1{}, int64_t(QUADS))));
  return array(_, tile).compose(ByThread{})(threadIdx.x, _);
}

__device__ float block_sum(float value) {
  __shared__ float of_warps[WARPS];
  for (int o = 16; o > 0; o >>= 1) value += __shfl_xor_sync(0xffffffffu, value, o);
  __syncthreads();  // the slots of the sum before have been read
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
  for (int w = 0; w < WARPS; ++w) value += of_warps[w];
  return value;
}

__global__ void __launch_bounds__(THREADS) tile_kernel(float4 const* __restrict__ x, float2* __restrict__ tiles) {
  Tensor from = of_thread(x, gridDim.x, blockIdx.x);
  Tensor held = make_fragment_like<float4>(from);
  copy(from, held);
  float sum = 0.0f;
  CUTE_UNROLL
  for (int i = 0; i < HELD; ++i) sum += (held(i).x + held(i).y) + (held(i).z + held(i).w);
  float const mean = block_sum(sum) / TILE;
  float far = 0.0f;
  CUTE_UNROLL
  for (int i = 0; i < HELD; ++i) {
    float const a = held(i).x - mean, b = held(i).y - mean, c = held(i).z - mean, d = held(i).w - mean;
    far += (a * a + b * b) + (c * c + d * d);
  }
  far = block_sum(far);
  if (threadIdx.x == 0) tiles[blockIdx.x] = make_float2(mean, far);
}

// Tiles of one sample are neighbours. Blocks go backwards over x: what the first launch read last is still in L2.
__global__ void __launch_bounds__(THREADS) norm_kernel(
    float4 const* __restrict__ x, float2 const* __restrict__ tiles, float4 const* __restrict__ weight,
    float4 const* __restrict__ bias, float4* __restrict__ y, int per_sample, float eps) {
  int const tile = gridDim.x - 1 - blockIdx.x, sample = tile / per_sample, part = tile % per_sample;
  float2 const* const mine = tiles + int64_t(sample) * per_sample;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < per_sample; i += THREADS) sum += mine[i].x;
  float const mean = block_sum(sum) / per_sample;
  float far = 0.0f;
  for (int i = threadIdx.x; i < per_sample; i += THREADS) {
    float const shift = mine[i].x - mean;
    far += mine[i].y + float(TILE) * shift * shift;
  }
  float const scale = rsqrtf(block_sum(far) / (float(per_sample) * TILE) + eps);
  Tensor from = of_thread(x, gridDim.x, tile);
  Tensor to = of_thread(y, gridDim.x, tile);
  Tensor by = of_thread(weight, per_sample, part);
  Tensor plus = of_thread(bias, per_sample, part);
  CUTE_UNROLL
  for (int i = 0; i < HELD; ++i) {
    float4 const v = __ldcs(&from(i)), w = by(i), b = plus(i);
    __stcs(&to(i), make_float4((v.x - mean) * scale * w.x + b.x, (v.y - mean) * scale * w.y + b.y,
                               (v.z - mean) * scale * w.z + b.z, (v.w - mean) * scale * w.w + b.w));
  }
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
  TORCH_CHECK(x.is_contiguous() && weight.is_contiguous() && bias.is_contiguous(), "expected contiguous tensors");
  int64_t const each = weight.numel();
  TORCH_CHECK(each > 0 && each % TILE == 0, "expected samples of a multiple of 8192 elements");
  TORCH_CHECK(reinterpret_cast<uintptr_t>(x.data_ptr<float>()) % 16 == 0, "expected a tensor that begins on 16 bytes");
  auto y = torch::empty_like(x);
  int const count = int(x.numel() / TILE);
  if (count == 0) return y;
  auto tiles = torch::empty({count, 2}, x.options());
  auto const stream = at::cuda::getCurrentCUDAStream();
  auto const from = reinterpret_cast<float4 const*>(x.data_ptr<float>());
  auto const kept = reinterpret_cast<float2*>(tiles.data_ptr<float>());
  tile_kernel<<<count, THREADS, 0, stream>>>(from, kept);
  norm_kernel<<<count, THREADS, 0, stream>>>(
      from, kept, reinterpret_cast<float4 const*>(weight.data_ptr<float>()),
      reinterpret_cast<float4 const*>(bias.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()),
      int(each / TILE), float(eps));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

extension = load_inline(name="layer_norm", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["layer_norm"])


class ModelNew(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        return extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
