#include "src/runtime/pipeline/poisoned_stages.h"

#include <algorithm>
#include <utility>

namespace penstock::runtime {
namespace {

bool Contains(const std::vector<uint64_t>& keys, uint64_t key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

PoisonedStages::PoisonedStages(std::vector<bool> keyed, size_t items)
    : keyed_(std::move(keyed)), stages_(keyed_.size()) {
  for (Entry& entry : stages_) entry.keys.reserve(items);
}

void PoisonedStages::Note(int stage, uint64_t key) {
  Entry& entry = stages_[stage];
  entry.halted = true;
  if (entry.keys.empty() || (keyed_[stage] && !Contains(entry.keys, key))) entry.keys.push_back(key);
}

PoisonedStages::Halted PoisonedStages::Take() {
  Halted taken;
  for (size_t s = 0; s < stages_.size(); ++s) {
    if (!stages_[s].halted) continue;
    taken.stages.push_back(static_cast<int>(s));
    for (const uint64_t key : stages_[s].keys) {
      if (taken.keys.empty() || (keyed_[s] && !Contains(taken.keys, key))) taken.keys.push_back(key);
    }
    stages_[s].keys.clear();
  }
  return taken;
}

void PoisonedStages::End(const std::vector<int>& stages) {
  for (const int s : stages) stages_[s].halted = false;
}

}  // namespace penstock::runtime
