// TypeOf: the identity of a type in a graph (TypeInfo in model.h), comparable across the process's shared objects.
//
// A type's ABI name, available through RTTI, is the same for g++, clang and nvcc. The compiler's own spelling
// (__PRETTY_FUNCTION__) needs no RTTI, but differs between compilers for some templates. So both are kept. No address
// counts, so declarations of a plugin remain comparable after it is unloaded, except for types of unnamed namespaces
// and lambdas, on which no two objects can agree.
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

// A spelling that compilers agree on: g++ says "long unsigned int", clang "unsigned long".
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

// Adds names to `layout`. `mangled` may be null; `object` is an address unique to the type.
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
