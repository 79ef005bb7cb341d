// ProfiledPipelines: the pipelines of a runtime that its profile tells of.
//
// Ownership: belongs to the runtime's ProfileRecorder. Pipelines are held weakly; of one that has gone the last
//            statistics are kept, of the newest kMostEnded of them.
// Threads:   thread-safe.
// Locks:     mu_, a leaf. It is never held while a pipeline is asked, or might be destroyed.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "penstock/pipeline_stats.h"
#include "penstock/profile.h"
#include "src/base/mutex.h"

namespace penstock::observe {

class ProfiledPipeline {
 public:
  virtual PipelineStats stats() const = 0;

 protected:
  ~ProfiledPipeline() = default;
};

class ProfiledPipelines {
 public:
  static constexpr size_t kMostEnded = 1000;

  // A pipeline began, and ended, at these times of the profile, in microseconds.
  void Add(const std::shared_ptr<const ProfiledPipeline>& pipeline, double begin_us);
  void End(const ProfiledPipeline& pipeline, double end_us);
  std::vector<Profile::Pipeline> Take(double now_us);

 private:
  struct Entry {
    Profile::Pipeline pipeline;
    const ProfiledPipeline* source;  // null: it has ended
    std::weak_ptr<const ProfiledPipeline> alive;
  };

  // Of pipelines that have ended since they were taken, what is kept of them counts.
  void KeepEnds(std::vector<Entry>& taken);

  base::Mutex mu_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::observe
