// TypeOf: what a type is to a graph (TypeInfo in model.h), in whatever shared object of the process it is asked.
//
// The name that the ABI gives a type, as RTTI has it, is the same for g++, clang and nvcc; the compiler's own words for
// it (__PRETTY_FUNCTION__) are there without RTTI too, but differ between compilers for some templates. So both are
// kept. No address counts, so what is declared in a plugin stays comparable after it; except of types that no two
// objects can agree on, those of unnamed namespaces and lambdas.
//
// Threads: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "penstock/detail/model.h"
#include "penstock/export.h"

namespace penstock::detail {

template <class T>
PENSTOCK_HIDDEN constexpr NumberKind NumberKindOf() {
  if (std::is_same_v<T, float> || std::is_same_v<T, double>) return NumberKind::kFloat;
  if (!std::is_integral_v<T> || sizeof(T) > 8) return NumberKind::kNone;
  return std::is_signed_v<T> ? NumberKind::kSigned : NumberKind::kUnsigned;
}

// "... [with T = float]", "... [T = float]".
template <class T>
PENSTOCK_HIDDEN constexpr const char* WordsWith() {
  return __PRETTY_FUNCTION__;
}

// As compilers agree on: g++ says "long unsigned int", clang "unsigned long".
template <class T>
PENSTOCK_HIDDEN constexpr std::string_view SpellingOf() {
  if (std::is_same_v<T, short>) return "short";
  if (std::is_same_v<T, unsigned short>) return "unsigned short";
  if (std::is_same_v<T, long>) return "long";
  if (std::is_same_v<T, unsigned long>) return "unsigned long";
  if (std::is_same_v<T, long long>) return "long long";
  if (std::is_same_v<T, unsigned long long>) return "unsigned long long";
  const std::string_view words = WordsWith<T>();
  const size_t begin = words.find("T = ") + 4;
  return words.substr(begin, words.rfind(']') - begin);
}

// `layout` with its names. `mangled` may be null; `object` is an address of the type's own.
PENSTOCK_EXPORT TypeInfo NameType(TypeInfo layout, std::string_view spelling, const char* mangled, const void* object);

template <class T>
PENSTOCK_HIDDEN TypeInfo TypeOf() {
#if defined(__cpp_rtti)
  const char* const mangled = typeid(T).name();
#else
  const char* const mangled = nullptr;
#endif
  static const TypeInfo info =
      NameType({.size = sizeof(T), .align = alignof(T), .number = NumberKindOf<T>()}, SpellingOf<T>(), mangled, &info);
  return info;
}

}  // namespace penstock::detail
