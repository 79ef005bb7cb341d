// What tests of the pinned pool need: a driver that has pinned memory and nothing else, and says who called when.
//
// Threads: the hooks are set before other threads call.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "src/base/mutex.h"
#include "src/driver/driver.h"
#include "src/memory/pinned_pool.h"

namespace penstock::memory {

inline bool OnPoolThread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string(name.data()) == "ps-pool";
}

// Of this process.
inline int PoolThreads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name == "ps-pool" ? 1 : 0;
  }
  return count;
}

class PinnedOnlyDriver : public driver::Driver {
 public:
  ~PinnedOnlyDriver() override { EXPECT_EQ(live.load(), 0) << "slabs were not freed"; }

  absl::StatusOr<void*> AllocatePinned(size_t bytes) override {
    if (before_allocate) before_allocate();
    base::MutexLock lock(mu_);
    calls.fetch_add(1);
    changed_.NotifyAll();
    if (fail.load()) return absl::UnavailableError("the driver said no");
    void* const memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    bytes_of_[memory] = bytes;
    live_bytes_ += bytes;
    most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
    live.fetch_add(1);
    return memory;
  }
  void FreePinned(void* memory) override {
    if (before_free) before_free();
    base::MutexLock lock(mu_);
    live_bytes_ -= bytes_of_.extract(memory).mapped();
    live.fetch_sub(1);
    std::free(memory);
    changed_.NotifyAll();
  }

  void AwaitCalls(int count) {
    base::MutexLock lock(mu_);
    while (calls.load() < count) changed_.Wait(mu_);
  }
  void AwaitLive(int count) {
    base::MutexLock lock(mu_);
    while (live.load() != count) changed_.Wait(mu_);
  }
  size_t most_live_bytes() {
    base::MutexLock lock(mu_);
    return most_live_bytes_;
  }

  std::atomic<int> calls{0}, live{0};  // of AllocatePinned; slabs
  std::atomic<bool> fail{false};
  std::function<void()> before_allocate, before_free;

  int device_count() const override { return 0; }
  const driver::DeviceInfo& device(int) const override { return none_; }
  int MakeCurrent(int) override { return 0; }
  void RestoreCurrent(int) override {}
  bool notifies_completion() const override { return false; }
  absl::StatusOr<driver::Stream> CreateStream(int, int) override { return No(); }
  void DestroyStream(driver::Stream) override {}
  void* NativeStream(driver::Stream) const override { return nullptr; }
  absl::StatusOr<driver::Event> CreateEvent(int, bool) override { return No(); }
  void DestroyEvent(driver::Event) override {}
  absl::Status Record(driver::Event, driver::Stream) override { return No(); }
  absl::Status Wait(driver::Stream, driver::Event) override { return No(); }
  absl::StatusOr<bool> Query(driver::Event) override { return No(); }
  absl::StatusOr<double> Elapsed(driver::Event, driver::Event) override { return No(); }
  absl::StatusOr<void*> AllocateDevice(int, size_t) override { return No(); }
  void FreeDevice(int, void*) override {}
  absl::StatusOr<driver::PointerInfo> Inspect(const void*) override { return No(); }
  absl::Status Copy(driver::Stream, const driver::CopyOp&) override { return No(); }
  absl::Status CopyBatch(driver::Stream, const driver::BatchOp&) override { return No(); }
  absl::Status Fill(driver::Stream, const driver::FillOp&) override { return No(); }
  absl::StatusOr<driver::KernelCode> LoadKernel(int, const driver::KernelSource&) override { return No(); }
  absl::Status Launch(driver::Stream, const driver::KernelOp&) override { return No(); }
  absl::StatusOr<driver::Graph> CreateGraph(int) override { return No(); }
  void DestroyGraph(driver::Graph) override {}
  absl::StatusOr<int32_t> AddNode(driver::Graph, std::span<const int32_t>, const driver::NodeOp&,
                                  driver::NodePlace) override {
    return No();
  }
  absl::StatusOr<driver::GraphExec> Instantiate(driver::Graph) override { return No(); }
  void DestroyExec(driver::GraphExec) override {}
  absl::Status Upload(driver::GraphExec, driver::Stream) override { return No(); }
  absl::Status LaunchGraph(driver::GraphExec, driver::Stream) override { return No(); }
  absl::Status SetNode(driver::GraphExec, int32_t, const driver::NodeOp&) override { return No(); }
  absl::Status EnableNode(driver::GraphExec, int32_t, bool) override { return No(); }
  absl::Status BeginCapture(driver::Stream) override { return No(); }
  absl::StatusOr<driver::Graph> EndCapture(driver::Stream) override { return No(); }
  absl::StatusOr<int32_t> CountNodes(driver::Graph) override { return No(); }
  absl::StatusOr<int32_t> AddChild(driver::Graph, std::span<const int32_t>, driver::Graph) override { return No(); }
  absl::Status SetChild(driver::GraphExec, int32_t, driver::Graph) override { return No(); }

 private:
  static absl::Status No() { return absl::UnimplementedError("pinned memory only"); }
  driver::DeviceInfo none_;
  base::Mutex mu_;
  base::CondVar changed_;
  std::map<void*, size_t> bytes_of_ ABSL_GUARDED_BY(mu_);
  size_t live_bytes_ ABSL_GUARDED_BY(mu_) = 0, most_live_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

inline std::shared_ptr<PinnedBudget> Budget(size_t bytes) { return std::make_shared<PinnedBudget>(bytes); }

inline PinnedBlock MustAllocate(PinnedPool& pool, size_t bytes, int node = -1) {
  absl::StatusOr<PinnedBlock> block = pool.Allocate(bytes, node);
  EXPECT_TRUE(block.ok()) << block.status();
  return block.ok() ? *std::move(block) : PinnedBlock();
}

}  // namespace penstock::memory
