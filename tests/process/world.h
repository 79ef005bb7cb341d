// World: a runtime on the devices under test with work of one kind in flight, for a process to end around.
//
// Nothing here is taken down by itself: what a scenario does not end stays as it is, as in a program that exits.
//
// Threads: one thread starts, releases and joins.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/pipeline.h"
#include "penstock/runtime.h"

namespace penstock::test_support {

// What is in flight:
//   nothing     one run has ended
//   kernel      a kernel that does not end before Release (on CUDA, at most 20 s)
//   host node   a host node that does not end before Release
//   launching   a thread that launches and waits until it is refused
//   pipeline    a thread in Pipeline::Run whose source ends with Release
inline constexpr std::string_view kInFlight[] = {"nothing", "kernel", "host node", "launching", "pipeline"};

// How a kernel says that it is running, and is told to go on. Not a member of World: nvcc launches no kernel template
// over a private type.
struct HoldWords {
  int32_t arrived, released;
};

class World {
 public:
  // Ends the process with code 77 where there is no such device.
  explicit World(const std::string& devices);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Returns when it is in flight.
  void Start(std::string_view what);
  // Lets everything held go on.
  void Release();
  // After Release: returns how the launching thread or the pipeline ended.
  absl::Status Join();

  // In a fork's copy, whose threads are not there: lets the World be destroyed.
  void ForgetThread() { static auto* const forgotten [[maybe_unused]] = new std::thread(std::move(thread_)); }

  // One run that adds 1 to 256 numbers, to its end. Internal where a number is wrong.
  absl::Status RunOnce();

  Runtime& runtime() { return *runtime_; }
  Executable& executable() { return add_; }
  const BufferHandle<int32_t>& buffer() const { return x_; }
  Run& run() { return run_; }  // of "kernel" and "host node"

 private:
  void StartKernel();
  void StartHostNode();
  absl::Status KeepLaunching();
  absl::Status KeepPiping();

  std::optional<Runtime> runtime_;
  HostBuffer<HoldWords> words_;
  Graph graph_{"add"};
  BufferHandle<int32_t> x_;
  Executable add_;
  Executable held_;
  Run run_;
  std::vector<int32_t> hx_;
  std::atomic<bool> released_{false}, started_{false};
  std::thread thread_;
  absl::Status ended_;
};

}  // namespace penstock::test_support
