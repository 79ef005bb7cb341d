// MetricsOf: collects the metrics of a runtime (penstock/metrics.h) from its parts.
//
// Threads: any thread, at any time. It takes the locks of the parts one after the other, and advances no run.
#pragma once

#include "penstock/metrics.h"
#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {

Metrics MetricsOf(RuntimeCore& runtime);

}  // namespace penstock::runtime
