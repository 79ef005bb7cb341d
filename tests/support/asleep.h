// Whether a thread sleeps for good: what a test waits for where another thread has to be asleep before it goes on, and
// how a test tells sleeping from looking again and again.
//
// Threads: stateless.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace penstock::test_support {

// How often the thread has gone to sleep, where it sleeps now; -1: it does not.
inline long SleepsOf(pid_t thread) {
  long sleeps = -1;
  bool asleep = false;
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("State:", 0) == 0) asleep = line.find('S', 6) != std::string::npos;
    if (line.rfind("voluntary_ctxt_switches:", 0) == 0) sleeps = std::stol(line.substr(line.find(':') + 1));
  }
  return asleep ? sleeps : -1;
}

// Returns when the thread has slept on from one of a hundred looks to the next. False: it has not within a minute.
inline bool FallsAsleep(pid_t thread) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  long last = -1;
  for (int same = 0; same < 100;) {
    if (std::chrono::steady_clock::now() > until) return false;
    const long sleeps = SleepsOf(thread);
    same = sleeps >= 0 && sleeps == last ? same + 1 : 0;
    last = sleeps;
    std::this_thread::yield();
  }
  return true;
}

// The same for all threads of the library, whose names begin with "ps-".
inline bool LibraryFallsAsleep() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.rfind("ps-", 0) == 0 && !FallsAsleep(std::stoi(task.path().filename()))) return false;
  }
  return true;
}

}  // namespace penstock::test_support
