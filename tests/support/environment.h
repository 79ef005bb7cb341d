// The environment, as tests read it and change it.
//
// Threads: a scope changes the environment, so nobody may read it on another thread while one is made or goes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

namespace penstock {

// How many, or from which on: numbers that the environment may set for a test.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

// How many GPUs a test may not do without: PENSTOCK_REQUIRE_GPU=n makes a skip for want of up to n a failure.
inline int RequiredDevices() { return static_cast<int>(FromEnvironment("PENSTOCK_REQUIRE_GPU", 0)); }

// A variable that has another value while this lives.
class EnvironmentScope {
 public:
  EnvironmentScope(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str()); before != nullptr) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~EnvironmentScope() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  EnvironmentScope(const EnvironmentScope&) = delete;
  EnvironmentScope& operator=(const EnvironmentScope&) = delete;

 private:
  const std::string name_;
  std::optional<std::string> before_;
};

}  // namespace penstock
