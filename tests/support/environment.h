// How many, or from which on: numbers that the environment may set for a test.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace penstock {

inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace penstock
