#include "src/observe/profiled_pipelines.h"

#include <algorithm>
#include <new>
#include <utility>

namespace penstock::observe {

void ProfiledPipelines::Add(const std::shared_ptr<const ProfiledPipeline>& pipeline, double begin_us) {
  base::MutexLock lock(mu_);
  entries_.push_back({{.begin_us = begin_us, .end_us = begin_us, .stats = {}}, pipeline.get(), pipeline});
}

void ProfiledPipelines::End(const ProfiledPipeline& pipeline, double end_us) {
  PipelineStats last;
  try {
    last = pipeline.stats();
  } catch (const std::bad_alloc&) {
    last = {};  // a destructor calls this
  }
  base::MutexLock lock(mu_);
  for (Entry& entry : entries_) {
    if (entry.source != &pipeline) continue;
    entry.pipeline.stats = std::move(last);
    entry.pipeline.end_us = end_us;
    entry.source = nullptr;
    break;
  }
  const auto has_ended = [](const Entry& entry) { return entry.source == nullptr; };
  const auto ended = static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), has_ended));
  if (ended > kMostEnded) entries_.erase(std::find_if(entries_.begin(), entries_.end(), has_ended));
}

void ProfiledPipelines::KeepEnds(std::vector<Entry>& taken) {
  base::MutexLock lock(mu_);
  for (Entry& entry : taken) {
    if (entry.source == nullptr) continue;
    for (const Entry& now : entries_) {
      const bool is_same = !now.alive.owner_before(entry.alive) && !entry.alive.owner_before(now.alive);
      if (is_same && now.source == nullptr) entry.pipeline = now.pipeline;
    }
  }
}

std::vector<Profile::Pipeline> ProfiledPipelines::Take(double now_us) {
  std::vector<Entry> all;
  {
    base::MutexLock lock(mu_);
    all.assign(entries_.begin(), entries_.end());
  }
  for (Entry& entry : all) {
    if (const auto alive = entry.alive.lock(); entry.source != nullptr && alive != nullptr) {
      entry.pipeline.stats = alive->stats();
      entry.pipeline.end_us = now_us;
    }
  }
  KeepEnds(all);
  std::vector<Profile::Pipeline> taken;
  for (Entry& entry : all) taken.push_back(std::move(entry.pipeline));
  return taken;
}

}  // namespace penstock::observe
