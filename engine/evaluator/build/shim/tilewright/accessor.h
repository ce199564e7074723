// Tensor accessors: indexing by [i][j] with run-time strides, on the host and inside kernels.
#pragma once

#include <tilewright/tensor.h>

#if defined(__CUDACC__)
#define TILEWRIGHT_BOTH __host__ __device__ __forceinline__
#else
#define TILEWRIGHT_BOTH inline
#endif

namespace at {

template <class T>
struct DefaultPtrTraits { using PtrType = T*; };
template <class T>
struct RestrictPtrTraits { using PtrType = T* __restrict__; };

template <class T, size_t N, template <class> class Traits, class Index>
class TensorAccessor {
  typename Traits<T>::PtrType data_;
  const Index* sizes_;
  const Index* strides_;

 public:
  TILEWRIGHT_BOTH TensorAccessor(T* data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  TILEWRIGHT_BOTH decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) return (data_[strides_[0] * i]);
    else return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
  TILEWRIGHT_BOTH Index size(int i) const { return sizes_[i]; }
  TILEWRIGHT_BOTH Index stride(int i) const { return strides_[i]; }
  TILEWRIGHT_BOTH T* data() const { return data_; }
};

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class GenericPackedTensorAccessor {
  typename Traits<T>::PtrType data_;
  Index sizes_[N];
  Index strides_[N];

 public:
  GenericPackedTensorAccessor(T* data, IntArrayRef sizes, IntArrayRef strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  TILEWRIGHT_BOTH decltype(auto) operator[](Index i) const {
    if constexpr (N == 1) return (data_[strides_[0] * i]);
    else return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
  TILEWRIGHT_BOTH Index size(int i) const { return sizes_[i]; }
  TILEWRIGHT_BOTH Index stride(int i) const { return strides_[i]; }
  TILEWRIGHT_BOTH T* data() const { return data_; }
};
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;

template <class T, size_t N, template <class> class Traits>
auto Tensor::packed_accessor32() const {
  TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
  return PackedTensorAccessor32<T, N, Traits>(data_ptr<T>(), sizes(), strides());
}
template <class T, size_t N, template <class> class Traits>
auto Tensor::packed_accessor64() const {
  TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
  return PackedTensorAccessor64<T, N, Traits>(data_ptr<T>(), sizes(), strides());
}
template <class T, size_t N>
auto Tensor::packed_accessor32() const { return packed_accessor32<T, N, DefaultPtrTraits>(); }
template <class T, size_t N>
auto Tensor::packed_accessor64() const { return packed_accessor64<T, N, DefaultPtrTraits>(); }
template <class T, size_t N>
auto Tensor::accessor() const {
  TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
  return TensorAccessor<T, N, DefaultPtrTraits, int64_t>(data_ptr<T>(), sizes().data(), strides().data());
}

}  // namespace at

namespace torch {
using at::DefaultPtrTraits;
using at::PackedTensorAccessor32;
using at::PackedTensorAccessor64;
using at::RestrictPtrTraits;
}  // namespace torch
