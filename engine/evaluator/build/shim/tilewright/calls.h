// Calling PyTorch through its C interface: arguments into slots, failures into exceptions. For the runtime only.
#pragma once

#include <tilewright/binding.h>

#include <tilewright/abi.h>

namespace tilewright {

constexpr size_t MOST_DIMS = 64;

inline void must(int32_t status, const char* what) {
  if (status == 0) return;
  if (torch_exception_get_what_without_backtrace) {
    if (const char* why = torch_exception_get_what_without_backtrace()) fail(why);
  }
  fail(std::string("PyTorch failed in ") + what);
}

inline Slot own(const at::Tensor& t) {
  if (!t.defined()) {
    Opaque* empty = nullptr;
    must(aoti_torch_new_uninitialized_tensor(&empty), "new tensor");
    return bits_of(empty);
  }
  return bits_of(at::Tensor(t).give_up());
}

inline Slot list_of(c10::IntArrayRef all) {
  Slot list = new_list(all.size());
  for (int64_t one : all) list_push(list, bits_of(one));
  return list;
}

inline Slot maybe(const std::optional<int64_t>& value) { return value ? new_slot(bits_of(*value)) : 0; }
inline Slot slot_of(c10::Device d) {
  return static_cast<uint64_t>(static_cast<uint32_t>(static_cast<int32_t>(d.index()))) |
         static_cast<uint64_t>(static_cast<uint32_t>(d.type())) << 32;
}
template <class E>
Slot number(E value) { return bits_of(static_cast<int32_t>(value)); }

template <class... S>
at::Tensor call(const char* name, const char* overload, S... slots) {
  Slot stack[] = {static_cast<Slot>(slots)...};
  must(torch_call_dispatcher(name, overload, stack, aoti_torch_abi_version()), name);
  return at::Tensor(from_bits<Opaque*>(stack[0]));
}

template <class T, class F>
T asked(F f, const at::Tensor& t, const char* what) {
  if (!t.defined()) fail("expected a defined tensor, got an undefined one");
  T value{};
  must(f(t.get(), &value), what);
  return value;
}


}  // namespace tilewright
