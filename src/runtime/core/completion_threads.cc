#include "src/runtime/core/completion_threads.h"

#include <string>

#include "src/runtime/core/environment.h"

namespace penstock::runtime {

absl::Status CompletionThreads::Start(host::EventCount& event_count, bool notifies_completion,
                                      const std::vector<int>& cores) {
  completion_ = std::make_unique<CompletionThread>(event_count, notifies_completion);
  for (const int core : cores) {
    polling_.push_back(std::make_unique<CompletionThread>(event_count, notifies_completion, /*polls=*/true));
    if (polling_.back()->Pin(core)) continue;
    return absl::InvalidArgumentError(std::string(PollingCoresSource()) + " names " + std::to_string(core) +
                                      "; the system has no such core, or does not let this process use it");
  }
  return absl::OkStatus();
}

void CompletionThreads::Watch(Progressable* run) {
  if (polling_.empty()) return completion_->Watch(run);
  polling_[watched_.fetch_add(1, std::memory_order_relaxed) % polling_.size()]->Watch(run);
}

void CompletionThreads::Stop() {
  for (const auto& polling : polling_) polling->Stop();
  completion_->Stop();
}

void CompletionThreads::Drop() {
  polling_.clear();
  completion_.reset();
}

}  // namespace penstock::runtime
