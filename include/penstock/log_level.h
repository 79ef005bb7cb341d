// How much a runtime says. Every message has a level; those below the runtime's own level are dropped.
#pragma once

#include <cstdint>

namespace penstock {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };

}  // namespace penstock
