// Element types, devices and tensor options under PyTorch's names. Knows no tensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace c10 {

// The values are PyTorch's own; they cross the C interface as they are.
enum class ScalarType : int8_t {
  Byte = 0, Char = 1, Short = 2, Int = 3, Long = 4, Half = 5, Float = 6, Double = 7,
  ComplexHalf = 8, ComplexFloat = 9, ComplexDouble = 10, Bool = 11, BFloat16 = 15,
  Float8_e5m2 = 23, Float8_e4m3fn = 24, Undefined = 127
};
const char* toString(ScalarType t);
size_t elementSize(ScalarType t);
constexpr bool isFloatingType(ScalarType t) {
  return t == ScalarType::Float || t == ScalarType::Double || t == ScalarType::Half || t == ScalarType::BFloat16 ||
         t == ScalarType::Float8_e5m2 || t == ScalarType::Float8_e4m3fn;
}
constexpr bool isIntegralType(ScalarType t, bool with_bool = false) {
  return static_cast<int8_t>(t) <= 4 || (with_bool && t == ScalarType::Bool);
}

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
enum class MemoryFormat : int8_t { Contiguous = 0, Preserve = 1, ChannelsLast = 2, ChannelsLast3d = 3 };
enum class Layout : int8_t { Strided = 0 };
constexpr auto kStrided = Layout::Strided;
using DeviceIndex = int8_t;

struct Half;
struct BFloat16;
struct Float8_e4m3fn;
struct Float8_e5m2;

// What `Tensor::dtype()` gives: an element type that also knows its size.
class TypeMeta {
  ScalarType type_;

 public:
  constexpr TypeMeta(ScalarType t) : type_(t) {}
  constexpr operator ScalarType() const { return type_; }
  constexpr ScalarType toScalarType() const { return type_; }
  size_t itemsize() const { return elementSize(type_); }
  const char* name() const { return toString(type_); }
};
inline bool operator==(TypeMeta a, TypeMeta b) { return a.toScalarType() == b.toScalarType(); }
inline bool operator!=(TypeMeta a, TypeMeta b) { return !(a == b); }
inline bool operator==(TypeMeta a, ScalarType b) { return a.toScalarType() == b; }
inline bool operator!=(TypeMeta a, ScalarType b) { return !(a == b); }
inline bool operator==(ScalarType a, TypeMeta b) { return b == a; }
inline bool operator!=(ScalarType a, TypeMeta b) { return !(b == a); }

class Device {
  DeviceType type_;
  DeviceIndex index_;

 public:
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const std::string& name);
  Device(const char* name) : Device(std::string(name)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  std::string str() const;
  bool operator==(const Device& other) const { return type_ == other.type_ && index_ == other.index_; }
  bool operator!=(const Device& other) const { return !(*this == other); }
};

// A borrowed list; also made from a braced list or a vector that outlives the call.
template <class T>
class ArrayRef {
  const T* data_ = nullptr;
  size_t size_ = 0;

 public:
  using value_type = T;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(end - begin) {}
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const std::vector<T>& all) : data_(all.data()), size_(all.size()) {}
  ArrayRef(const std::initializer_list<T>& all) : data_(all.begin()), size_(all.size()) {}
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  ArrayRef slice(size_t from, size_t count) const { return ArrayRef(data_ + from, count); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }
};
using IntArrayRef = ArrayRef<int64_t>;
inline bool operator==(IntArrayRef a, IntArrayRef b) { return a.equals(b); }
inline bool operator!=(IntArrayRef a, IntArrayRef b) { return !a.equals(b); }

template <class T>
using optional = std::optional<T>;
using std::nullopt;
using nullopt_t = std::nullopt_t;

struct TensorOptions {
  ScalarType type = ScalarType::Float;
  Device where = DeviceType::CPU;
  std::optional<MemoryFormat> format;
  bool is_pinned = false;

  TensorOptions() = default;
  TensorOptions(ScalarType t) : type(t) {}
  TensorOptions(TypeMeta t) : type(t.toScalarType()) {}
  TensorOptions(Device d) : where(d) {}
  TensorOptions(DeviceType d) : where(d) {}
  ScalarType dtype() const { return type; }
  Device device() const { return where; }
  TensorOptions dtype(ScalarType t) const { auto o = *this; o.type = t; return o; }
  TensorOptions dtype(TypeMeta t) const { return dtype(t.toScalarType()); }
  TensorOptions device(Device d) const { auto o = *this; o.where = d; return o; }
  TensorOptions device(DeviceType d, DeviceIndex index = -1) const { return device(Device(d, index)); }
  TensorOptions memory_format(MemoryFormat f) const { auto o = *this; o.format = f; return o; }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
};
inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions dtype(TypeMeta t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }

}  // namespace c10

namespace tilewright {

template <class T>
struct TypeOf {
  static_assert(sizeof(T) == 0, "tilewright_shim: data of this type needs the stock torch/extension.h");
};
#define TILEWRIGHT_TYPE(CPP, NAME) \
  template <>                      \
  struct TypeOf<CPP> { static constexpr c10::ScalarType value = c10::ScalarType::NAME; };
TILEWRIGHT_TYPE(float, Float)
TILEWRIGHT_TYPE(double, Double)
TILEWRIGHT_TYPE(int64_t, Long)
TILEWRIGHT_TYPE(int32_t, Int)
TILEWRIGHT_TYPE(int16_t, Short)
TILEWRIGHT_TYPE(int8_t, Char)
TILEWRIGHT_TYPE(uint8_t, Byte)
TILEWRIGHT_TYPE(bool, Bool)
TILEWRIGHT_TYPE(c10::Half, Half)
TILEWRIGHT_TYPE(c10::BFloat16, BFloat16)
TILEWRIGHT_TYPE(c10::Float8_e4m3fn, Float8_e4m3fn)
TILEWRIGHT_TYPE(c10::Float8_e5m2, Float8_e5m2)
#undef TILEWRIGHT_TYPE

}  // namespace tilewright
