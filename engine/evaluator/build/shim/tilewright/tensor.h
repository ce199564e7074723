// A small at::Tensor: a handle to PyTorch's own, worked by functions of the runtime that stands beside this header.
#pragma once

#include <tilewright/check.h>

namespace tilewright {
struct Opaque;  // PyTorch's AtenTensorOpaque
}

namespace at {

using c10::ArrayRef;
using c10::Device;
using c10::DeviceType;
using c10::IntArrayRef;
using c10::Layout;
using c10::MemoryFormat;
using c10::ScalarType;
using c10::TensorOptions;
using c10::BFloat16;
using c10::Float8_e4m3fn;
using c10::Float8_e5m2;
using c10::Half;
using c10::toString;
using c10::isFloatingType;
using c10::isIntegralType;
using IntList = IntArrayRef;

constexpr auto kFloat = ScalarType::Float, kFloat32 = ScalarType::Float;
constexpr auto kDouble = ScalarType::Double, kFloat64 = ScalarType::Double;
constexpr auto kHalf = ScalarType::Half, kFloat16 = ScalarType::Half;
constexpr auto kBFloat16 = ScalarType::BFloat16;
constexpr auto kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;
constexpr auto kFloat8_e5m2 = ScalarType::Float8_e5m2;
constexpr auto kInt = ScalarType::Int, kInt32 = ScalarType::Int;
constexpr auto kLong = ScalarType::Long, kInt64 = ScalarType::Long;
constexpr auto kShort = ScalarType::Short, kInt16 = ScalarType::Short;
constexpr auto kChar = ScalarType::Char, kInt8 = ScalarType::Char;
constexpr auto kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte;
constexpr auto kBool = ScalarType::Bool;
constexpr auto kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

class Tensor {
  tilewright::Opaque* handle_ = nullptr;

 public:
  Tensor() = default;
  // Takes over a handle.
  explicit Tensor(tilewright::Opaque* handle) : handle_(handle) {}
  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept { std::swap(handle_, other.handle_); return *this; }
  ~Tensor() { if (handle_) release(); }

  tilewright::Opaque* get() const { return handle_; }
  tilewright::Opaque* give_up() { return std::exchange(handle_, nullptr); }
  bool defined() const { return handle_ != nullptr; }
  void reset() { *this = Tensor(); }

  void* data_ptr() const;
  template <class T>
  T* data_ptr() const { return static_cast<T*>(data_of(tilewright::TypeOf<std::remove_const_t<T>>::value)); }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const { return data_ptr<std::remove_const_t<T>>(); }
  template <class T>
  T* mutable_data_ptr() const { return data_ptr<T>(); }
  template <class T>
  T item() const { return static_cast<T>(item_value()); }

  int64_t dim() const;
  int64_t ndimension() const { return dim(); }
  int64_t numel() const;
  int64_t size(int64_t d) const;
  int64_t stride(int64_t d) const;
  IntArrayRef sizes() const;
  IntArrayRef strides() const;
  int64_t storage_offset() const;
  ScalarType scalar_type() const;
  c10::TypeMeta dtype() const { return scalar_type(); }
  size_t element_size() const { return c10::elementSize(scalar_type()); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
  Device device() const;
  int64_t get_device() const { return device().index(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool is_same(const Tensor& other) const { return data_ptr() == other.data_ptr(); }
  bool is_non_overlapping_and_dense() const;
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }

  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor clone() const;
  Tensor detach() const { return *this; }
  Tensor alias() const { return *this; }
  Tensor view(IntArrayRef shape) const;
  Tensor view(ScalarType t) const;
  Tensor reshape(IntArrayRef shape) const;
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor expand(IntArrayRef shape) const;
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor permute(IntArrayRef order) const;
  Tensor flatten(int64_t start = 0, int64_t end = -1) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor movedim(int64_t from, int64_t to) const;
  Tensor swapaxes(int64_t a, int64_t b) const { return transpose(a, b); }
  Tensor swapdims(int64_t a, int64_t b) const { return transpose(a, b); }
  Tensor moveaxis(int64_t from, int64_t to) const { return movedim(from, to); }
  Tensor broadcast_to(IntArrayRef shape) const { return expand(shape); }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor mT() const { return transpose(-2, -1); }
  Tensor unsqueeze(int64_t d) const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t d) const;
  Tensor select(int64_t d, int64_t i) const;
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor narrow(int64_t d, int64_t start, int64_t count) const;
  Tensor slice(int64_t d = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
               int64_t step = 1) const;
  Tensor as_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset = std::nullopt) const;

  Tensor to(ScalarType t, bool non_blocking = false, bool copy = false) const;
  Tensor to(c10::TypeMeta t) const { return to(t.toScalarType()); }
  Tensor to(Device where, bool non_blocking = false) const;
  Tensor to(DeviceType where) const { return to(Device(where)); }
  Tensor to(Device where, ScalarType t) const { return to(where).to(t); }
  Tensor to(TensorOptions o) const { return to(o.device()).to(o.dtype()); }
  Tensor type_as(const Tensor& other) const { return to(other.options()); }
  Tensor cpu() const { return to(Device(DeviceType::CPU)); }
  Tensor cuda() const { return to(Device(DeviceType::CUDA)); }
  Tensor toType(ScalarType t) const { return to(t); }

  const Tensor& zero_() const;
  const Tensor& fill_(double value) const;
  const Tensor& copy_(const Tensor& other, bool non_blocking = false) const;

  Tensor new_empty(IntArrayRef sizes) const { return new_empty(sizes, options()); }
  Tensor new_empty(IntArrayRef sizes, TensorOptions o) const;
  Tensor new_zeros(IntArrayRef sizes) const { return new_empty(sizes).zero_(); }

  template <class T, size_t N>
  auto accessor() const;
  template <class T, size_t N, template <class> class Traits>
  auto packed_accessor32() const;
  template <class T, size_t N, template <class> class Traits>
  auto packed_accessor64() const;
  template <class T, size_t N>
  auto packed_accessor32() const;
  template <class T, size_t N>
  auto packed_accessor64() const;

 private:
  void release() noexcept;
  void* data_of(ScalarType wanted) const;
  double item_value() const;
};

using TensorList = ArrayRef<Tensor>;

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, TensorOptions o = {});
Tensor empty(IntArrayRef sizes, TensorOptions o = {}, std::optional<MemoryFormat> format = std::nullopt);
Tensor empty_like(const Tensor& t);
Tensor empty_like(const Tensor& t, TensorOptions o, std::optional<MemoryFormat> format = std::nullopt);
inline Tensor zeros(IntArrayRef sizes, TensorOptions o = {}) { return empty(sizes, o).zero_(); }
inline Tensor ones(IntArrayRef sizes, TensorOptions o = {}) { return empty(sizes, o).fill_(1.0); }
inline Tensor full(IntArrayRef sizes, double value, TensorOptions o) { return empty(sizes, o).fill_(value); }
inline Tensor zeros_like(const Tensor& t) { return empty_like(t).zero_(); }
inline Tensor zeros_like(const Tensor& t, TensorOptions o) { return empty_like(t, o).zero_(); }
inline Tensor ones_like(const Tensor& t) { return empty_like(t).fill_(1.0); }
inline Tensor ones_like(const Tensor& t, TensorOptions o) { return empty_like(t, o).fill_(1.0); }
inline Tensor full_like(const Tensor& t, double value) { return empty_like(t).fill_(value); }
inline Tensor full_like(const Tensor& t, double value, TensorOptions o) { return empty_like(t, o).fill_(value); }
inline Tensor transpose(const Tensor& t, int64_t a, int64_t b) { return t.transpose(a, b); }
inline Tensor reshape(const Tensor& t, IntArrayRef shape) { return t.reshape(shape); }
inline Tensor flatten(const Tensor& t, int64_t start = 0, int64_t end = -1) { return t.flatten(start, end); }
inline Tensor unsqueeze(const Tensor& t, int64_t d) { return t.unsqueeze(d); }
inline Tensor squeeze(const Tensor& t, int64_t d) { return t.squeeze(d); }
inline Tensor permute(const Tensor& t, IntArrayRef order) { return t.permute(order); }

int get_num_threads();
void parallel_range(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context);
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  parallel_range(begin, end, grain, [](int64_t from, int64_t to, void* it) { (*static_cast<const F*>(it))(from, to); },
                 const_cast<F*>(&f));
}

}  // namespace at

namespace torch {
using namespace at;
using c10::device;
using c10::dtype;
using c10::optional;
using c10::nullopt;
using c10::kStrided;
using Dtype = c10::ScalarType;

// Nothing here records gradients, so there is nothing to switch off.
struct NoGradGuard {
  NoGradGuard() {}
};
struct AutoGradMode {
  explicit AutoGradMode(bool) {}
};
}  // namespace torch

namespace at {
using torch::NoGradGuard;
using c10::dtype;
using c10::device;
using c10::optional;
using c10::nullopt;
}  // namespace at
namespace c10 {
constexpr auto kFloat = ScalarType::Float;
constexpr auto kDouble = ScalarType::Double;
constexpr auto kHalf = ScalarType::Half;
constexpr auto kBFloat16 = ScalarType::BFloat16;
constexpr auto kFloat8_e4m3fn = ScalarType::Float8_e4m3fn;
constexpr auto kFloat8_e5m2 = ScalarType::Float8_e5m2;
constexpr auto kInt = ScalarType::Int;
constexpr auto kLong = ScalarType::Long;
constexpr auto kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
struct InferenceMode {
  explicit InferenceMode(bool = true) {}
};
}  // namespace c10
