// The host's part of the job, one picture at a time: decode into pinned memory before the devices, check and write the
// edges after them.
//
// Ownership: borrows the options, catalogue and runtime, which must outlive it.
// Threads:   Decode and Finish may be called by any number of threads, for different items. Preload comes before both.
// Errors:    Decode: with `unreadable` set in the item the photograph must be skipped, the message names it; else the
//            job cannot go on: ResourceExhausted, no pinned memory. Finish: the job cannot go on: a file that cannot be
//            written, or Internal, a result that is wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "catalogue.h"
#include "filters.h"
#include "options.h"
#include "penstock/host_buffer.h"
#include "penstock/runtime.h"
#include "penstock/trace.h"

namespace photos {

// One picture on its way. Its memory is pinned.
struct Item {
  size_t photo = 0;  // index in the catalogue
  int64_t pass = 0;  // how many times this photograph came before
  penstock::HostBuffer<Rgb> rgb;
  penstock::HostBuffer<uint8_t> edges;
  bool unreadable = false;  // its file could not be decoded
};

// Names of the spans that the stages add to a trace.
inline constexpr char kDecodeSpan[] = "decode";
inline constexpr char kEncodeSpan[] = "encode";

class Stages {
 public:
  // `trace` may be null.
  Stages(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime,
         std::shared_ptr<penstock::Trace> trace);
  ~Stages();

  // While no other thread is in here: from now on without spans.
  void StopTracing() { trace_ = nullptr; }

  // Decodes every photograph once, by several threads, for all passes. What cannot be decoded fails in Decode.
  void Preload();

  // Fills item->rgb, or takes what Preload has, and allocates item->edges.
  absl::Status Decode(Item* item);

  // Compares item->edges with the reference, or in a preloaded job with its first result, where asked to, and writes
  // the file, in a preloaded job on the first pass only. Gives the item's memory back.
  absl::Status Finish(Item* item);

  // CPU time of all calls of Decode and Finish so far, in nanoseconds.
  int64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

 private:
  class Stopwatch;
  struct Kept;

  const Photo& photo(const Item& item) const { return catalogue_.photos[item.photo]; }
  absl::Status DecodeFile(Item* item);
  absl::Status CheckAgainstReference(const Item& item);
  absl::Status CheckAgainstFirst(const Item& item);
  absl::Status WriteFile(const Item& item);

  const Options& options_;
  const Catalogue& catalogue_;
  penstock::Runtime* const runtime_;
  std::shared_ptr<penstock::Trace> trace_;
  std::vector<std::unique_ptr<Kept>> kept_;  // a photograph each; empty unless preloaded
  std::atomic<int64_t> cpu_ns_{0};
};

}  // namespace photos
