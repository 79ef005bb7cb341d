// InsideScope: marks a thread that is in the source, sink or reset function of a pipeline, where it may not wait for
// that pipeline.
//
// Threads: used by the thread that makes it.
#pragma once

#include <utility>

namespace penstock::runtime {

class PipelineCore;

class InsideScope {
 public:
  explicit InsideScope(const PipelineCore* core) : before_(std::exchange(inside_, core)) {}
  ~InsideScope() { inside_ = before_; }
  InsideScope(const InsideScope&) = delete;
  InsideScope& operator=(const InsideScope&) = delete;
  static const PipelineCore* current() { return inside_; }

 private:
  static inline thread_local const PipelineCore* inside_ = nullptr;
  const PipelineCore* const before_;
};

}  // namespace penstock::runtime
