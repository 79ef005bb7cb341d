// What the pipelined and the serial job share: the graph for a catalogue, the order of pictures, bindings, bookkeeping.
//
// Threads: SkipList and JobClock belong to one thread each; the rest are pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "catalogue.h"
#include "edges_graph.h"
#include "options.h"
#include "penstock/bindings.h"
#include "penstock/trace.h"
#include "report.h"
#include "stages.h"

namespace photos {

// The graph for pictures up to the largest of the catalogue.
EdgesGraph DeclareFor(const Catalogue& catalogue, const Options& options);

// The i-th picture of the job: the catalogue in order, over and over.
Item ItemAt(const Catalogue& catalogue, int64_t i);

// Sets everything that a run over `item` needs, in Bindings or an item of a pipeline.
template <class To>
void Bind(const EdgesGraph& graph, const Photo& photo, const Item& item, To* to) {
  to->Set(graph.height, static_cast<int32_t>(photo.info.height))
      .Set(graph.width, static_cast<int32_t>(photo.info.width))
      .Set(graph.photo, item.rgb)
      .Set(graph.edges, item.edges);
}

// The photographs that could not be decoded, each once however many passes met it.
class SkipList {
 public:
  void Add(size_t photo, const absl::Status& status) { statuses_.emplace(photo, status); }
  int64_t size() const { return static_cast<int64_t>(statuses_.size()); }
  std::vector<absl::Status> statuses() const;  // in the order of the catalogue

 private:
  std::map<size_t, absl::Status> statuses_;
};

// Counts pictures and time from its construction on.
class JobClock {
 public:
  void Count(const ImageInfo& info);
  int64_t images() const { return measurement_.images; }
  // From here on nothing is traced: the steps of the table are those of the pictures and the time until now.
  void EndTracing();
  // Everything measured: the counts, the spans of `trace`, the CPU time of `stages`. `workers` is how many threads were
  // there to decode and encode.
  Measurement Stop(const Stages& stages, const penstock::Trace& trace, int workers);

 private:
  using Clock = std::chrono::steady_clock;

  int64_t Elapsed() const;  // nanoseconds

  const Clock::time_point begin_ = Clock::now();
  Measurement measurement_;
};

}  // namespace photos
