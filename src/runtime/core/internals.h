// Internals of the public handle on a runtime.
//
// Threads: stateless.
#pragma once

#include <memory>

#include "penstock/detail/internals.h"
#include "penstock/runtime.h"

namespace penstock::detail {

template <>
class Internals<Runtime> {
 public:
  // Null: it was moved from.
  static const std::shared_ptr<runtime::RuntimeCore>& CoreOf(const Runtime& runtime) { return runtime.core_; }
};

}  // namespace penstock::detail
