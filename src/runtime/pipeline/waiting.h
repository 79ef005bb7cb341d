// InsideScope: marks a thread that is in a function of a pipeline's user: a source, sink, stage or reset function. It
// may not wait for that pipeline there, and what it submits belongs to the same batch.
//
// Threads: used by the thread that makes it.
#pragma once

#include <utility>

#include "src/runtime/pipeline/item_book.h"

namespace penstock::runtime {

class PipelineCore;

class InsideScope {
 public:
  // A source or sink, of a batch if not null; or what is called for the whole pipeline.
  explicit InsideScope(const PipelineCore* core, ItemBook::Batch* batch = nullptr)
      : InsideScope(core, batch, ItemBook::kNone) {}
  // A stage that works on the item.
  InsideScope(const PipelineCore* core, int item) : InsideScope(core, nullptr, item) {}
  ~InsideScope() { innermost_ = before_; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;

  // The pipeline of the function that this thread is in; null: none.
  static const PipelineCore* current() { return innermost_ == nullptr ? nullptr : innermost_->core_; }
  // The batch of what this thread submits to `core`, whose book is `book`; null: none. A stage of another pipeline may
  // be called on any thread, so what this thread was in before does not count there.
  static ItemBook::Batch* BatchOf(const PipelineCore* core, const ItemBook& book) {
    for (const InsideScope* in = innermost_; in != nullptr; in = in->before_) {
      const bool is_stage = in->item_ != ItemBook::kNone;
      if (in->core_ == core) return is_stage ? book.batch(in->item_) : in->batch_;
      if (is_stage) break;
    }
    return nullptr;
  }

 private:
  InsideScope(const PipelineCore* core, ItemBook::Batch* batch, int item)
      : core_(core), batch_(batch), item_(item), before_(std::exchange(innermost_, this)) {}

  static inline thread_local const InsideScope* innermost_ = nullptr;
  const PipelineCore* const core_;
  ItemBook::Batch* const batch_;
  const int item_;
  const InsideScope* const before_;
};

}  // namespace penstock::runtime
