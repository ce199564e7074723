// Makes a C++ function an operator of PyTorch: its schema is that of the function, its device is guarded, and what it
// returns is contiguous memory of its own.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace tilewright {

// What PyTorch passes for a parameter of type T: its integers have 64 bits, its numbers are double.
template <class T>
using carried = std::conditional_t<
    std::is_same_v<T, bool>, bool,
    std::conditional_t<std::is_integral_v<T>, int64_t, std::conditional_t<std::is_floating_point_v<T>, double, T>>>;

template <class T>
void look_for_device(const T& value, c10::optional<c10::Device>& device) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (!device && value.defined()) device = value.device();
  }
}

// Kernels were judged on tensors that begin at a multiple of 16 bytes and may load vectors. The guards in Python let no
// other through; a compiled program cannot see where a tensor begins, so there it is copied.
template <class T>
void align(T& value) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    if (value.defined() && value.numel() > 0 && reinterpret_cast<std::uintptr_t>(value.const_data_ptr()) % 16 != 0) {
      value = value.clone();
    }
  }
}

template <class T>
bool shares(const T& value, const at::Tensor& output) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    return value.defined() && value.is_alias_of(output);
  }
  return false;
}

// Of each result, where it is not contiguous; empty for one that is.
using Strides = std::vector<std::vector<int64_t>>;

template <auto function>
inline Strides strides_of;

template <class... A>
at::Tensor owned(at::Tensor output, const std::vector<int64_t>& strides, const A&... arguments) {
  const bool is_shared = (shares(arguments, output) || ...);
  if (strides.empty()) return is_shared ? output.clone() : output.contiguous();
  if (output.strides() == at::IntArrayRef(strides) && !is_shared) return output;
  return at::empty_strided(output.sizes(), strides, output.options()).copy_(output);
}

template <class R, class... A>
R owned_all(R result, const Strides& strides, const A&... arguments) {
  static const std::vector<int64_t> contiguous;
  size_t number = 0;
  auto next = [&]() -> const std::vector<int64_t>& {
    const size_t mine = number++;
    return mine < strides.size() ? strides[mine] : contiguous;
  };
  if constexpr (std::is_same_v<R, at::Tensor>) {
    return owned(std::move(result), next(), arguments...);
  } else if constexpr (std::is_same_v<R, std::vector<at::Tensor>>) {
    for (auto& output : result) output = owned(output, next(), arguments...);
    return result;
  } else {
    // Braces: what stands in them is worked out in order.
    return std::apply([&](auto... outputs) { return R{owned(outputs, next(), arguments...)...}; }, std::move(result));
  }
}

template <auto function, class Signature>
struct Operator;

template <auto function, class R, class... A>
struct Operator<function, R(A...)> {
  static std::decay_t<R> call(carried<std::decay_t<A>>... arguments) {
    c10::optional<c10::Device> device;
    (look_for_device(arguments, device), ...);
    const c10::OptionalDeviceGuard guard(device);
    (align(arguments), ...);
    return owned_all<std::decay_t<R>>(
        function(static_cast<std::conditional_t<std::is_arithmetic_v<std::decay_t<A>>, std::decay_t<A>,
                                                carried<std::decay_t<A>>&>>(arguments)...),
        strides_of<function>, arguments...);
  }
};

template <auto function>
void define(torch::Library& library, const char* name, c10::DispatchKey key, Strides strides = {}) {
  strides_of<function> = std::move(strides);
  using Function = std::remove_pointer_t<decltype(function)>;
  constexpr auto call = &Operator<function, Function>::call;
  library.def(c10::inferFunctionSchemaFlattenedReturns<std::remove_pointer_t<decltype(call)>>().cloneWithName(
      name, ""));
  library.impl(name, torch::dispatch(key, TORCH_FN(call)));
}

}  // namespace tilewright
