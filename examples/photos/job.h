// The whole job over a catalogue, timed: pipelined over all devices, or one step after the other.
//
// Ownership: borrows options, catalogue and runtime for the time of the call.
// Threads:   single-threaded; one job at a time, since both write the same files.
// Errors:    JobResult::status is what broke the job off; files that were skipped are no error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "catalogue.h"
#include "options.h"
#include "penstock/runtime.h"
#include "penstock/trace.h"
#include "report.h"

namespace photos {

struct JobResult {
  absl::Status status;
  std::vector<absl::Status> skipped;  // a photograph each, once however often it came; the message names it
  Measurement measurement;
  std::shared_ptr<penstock::Trace> trace;  // of the first options.trace_pictures
};

// Called with the pictures done and skipped so far, by one thread at a time.
using OnPicture = std::function<void(int64_t done, int64_t skipped)>;

// options.repeat passes over the catalogue, options.slots runs in flight on each device, options.workers threads at
// most decoding and encoding at once. A photograph that cannot be decoded is skipped; any other error breaks the job
// off: pictures under way are finished, no more are begun.
JobResult RunPipelined(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime,
                       const OnPicture& on_picture);

// `images` pictures, in the same order, by the calling thread alone: each is decoded, run on the first device and
// written before the next is begun.
JobResult RunSerial(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime, int64_t images,
                    const OnPicture& on_picture);

}  // namespace photos
