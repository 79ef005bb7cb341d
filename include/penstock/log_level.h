// The level of a log message. A runtime drops messages below its own level.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>

namespace penstock {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };

}  // namespace penstock
