// Order: the order in which an engine takes up commands that may all run now. For tests: CUDA promises no order between
// streams, so any choice is legal, and each seed gives another one.
//
// Threads: not thread-safe; the scheduler locks. With engines that do one thing at a time, and all commands queued
// before it takes
//          the first, the order depends on the seed alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::driver::host {

class Order {
 public:
  Order() = default;  // by priority, then in the order they became ready
  explicit Order(uint64_t seed) : state_(seed), permutes_(true) {}

  // Which of `count` (at least 1) commands is considered first.
  size_t First(size_t count) { return permutes_ ? Next() % count : 0; }
  // How often the thread yields before it runs what it took.
  int Delay() { return permutes_ && Next() % 8 == 0 ? static_cast<int>(Next() % 4) : 0; }

 private:
  uint64_t Next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t state_ = 0;
  bool permutes_ = false;
};

}  // namespace penstock::driver::host
