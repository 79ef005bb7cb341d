// ThreadRole: the purpose of a running library thread: its name for debuggers, and for statistics the processor time it
// has used so far.
//
// Ownership: belongs to the calling thread, which makes it first of all. The list of all is the process's.
// Threads:   thread-safe. Costs nothing while the thread runs, since the system counts the time.
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
    uint64_t serial;  // unique in the process
    int64_t cpu_ns;
  };

  // All threads of a kind so far: those whose names are the same without a number at the end, as in "ps-stage/1".
  struct Kind {
    std::string name;
    int64_t threads = 0;  // that run now
    int64_t cpu_ns = 0;  // of all, those that have ended included
  };

  explicit ThreadRole(std::string name);  // debuggers show 15 characters
  ThreadRole(const ThreadRole&) = delete;
  ThreadRole& operator=(const ThreadRole&) = delete;
  ~ThreadRole();

  // The times of all threads that have a role now, ordered by serial.
  static std::vector<Time> Times();
  // Ordered by name. What threads of a thousand names had used counts under these, that of others under "".
  static std::vector<Kind> Kinds();

 private:
  const std::string name_;
  uint64_t serial_ = 0;
  clockid_t clock_ = 0;
};

}  // namespace penstock::base
