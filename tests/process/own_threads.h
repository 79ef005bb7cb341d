// The library's threads as the system shows them: their names begin with "ps-".
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace penstock::test_support {

struct OwnThread {
  std::string name;
  std::string blocked;  // signals, as /proc writes them
};

inline std::vector<OwnThread> OwnThreads() {
  std::vector<OwnThread> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    OwnThread thread;
    std::getline(std::ifstream(task.path() / "comm"), thread.name);
    if (thread.name.rfind("ps-", 0) != 0) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) == 0) thread.blocked = line.substr(line.find_first_not_of(" \t", 7));
    }
    if (!thread.blocked.empty()) threads.push_back(thread);  // else it has ended meanwhile
  }
  return threads;
}

// Returns the names of those that are still there after a long time; empty: none.
inline std::string AwaitNoOwnThreads() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    std::string names;
    for (const OwnThread& thread : OwnThreads()) names += thread.name + " ";
    if (names.empty() || std::chrono::steady_clock::now() > until) return names;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace penstock::test_support
