// Clock: for each line (a stream, or the launches of an exec), the number of its operations that something comes after.
// This is the exact happens-before relation of streams, execs, events and the host.
//
// Threads: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace penstock::driver::checked {

class Clock {
 public:
  bool Covers(uint64_t line, uint64_t sequence) const {
    const auto at = seen_.find(line);
    return sequence == 0 || (at != seen_.end() && at->second >= sequence);
  }
  void See(uint64_t line, uint64_t sequence) {
    uint64_t& seen = seen_[line];
    seen = std::max(seen, sequence);
  }
  void Merge(const Clock& other) {
    for (const auto& [line, sequence] : other.seen_) See(line, sequence);
  }
  void Forget(uint64_t line) { seen_.erase(line); }

 private:
  std::map<uint64_t, uint64_t> seen_;  // line -> operations
};

}  // namespace penstock::driver::checked
