#include "src/runtime/core/runtime_records.h"

#include <new>
#include <string>

#include "src/base/file.h"
#include "src/base/status.h"
#include "src/tune/measurement_text.h"

namespace penstock::runtime {
namespace {

void WriteMeasurement(RuntimeCore& runtime) {
  const std::string path = runtime.observed().meter.TakePath();
  if (path.empty()) return;
  const absl::Status written = base::WriteFile("measurement", path, tune::TextOf(MeasurementOf(runtime)));
  if (!written.ok()) runtime.Log(LogLevel::kError, "PENSTOCK_MEASURE: " + base::Str(written.message()));
}

void LogUnusedSettings(RuntimeCore& runtime) {
  for (const std::string& name : runtime.settings().unused()) {
    runtime.Log(LogLevel::kInfo, "settings: " + name + " was set, and the program has made none");
  }
}

}  // namespace

Measurement MeasurementOf(RuntimeCore& runtime) {
  const observe::RunMeter::Pace pace = runtime.observed().meter.pace();
  return {.run_us = pace.run_us, .runs = pace.runs, .open = runtime.settings().open()};
}

Profile ProfileOf(RuntimeCore& runtime) {
  Profile profile = runtime.observed().profile.Take(runtime.device_set().public_devices());
  profile.open = runtime.settings().open();
  return profile;
}

void WriteRecords(RuntimeCore& runtime) {
  try {
    LogUnusedSettings(runtime);
    WriteMeasurement(runtime);
    const std::string path = runtime.observed().profile.TakePath();
    const absl::Status written = path.empty() ? absl::OkStatus() : ProfileOf(runtime).Write(path);
    if (!written.ok()) runtime.Log(LogLevel::kError, "PENSTOCK_PROFILE: " + base::Str(written.message()));
  } catch (const std::bad_alloc&) {
    runtime.Log(LogLevel::kError,
                "PENSTOCK_PROFILE or PENSTOCK_MEASURE: no memory to write the file; set RuntimeOptions::profile_spans "
                "lower");
  }
}

}  // namespace penstock::runtime
