// AT_DISPATCH_*: runs a lambda with `scalar_t` standing for the element type.
#pragma once

#include <tilewright/tensor.h>

#define TILEWRIGHT_CASE(ENUM, TYPE, ...) \
  case ENUM: {                           \
    using scalar_t [[maybe_unused]] = TYPE; \
    return __VA_ARGS__();                \
  }
#define TILEWRIGHT_DISPATCH(TYPE, NAME, CASES)                                                        \
  [&] {                                                                                               \
    const ::c10::ScalarType tilewright_type = (TYPE);                                                 \
    switch (tilewright_type) {                                                                        \
      CASES                                                                                           \
      default:                                                                                        \
        ::tilewright::fail(::tilewright::str("\"", NAME, "\" not implemented for '", toString(tilewright_type), "'")); \
    }                                                                                                 \
  }()
#define TILEWRIGHT_FLOATING(...)                                \
  TILEWRIGHT_CASE(::c10::ScalarType::Float, float, __VA_ARGS__) \
  TILEWRIGHT_CASE(::c10::ScalarType::Double, double, __VA_ARGS__)
#define TILEWRIGHT_INTEGRAL(...)                                 \
  TILEWRIGHT_CASE(::c10::ScalarType::Byte, uint8_t, __VA_ARGS__) \
  TILEWRIGHT_CASE(::c10::ScalarType::Char, int8_t, __VA_ARGS__)  \
  TILEWRIGHT_CASE(::c10::ScalarType::Short, int16_t, __VA_ARGS__) \
  TILEWRIGHT_CASE(::c10::ScalarType::Int, int, __VA_ARGS__)      \
  TILEWRIGHT_CASE(::c10::ScalarType::Long, int64_t, __VA_ARGS__)
#define TILEWRIGHT_ONE(ENUM, ...) TILEWRIGHT_CASE(ENUM, ::tilewright::CppOf<ENUM>::type, __VA_ARGS__)

namespace tilewright {
template <c10::ScalarType>
struct CppOf;
template <>
struct CppOf<c10::ScalarType::Half> { using type = c10::Half; };
template <>
struct CppOf<c10::ScalarType::BFloat16> { using type = c10::BFloat16; };
template <>
struct CppOf<c10::ScalarType::Bool> { using type = bool; };
template <>
struct CppOf<c10::ScalarType::Float> { using type = float; };
template <>
struct CppOf<c10::ScalarType::Double> { using type = double; };
template <>
struct CppOf<c10::ScalarType::Int> { using type = int; };
template <>
struct CppOf<c10::ScalarType::Long> { using type = int64_t; };
}  // namespace tilewright

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) TILEWRIGHT_DISPATCH(TYPE, NAME, TILEWRIGHT_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  TILEWRIGHT_DISPATCH(TYPE, NAME, TILEWRIGHT_FLOATING(__VA_ARGS__) TILEWRIGHT_ONE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) \
  TILEWRIGHT_DISPATCH(TYPE, NAME,                              \
                      TILEWRIGHT_FLOATING(__VA_ARGS__) TILEWRIGHT_ONE(A, __VA_ARGS__) TILEWRIGHT_ONE(B, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::c10::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                                      \
  TILEWRIGHT_DISPATCH(TYPE, NAME, TILEWRIGHT_ONE(::c10::ScalarType::Half, __VA_ARGS__)           \
                                      TILEWRIGHT_ONE(::c10::ScalarType::BFloat16, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) TILEWRIGHT_DISPATCH(TYPE, NAME, TILEWRIGHT_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  TILEWRIGHT_DISPATCH(TYPE, NAME, TILEWRIGHT_FLOATING(__VA_ARGS__) TILEWRIGHT_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  TILEWRIGHT_DISPATCH(TYPE, NAME,                     \
                      TILEWRIGHT_FLOATING(__VA_ARGS__) TILEWRIGHT_INTEGRAL(__VA_ARGS__) TILEWRIGHT_ONE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                                         \
  TILEWRIGHT_DISPATCH(TYPE, NAME, TILEWRIGHT_FLOATING(__VA_ARGS__) TILEWRIGHT_INTEGRAL(__VA_ARGS__) \
                                      TILEWRIGHT_ONE(A, __VA_ARGS__) TILEWRIGHT_ONE(B, __VA_ARGS__))
#define AT_DISPATCH_CASE(ENUM, ...) TILEWRIGHT_ONE(ENUM, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...) TILEWRIGHT_DISPATCH(TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) TILEWRIGHT_FLOATING(__VA_ARGS__)
