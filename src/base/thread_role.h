// ThreadRole: what one of the library's threads is for, while it runs: its name for debuggers, and the processor time
// it has used so far, for statistics.
//
// Ownership: the calling thread's, made first thing in it. The list of all is the process's.
// Threads:   thread-safe. Costs nothing while the thread runs: the system counts.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

namespace penstock::base {

class ThreadRole {
 public:
  struct Time {
    std::string name;
    uint64_t serial;  // no other thread of the process has had it
    int64_t cpu_ns;
  };

  explicit ThreadRole(std::string name);  // debuggers show 15 characters
  ThreadRole(const ThreadRole&) = delete;
  ThreadRole& operator=(const ThreadRole&) = delete;
  ~ThreadRole();

  // Of all threads that have one now, in the order of their serials.
  static std::vector<Time> Times();

 private:
  const std::string name_;
  uint64_t serial_ = 0;
  clockid_t clock_ = 0;
};

}  // namespace penstock::base
