// TORCH_CHECK and its relatives: the message is put together only when the condition fails.
#pragma once

#include <tilewright/types.h>

namespace tilewright {

void append(std::string& text, const char* more);
void append(std::string& text, const std::string& more);
void append(std::string& text, long long number);
void append(std::string& text, unsigned long long number);
void append(std::string& text, double number);
void append(std::string& text, char letter);
void append(std::string& text, c10::IntArrayRef sizes);
void append(std::string& text, c10::Device device);

template <class T>
void append_any(std::string& text, const T& value) {
  if constexpr (std::is_same_v<T, c10::ScalarType> || std::is_same_v<T, c10::TypeMeta>) append(text, toString(value));
  else if constexpr (std::is_same_v<T, c10::DeviceType>) append(text, value == c10::DeviceType::CUDA ? "cuda" : "cpu");
  else if constexpr (std::is_same_v<T, char>) append(text, value);
  else if constexpr (std::is_enum_v<T>) append(text, static_cast<long long>(value));
  else if constexpr (std::is_floating_point_v<T>) append(text, static_cast<double>(value));
  else if constexpr (std::is_unsigned_v<T>) append(text, static_cast<unsigned long long>(value));
  else if constexpr (std::is_integral_v<T>) append(text, static_cast<long long>(value));
  else append(text, value);
}

template <class... T>
std::string str(const T&... parts) {
  std::string text;
  (append_any(text, parts), ...);
  return text;
}

[[noreturn]] void fail(const std::string& message);
[[noreturn]] void fail_check(const char* condition, const std::string& message);
void warn(const std::string& message);

}  // namespace tilewright

namespace c10 {
using tilewright::str;
}

#define TORCH_CHECK(COND, ...)                                                               \
  do {                                                                                       \
    if (__builtin_expect(!(COND), 0)) ::tilewright::fail_check(#COND, ::tilewright::str(__VA_ARGS__)); \
  } while (0)
#define TORCH_INTERNAL_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_VALUE(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_ARG(COND, N, ...) TORCH_CHECK(COND, __VA_ARGS__)
#define AT_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ASSERTM(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ERROR(...) ::tilewright::fail(::tilewright::str(__VA_ARGS__))
#define TORCH_CHECK_NOT_IMPLEMENTED(...) TORCH_CHECK(__VA_ARGS__)
#define TORCH_CHECK_EQ(A, B) TORCH_CHECK((A) == (B), "Check failed: " #A " == " #B)
#define TORCH_CHECK_NE(A, B) TORCH_CHECK((A) != (B), "Check failed: " #A " != " #B)
#define TORCH_CHECK_LT(A, B) TORCH_CHECK((A) < (B), "Check failed: " #A " < " #B)
#define TORCH_CHECK_LE(A, B) TORCH_CHECK((A) <= (B), "Check failed: " #A " <= " #B)
#define TORCH_CHECK_GT(A, B) TORCH_CHECK((A) > (B), "Check failed: " #A " > " #B)
#define TORCH_CHECK_GE(A, B) TORCH_CHECK((A) >= (B), "Check failed: " #A " >= " #B)
#define TORCH_WARN(...) ::tilewright::warn(::tilewright::str(__VA_ARGS__))
#define TORCH_WARN_ONCE(...) TORCH_WARN(__VA_ARGS__)
