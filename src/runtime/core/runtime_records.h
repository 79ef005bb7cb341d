// What a runtime says of itself when it ends: the files of PENSTOCK_PROFILE and PENSTOCK_MEASURE, and in the log the
// settings that nothing has asked for. And what Runtime::Measured and Runtime::Profile return.
//
// Threads: any thread, at any time. They take the locks of the parts one after the other.
// Errors:  a file that cannot be written is logged.
#pragma once

#include "penstock/measurement.h"
#include "penstock/profile.h"
#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {

Measurement MeasurementOf(RuntimeCore& runtime);
Profile ProfileOf(RuntimeCore& runtime);
// Each file once.
void WriteRecords(RuntimeCore& runtime);

}  // namespace penstock::runtime
