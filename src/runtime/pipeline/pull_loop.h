// PullLoop: a Run or RunBatch in progress. It takes items from a source into the pipeline, and hands those that have
// ended to a sink.
//
// Ownership: borrows the pipeline, both functions and the batch.
// Threads:   used by the thread that makes it, which calls source and sink.
// Errors:    error(), the first one: what source or sink threw, or why an item or its slots were refused.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "penstock/item.h"
#include "src/runtime/pipeline/item_book.h"

namespace penstock::runtime {

class PipelineCore;

class PullLoop {
 public:
  using Pull = std::function<bool(AnyItem&)>;
  using Sink = std::function<void(AnyItem&)>;

  // Without a batch the sink sees the items of no batch, and the pipeline is stopped when the source has no more.
  PullLoop(PipelineCore& core, const Pull& pull, const Sink& sink, ItemBook::Batch* batch)
      : core_(core), pull_(pull), sink_(sink), batch_(batch) {}
  PullLoop(const PullLoop&) = delete;
  PullLoop& operator=(const PullLoop&) = delete;

  // Returns when the sink has seen all there is.
  void Run() {
    while (Step()) continue;
  }

  const absl::Status& error() const { return error_; }
  // Whether the pipeline was stopped before the source had no more.
  bool cut_short() const { return cut_short_; }

 private:
  bool Step();
  int TakePlace();
  void PullInto(int place);
  void EndSource(const absl::Status& error);
  void EndRefused(const absl::Status& why);
  void Show(AnyItem& item);
  bool HasSeenAll() const;

  PipelineCore& core_;
  const Pull& pull_;
  const Sink& sink_;
  ItemBook::Batch* const batch_;
  bool more_ = true;  // the source has not ended
  bool sinks_ = true;  // the sink has not thrown
  bool cut_short_ = false;
  absl::Status error_;
  AnyItem refused_;  // the source produced it but it could not enter: the sink sees it after all others
};

}  // namespace penstock::runtime
