// at::Tensor's functions, each one call of PyTorch.
#include <tilewright/calls.h>

namespace at {

using namespace tilewright;

Tensor::Tensor(const Tensor& other) {
  if (other.handle_) must(aoti_torch_new_tensor_handle(other.handle_, &handle_), "copy of a tensor");
}
void Tensor::release() noexcept { aoti_torch_delete_tensor_object(handle_); }

void* Tensor::data_ptr() const { return asked<void*>(aoti_torch_get_data_ptr, *this, "data_ptr"); }
void* Tensor::data_of(ScalarType wanted) const {
  ScalarType has = scalar_type();
  if (has != wanted) fail(str("expected scalar type ", wanted, " but found ", has));
  return data_ptr();
}
int64_t Tensor::dim() const { return asked<int64_t>(aoti_torch_get_dim, *this, "dim"); }
int64_t Tensor::numel() const { return asked<int64_t>(aoti_torch_get_numel, *this, "numel"); }
int64_t Tensor::storage_offset() const { return asked<int64_t>(aoti_torch_get_storage_offset, *this, "storage_offset"); }
IntArrayRef Tensor::sizes() const {
  return IntArrayRef(asked<int64_t*>(aoti_torch_get_sizes, *this, "sizes"), static_cast<size_t>(dim()));
}
IntArrayRef Tensor::strides() const {
  return IntArrayRef(asked<int64_t*>(aoti_torch_get_strides, *this, "strides"), static_cast<size_t>(dim()));
}
static size_t wrapped(int64_t d, int64_t dims) {
  if (d < -dims || d >= dims) {
    fail(str("Dimension out of range (expected to be in range of [", -dims, ", ", dims - 1, "], but got ", d, ")"));
  }
  return static_cast<size_t>(d < 0 ? d + dims : d);
}
int64_t Tensor::size(int64_t d) const { return sizes()[wrapped(d, dim())]; }
int64_t Tensor::stride(int64_t d) const { return strides()[wrapped(d, dim())]; }
ScalarType Tensor::scalar_type() const {
  return static_cast<ScalarType>(asked<int32_t>(aoti_torch_get_dtype, *this, "dtype"));
}
Device Tensor::device() const {
  auto type = static_cast<DeviceType>(asked<int32_t>(aoti_torch_get_device_type, *this, "device"));
  return Device(type, static_cast<c10::DeviceIndex>(asked<int32_t>(aoti_torch_get_device_index, *this, "device")));
}
static std::vector<int64_t> channels_last(int64_t dims) {
  std::vector<int64_t> order{0};
  for (int64_t i = 2; i < dims; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}
bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::ChannelsLast && dim() != 4) return false;
  if (format == MemoryFormat::ChannelsLast3d && dim() != 5) return false;
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    return permute(channels_last(dim())).is_contiguous();
  }
  return asked<bool>(aoti_torch_is_contiguous, *this, "is_contiguous");
}
bool Tensor::is_non_overlapping_and_dense() const { return is_contiguous(); }
double Tensor::item_value() const {
  if (numel() != 1) fail(str("a Tensor with ", numel(), " elements cannot be converted to Scalar"));
  return *static_cast<double*>(to(ScalarType::Double).cpu().contiguous().data_ptr());
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  return call("aten::contiguous", "", own(*this), number(format));
}
Tensor Tensor::clone() const { return call("aten::clone", "", own(*this), Slot(0)); }
Tensor Tensor::view(IntArrayRef shape) const { return call("aten::view", "", own(*this), list_of(shape)); }
Tensor Tensor::view(ScalarType t) const { return call("aten::view", "dtype", own(*this), number(t)); }
Tensor Tensor::reshape(IntArrayRef shape) const { return call("aten::reshape", "", own(*this), list_of(shape)); }
Tensor Tensor::expand(IntArrayRef shape) const {
  return call("aten::expand", "", own(*this), list_of(shape), bits_of(false));
}
Tensor Tensor::permute(IntArrayRef order) const { return call("aten::permute", "", own(*this), list_of(order)); }
Tensor Tensor::flatten(int64_t start, int64_t end) const {
  return call("aten::flatten", "using_ints", own(*this), bits_of(start), bits_of(end));
}
Tensor Tensor::transpose(int64_t a, int64_t b) const {
  return call("aten::transpose", "int", own(*this), bits_of(a), bits_of(b));
}
Tensor Tensor::movedim(int64_t from, int64_t to) const {
  return call("aten::movedim", "int", own(*this), bits_of(from), bits_of(to));
}
Tensor Tensor::unsqueeze(int64_t d) const { return call("aten::unsqueeze", "", own(*this), bits_of(d)); }
Tensor Tensor::squeeze() const { return call("aten::squeeze", "", own(*this)); }
Tensor Tensor::squeeze(int64_t d) const { return call("aten::squeeze", "dim", own(*this), bits_of(d)); }
Tensor Tensor::select(int64_t d, int64_t i) const {
  return call("aten::select", "int", own(*this), bits_of(d), bits_of(i));
}
Tensor Tensor::narrow(int64_t d, int64_t start, int64_t count) const {
  return call("aten::narrow", "", own(*this), bits_of(d), bits_of(start), bits_of(count));
}
Tensor Tensor::slice(int64_t d, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) const {
  return call("aten::slice", "Tensor", own(*this), bits_of(d), maybe(start), maybe(end), bits_of(step));
}
Tensor Tensor::as_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<int64_t> offset) const {
  return call("aten::as_strided", "", own(*this), list_of(sizes), list_of(strides), maybe(offset));
}
Tensor Tensor::to(ScalarType t, bool non_blocking, bool copy) const {
  if (t == scalar_type() && !copy) return *this;
  return call("aten::to", "dtype", own(*this), number(t), bits_of(non_blocking), bits_of(copy), Slot(0));
}
Tensor Tensor::to(Device where, bool non_blocking) const {
  if (where.type() == device().type() && (!where.has_index() || where == device())) return *this;
  return call("aten::to", "device", own(*this), slot_of(where), number(scalar_type()), bits_of(non_blocking),
              bits_of(false), Slot(0));
}

const Tensor& Tensor::zero_() const { must(aoti_torch_zero_(handle_), "zero_"); return *this; }
const Tensor& Tensor::fill_(double value) const {
  must(aoti_torch_aten_fill__Scalar(handle_, value), "fill_");
  return *this;
}
const Tensor& Tensor::copy_(const Tensor& other, bool non_blocking) const {
  must(aoti_torch_copy_(handle_, other.handle_, non_blocking), "copy_");
  return *this;
}
Tensor Tensor::new_empty(IntArrayRef sizes, TensorOptions o) const { return empty(sizes, o); }

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, TensorOptions o) {
  Opaque* handle = nullptr;
  must(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data(),
                                static_cast<int32_t>(o.type), static_cast<int32_t>(o.where.type()), o.where.index(),
                                &handle),
       "empty");
  return Tensor(handle);
}
Tensor empty(IntArrayRef sizes, TensorOptions o, std::optional<MemoryFormat> format) {
  auto wanted = format ? format : o.format;
  size_t n = sizes.size();
  if (n > MOST_DIMS) fail("too many dimensions");
  int64_t strides[MOST_DIMS], step = 1;
  std::vector<int64_t> order;
  if (wanted && *wanted >= MemoryFormat::ChannelsLast) order = channels_last(static_cast<int64_t>(n));
  for (size_t i = n; i-- > 0;) {
    size_t d = order.empty() ? i : static_cast<size_t>(order[i]);
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
  return empty_strided(sizes, IntArrayRef(strides, n), o);
}
Tensor empty_like(const Tensor& t) {
  return call("aten::empty_like", "", own(t), Slot(0), Slot(0), Slot(0), Slot(0), Slot(0));
}
Tensor empty_like(const Tensor& t, TensorOptions o, std::optional<MemoryFormat> format) {
  Slot memory = format ? new_slot(number(*format)) : 0;
  return call("aten::empty_like", "", own(t), new_slot(number(o.type)), Slot(0), new_slot(slot_of(o.where)), Slot(0),
              memory);
}

int get_num_threads() {
  uint32_t n = 1;
  must(torch_get_num_threads(&n), "get_num_threads");
  return static_cast<int>(n);
}
void parallel_range(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t, int64_t, void*), void* context) {
  must(torch_parallel_for(begin, end, grain, body, context), "parallel_for");
}

}  // namespace at
