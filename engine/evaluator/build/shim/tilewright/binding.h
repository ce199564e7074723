// Registers plain C++ functions with PyTorch's dispatcher, the schema derived from their types.
#pragma once

#include <tilewright/tensor.h>

namespace tilewright {

using Slot = uint64_t;  // PyTorch's StableIValue
using Boxed = void (*)(Slot*, uint64_t, uint64_t);

void add_operator(const char* space, const std::string& schema, const char* name, Boxed function);
size_t list_size(Slot list);
Slot list_item(Slot list, size_t i);
Slot new_list(size_t room);
void list_push(Slot list, Slot item);
void end_list(Slot list);
std::string take_string(Slot text);
Slot new_string(const std::string& text);
Slot new_slot(Slot value);
Slot take_slot(Slot pointer);

template <class T>
Slot bits_of(T value) {
  Slot slot = 0;
  std::memcpy(&slot, &value, sizeof(value));
  return slot;
}
template <class T>
T from_bits(Slot slot) {
  T value;
  std::memcpy(&value, &slot, sizeof(value));
  return value;
}

// How a C++ type travels through the dispatcher, and what the schema calls it. `take` owns what the slot held.
template <class T, class = void>
struct Carried {
  static_assert(sizeof(T) == 0, "tilewright_shim: this parameter or return type needs the stock torch/extension.h");
};
template <>
struct Carried<at::Tensor> {
  static std::string name() { return "Tensor"; }
  static at::Tensor take(Slot slot) { return at::Tensor(from_bits<Opaque*>(slot)); }
  static Slot give(at::Tensor value) { return bits_of(value.give_up()); }
};
template <>
struct Carried<bool> {
  static std::string name() { return "bool"; }
  static bool take(Slot slot) { return from_bits<bool>(slot); }
  static Slot give(bool value) { return bits_of(value); }
};
template <class T>
struct Carried<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static std::string name() { return "int"; }
  static T take(Slot slot) { return static_cast<T>(from_bits<int64_t>(slot)); }
  static Slot give(T value) { return bits_of(static_cast<int64_t>(value)); }
};
template <class T>
struct Carried<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static std::string name() { return "float"; }
  static T take(Slot slot) { return static_cast<T>(from_bits<double>(slot)); }
  static Slot give(T value) { return bits_of(static_cast<double>(value)); }
};
template <>
struct Carried<std::string> {
  static std::string name() { return "str"; }
  static std::string take(Slot slot) { return take_string(slot); }
  static Slot give(const std::string& value) { return new_string(value); }
};
template <class T>
struct Carried<std::vector<T>> {
  static std::string name() { return Carried<T>::name() + "[]"; }
  static std::vector<T> take(Slot slot) {
    std::vector<T> all;
    for (size_t i = 0, n = list_size(slot); i < n; ++i) all.push_back(Carried<T>::take(list_item(slot, i)));
    end_list(slot);
    return all;
  }
  static Slot give(const std::vector<T>& all) {
    Slot list = new_list(all.size());
    for (const T& one : all) list_push(list, Carried<T>::give(one));
    return list;
  }
};
template <class T>
struct Carried<std::optional<T>> {
  static std::string name() { return Carried<T>::name() + "?"; }
  static std::optional<T> take(Slot slot) {
    if (slot == 0) return std::nullopt;
    return Carried<T>::take(take_slot(slot));
  }
  static Slot give(const std::optional<T>& value) { return value ? new_slot(Carried<T>::give(*value)) : 0; }
};
// A borrowed list is kept in a vector for the length of the call.
template <>
struct Carried<c10::IntArrayRef> : Carried<std::vector<int64_t>> {};

template <class R>
struct Returned {
  static std::string name() { return Carried<R>::name(); }
  static void give(Slot* stack, R value) { stack[0] = Carried<R>::give(std::move(value)); }
};
template <class... R>
struct Returned<std::tuple<R...>> {
  static std::string name() {
    std::string all;
    ((all += (all.empty() ? "" : ", ") + Carried<R>::name()), ...);
    return "(" + all + ")";
  }
  static void give(Slot* stack, const std::tuple<R...>& all) {
    std::apply([&](const R&... one) { size_t i = 0; ((stack[i++] = Carried<R>::give(one)), ...); }, all);
  }
};

template <class T>
using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
template <class T>
using Held = decltype(Carried<Plain<T>>::take(0));

template <auto F, class Signature = decltype(F)>
struct Adapter;
template <auto F, class R, class... A>
struct Adapter<F, R (*)(A...)> {
  static std::string schema(const char* name) {
    std::string text = std::string(name) + "(";
    int i = 0;
    ((text += (i ? ", " : "") + Carried<Plain<A>>::name() + " a" + std::to_string(i), ++i), ...);
    if constexpr (std::is_void_v<R>) return text + ") -> ()";
    else return text + ") -> " + Returned<Plain<R>>::name();
  }
  static void call(Slot* stack, uint64_t, uint64_t) { run(stack, std::index_sequence_for<A...>{}); }

 private:
  template <size_t... I>
  static void run([[maybe_unused]] Slot* stack, std::index_sequence<I...>) {
    std::tuple<Held<A>...> held{Carried<Plain<A>>::take(stack[I])...};
    if constexpr (std::is_void_v<R>) F(static_cast<Passed<A>>(std::get<I>(held))...);
    else Returned<Plain<R>>::give(stack, F(static_cast<Passed<A>>(std::get<I>(held))...));
  }
  template <class T>
  using Passed = std::conditional_t<std::is_same_v<Plain<T>, Held<T>>, Held<T>&, Plain<T>>;
};

}  // namespace tilewright
