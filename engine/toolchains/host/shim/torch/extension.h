// Stands in for <torch/extension.h>: a small torch::Tensor over the stable ABI, without ATen and without pybind11.
// What is missing here makes the build fall back to the real header; it never makes a candidate fail.
#pragma once

#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace torch {

using headeronly::DeviceType;
using headeronly::ScalarType;
using stable::Device;
using Dtype = ScalarType;

constexpr auto kFloat = ScalarType::Float, kFloat32 = ScalarType::Float;
constexpr auto kDouble = ScalarType::Double, kFloat64 = ScalarType::Double;
constexpr auto kHalf = ScalarType::Half, kFloat16 = ScalarType::Half;
constexpr auto kBFloat16 = ScalarType::BFloat16;
constexpr auto kInt = ScalarType::Int, kInt32 = ScalarType::Int;
constexpr auto kLong = ScalarType::Long, kInt64 = ScalarType::Long;
constexpr auto kShort = ScalarType::Short, kInt16 = ScalarType::Short;
constexpr auto kChar = ScalarType::Char, kInt8 = ScalarType::Char;
constexpr auto kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte;
constexpr auto kBool = ScalarType::Bool;
constexpr auto kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

// A borrowed list of sizes; also made from a braced list or a vector that outlives the call.
class IntArrayRef : public headeronly::IntHeaderOnlyArrayRef {
 public:
  using headeronly::IntHeaderOnlyArrayRef::IntHeaderOnlyArrayRef;
  IntArrayRef(const headeronly::IntHeaderOnlyArrayRef& other) : headeronly::IntHeaderOnlyArrayRef(other) {}
  IntArrayRef(const std::vector<int64_t>& sizes) : headeronly::IntHeaderOnlyArrayRef(sizes.data(), sizes.size()) {}
  IntArrayRef(const std::initializer_list<int64_t>& sizes)
      : headeronly::IntHeaderOnlyArrayRef(sizes.begin(), sizes.size()) {}
};

inline bool operator==(const IntArrayRef& a, const IntArrayRef& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}
inline bool operator!=(const IntArrayRef& a, const IntArrayRef& b) { return !(a == b); }

struct TensorOptions {
  ScalarType type = kFloat;
  TensorOptions() = default;
  TensorOptions(ScalarType t) : type(t) {}
  ScalarType dtype() const { return type; }
  TensorOptions dtype(ScalarType t) const { return TensorOptions(t); }
  template <class AnyDevice>
  TensorOptions device(const AnyDevice&) const { return *this; }
  template <class AnyDevice>
  TensorOptions device(const AnyDevice&, int) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
};
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
template <class AnyDevice>
inline TensorOptions device(const AnyDevice&) { return TensorOptions(); }

class Tensor : public stable::Tensor {
 public:
  using stable::Tensor::Tensor;
  Tensor(const stable::Tensor& t) : stable::Tensor(t) {}

  template <class T>
  T* data_ptr() const { return static_cast<T*>(stable::Tensor::data_ptr()); }
  void* data_ptr() const { return stable::Tensor::data_ptr(); }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const { return data_ptr<std::remove_const_t<T>>(); }
  template <class T>
  T* mutable_data_ptr() const { return data_ptr<T>(); }

  IntArrayRef sizes() const { return stable::Tensor::sizes(); }
  IntArrayRef strides() const { return stable::Tensor::strides(); }
  int64_t ndimension() const { return dim(); }
  int64_t itemsize() const { return static_cast<int64_t>(element_size()); }
  int64_t nbytes() const { return numel() * itemsize(); }
  ScalarType dtype() const { return scalar_type(); }
  TensorOptions options() const { return TensorOptions(scalar_type()); }
  bool is_floating_point() const {
    auto t = scalar_type();
    return t == kFloat || t == kDouble || t == kHalf || t == kBFloat16;
  }

  Tensor contiguous() const { return is_contiguous() ? *this : Tensor(stable::contiguous(*this)); }
  Tensor clone() const { return stable::clone(*this); }
  Tensor detach() const { return *this; }
  Tensor cpu() const { return *this; }
  Tensor view(IntArrayRef shape) const { return stable::view(*this, shape); }
  Tensor reshape(IntArrayRef shape) const { return stable::reshape(*this, shape); }
  Tensor flatten(int64_t start = 0, int64_t end = -1) const { return stable::flatten(*this, start, end); }
  Tensor transpose(int64_t a, int64_t b) const { return stable::transpose(*this, a, b); }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor unsqueeze(int64_t d) const { return stable::unsqueeze(*this, d); }
  Tensor squeeze(int64_t d) const { return stable::squeeze(*this, d); }
  Tensor select(int64_t d, int64_t i) const { return stable::select(*this, d, i); }
  Tensor narrow(int64_t d, int64_t start, int64_t n) const {
    stable::Tensor whole = *this;
    return stable::narrow(whole, d, start, n);
  }
  Tensor to(ScalarType t) const { return t == scalar_type() ? *this : Tensor(stable::to(*this, t)); }
  Tensor& zero_() { stable::Tensor self = *this; stable::zero_(self); return *this; }
  Tensor& fill_(double value) { stable::Tensor self = *this; stable::fill_(self, value); return *this; }
  Tensor& copy_(const Tensor& other) { stable::Tensor self = *this; stable::copy_(self, other); return *this; }
};

inline Tensor empty(IntArrayRef sizes, TensorOptions o = {}) { return stable::empty(sizes, o.type); }
inline Tensor zeros(IntArrayRef sizes, TensorOptions o = {}) { return Tensor(stable::empty(sizes, o.type)).zero_(); }
inline Tensor full(IntArrayRef sizes, double value, TensorOptions o = {}) {
  return Tensor(stable::empty(sizes, o.type)).fill_(value);
}
inline Tensor ones(IntArrayRef sizes, TensorOptions o = {}) { return full(sizes, 1.0, o); }
inline Tensor empty_like(const Tensor& t) { return stable::empty_like(t); }
inline Tensor empty_like(const Tensor& t, TensorOptions o) { return empty(t.sizes(), o); }
inline Tensor zeros_like(const Tensor& t) { return empty_like(t).zero_(); }
inline Tensor zeros_like(const Tensor& t, TensorOptions o) { return zeros(t.sizes(), o); }
inline Tensor ones_like(const Tensor& t) { return empty_like(t).fill_(1.0); }
template <class F>
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) { stable::parallel_for(begin, end, grain, f); }
inline int get_num_threads() { return static_cast<int>(stable::get_num_threads()); }

}  // namespace torch

namespace at {
using namespace torch;
}
namespace c10 {
using torch::Device;
using torch::DeviceType;
using torch::IntArrayRef;
using torch::ScalarType;
using torch::TensorOptions;
template <class T>
using optional = std::optional<T>;
using std::nullopt;
}  // namespace c10

#define TORCH_CHECK(...) STD_TORCH_CHECK(__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(...) STD_TORCH_CHECK(__VA_ARGS__)
#define AT_ASSERTM(...) STD_TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) STD_TORCH_CHECK((a) == (b), #a " must equal " #b)
#define CHECK_CONTIGUOUS_TENSOR(x) STD_TORCH_CHECK((x).is_contiguous(), #x " must be contiguous")

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...)                        \
  [&] {                                                                    \
    switch (TYPE) {                                                        \
      case torch::kFloat: { using scalar_t = float; return __VA_ARGS__(); }   \
      case torch::kDouble: { using scalar_t = double; return __VA_ARGS__(); } \
      default: throw std::runtime_error(NAME ": not implemented for this dtype"); \
    }                                                                      \
  }()

HIDDEN_NAMESPACE_BEGIN(torch, stable, detail)
template <>
struct ToImpl<torch::Tensor> {
  static torch::Tensor call(StableIValue value, uint64_t, bool) { return torch::Tensor(to<AtenTensorHandle>(value)); }
};
template <>
struct FromImpl<torch::Tensor> {
  static StableIValue call(const torch::Tensor& value, uint64_t version, bool internal) {
    return FromImpl<torch::stable::Tensor>::call(value, version, internal);
  }
};
HIDDEN_NAMESPACE_END(torch, stable, detail)

namespace tilewright {

// How a C++ type travels through the dispatcher, and what the schema calls it.
template <class T, class = void>
struct Carried {
  static_assert(sizeof(T) == 0, "tilewright_shim: this parameter or return type needs the stock torch/extension.h");
};
template <>
struct Carried<torch::Tensor> { using type = torch::Tensor; static std::string name() { return "Tensor"; } };
template <>
struct Carried<bool> { using type = bool; static std::string name() { return "bool"; } };
template <class T>
struct Carried<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  using type = int64_t;
  static std::string name() { return "int"; }
};
template <class T>
struct Carried<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  using type = double;
  static std::string name() { return "float"; }
};
template <>
struct Carried<std::string> { using type = std::string; static std::string name() { return "str"; } };
template <>
struct Carried<std::vector<torch::Tensor>> {
  using type = std::vector<torch::Tensor>;
  static std::string name() { return "Tensor[]"; }
};
template <>
struct Carried<std::vector<int64_t>> { using type = std::vector<int64_t>; static std::string name() { return "int[]"; } };
template <>
struct Carried<std::optional<torch::Tensor>> {
  using type = std::optional<torch::Tensor>;
  static std::string name() { return "Tensor?"; }
};

template <class R>
struct Returned {
  using type = typename Carried<R>::type;
  static std::string name() { return Carried<R>::name(); }
};
template <>
struct Returned<void> { using type = void; static std::string name() { return "()"; } };
template <class... R>
struct Returned<std::tuple<R...>> {
  using type = std::tuple<typename Carried<R>::type...>;
  static std::string name() {
    std::string all;
    ((all += (all.empty() ? "" : ", ") + Carried<R>::name()), ...);
    return "(" + all + ")";
  }
};

// The candidate's function with every parameter in its carried type.
template <auto F, class Signature = decltype(F)>
struct Adapter;
template <auto F, class R, class... A>
struct Adapter<F, R (*)(A...)> {
  static typename Returned<R>::type call(typename Carried<std::remove_cvref_t<A>>::type... a) {
    return F(static_cast<std::conditional_t<
                 std::is_same_v<std::remove_cvref_t<A>, typename Carried<std::remove_cvref_t<A>>::type>,
                 typename Carried<std::remove_cvref_t<A>>::type&, std::remove_cvref_t<A>>>(a)...);
  }
  static std::string schema(const char* name) {
    std::string s = std::string(name) + "(";
    int i = 0;
    ((s += (i ? ", " : "") + Carried<std::remove_cvref_t<A>>::name() + " a" + std::to_string(i), ++i), ...);
    return s + ") -> " + Returned<R>::name();
  }
};

}  // namespace tilewright
