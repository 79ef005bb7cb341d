#include "src/runtime/graph_exec/parameter_indirection.h"
#include "src/runtime/graph_exec/tuning.h"

namespace penstock::runtime {

ParameterIndirection::ParameterIndirection(size_t entries, std::vector<int32_t> uses)
    : indirect_(entries), by_value_(std::move(uses)) {
  reading_.reserve(entries);
}

bool ParameterIndirection::AllRead(size_t param) {
  if (reading_.empty() || by_value_[param] > 0) return false;
  stale_ = true;
  return true;
}

bool ParameterIndirection::Reads(int32_t entry) {
  const bool reads = indirect(entry);
  stale_ = stale_ || reads;
  return reads;
}

bool ParameterIndirection::ShouldEnable(size_t differing) {
  if (!allowed_) return false;
  many_ = differing >= tuning::kManyNodes ? many_ + 1 : 0;
  return many_ >= tuning::kLaunchesToEnable;
}

bool ParameterIndirection::ShouldDisable() {
  if (!allowed_) return false;
  same_ = stale_ || reading_.empty() ? 0 : same_ + 1;
  return same_ >= tuning::kLaunchesToDisable;
}

bool ParameterIndirection::Enable(int32_t entry) {
  if (indirect(entry)) return false;
  indirect_[entry] = stale_ = true;
  reading_.push_back(entry);
  return true;
}

}  // namespace penstock::runtime
