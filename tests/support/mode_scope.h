// The mode of everything that is compiled while it lives, by PENSTOCK_MODE.
//
// Threads: changes the environment, so nobody may compile on another thread while one is made or goes.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace penstock {

class ModeScope {
 public:
  explicit ModeScope(const std::string& mode) {
    if (const char* const before = std::getenv("PENSTOCK_MODE"); before != nullptr) before_ = before;
    setenv("PENSTOCK_MODE", mode.c_str(), 1);
  }
  ~ModeScope() { before_ ? setenv("PENSTOCK_MODE", before_->c_str(), 1) : unsetenv("PENSTOCK_MODE"); }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  std::optional<std::string> before_;
};

}  // namespace penstock
