// Clock: for each stream, up to which of its operations something comes after. The happens-before relation of streams,
// events and the host, kept exactly.
//
// Threads: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace penstock::driver::checked {

class Clock {
 public:
  bool Covers(uint64_t stream, uint64_t sequence) const {
    const auto at = seen_.find(stream);
    return sequence == 0 || (at != seen_.end() && at->second >= sequence);
  }
  void See(uint64_t stream, uint64_t sequence) {
    uint64_t& seen = seen_[stream];
    seen = std::max(seen, sequence);
  }
  void Merge(const Clock& other) {
    for (const auto& [stream, sequence] : other.seen_) See(stream, sequence);
  }
  void Forget(uint64_t stream) { seen_.erase(stream); }

 private:
  std::map<uint64_t, uint64_t> seen_;  // stream -> operations
};

}  // namespace penstock::driver::checked
