// The mode of everything that is compiled while it lives, by PENSTOCK_MODE.
//
// Threads: see environment.h.
#pragma once

#include <string>

#include "tests/support/environment.h"

namespace penstock {

class ModeScope {
 public:
  explicit ModeScope(const std::string& mode) : scope_("PENSTOCK_MODE", mode) {}

 private:
  const EnvironmentScope scope_;
};

}  // namespace penstock
