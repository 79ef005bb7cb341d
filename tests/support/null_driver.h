// A driver whose devices do nothing, at once: what is left of a run is the runtime's own work.
//
// Ownership: device addresses are numbers; pinned memory is the heap's.
// Threads:   thread-safe: it has no state but counters.
#pragma once

#include <atomic>
#include <cstdlib>

#include "src/driver/driver.h"

namespace penstock::runtime {

class NullDriver : public driver::Driver {
 public:
  int device_count() const override { return 1; }
  const driver::DeviceInfo& device(int) const override { return info_; }
  int MakeCurrent(int) override { return 0; }
  void RestoreCurrent(int) override {}
  bool notifies_completion() const override { return true; }

  absl::StatusOr<driver::Stream> CreateStream(int, int) override { return driver::Stream{++made_}; }
  void DestroyStream(driver::Stream) override {}
  void* NativeStream(driver::Stream) const override { return nullptr; }
  absl::StatusOr<driver::Event> CreateEvent(int, bool) override { return driver::Event{++made_}; }
  void DestroyEvent(driver::Event) override {}
  absl::Status Record(driver::Event, driver::Stream) override { return Called(); }
  absl::Status Wait(driver::Stream, driver::Event) override { return Called(); }
  absl::StatusOr<bool> Query(driver::Event) override { return true; }
  absl::StatusOr<double> Elapsed(driver::Event, driver::Event) override { return 0.0; }

  absl::StatusOr<void*> AllocateDevice(int, size_t) override { return reinterpret_cast<void*>(kDevice); }
  void FreeDevice(int, void*) override {}
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override {
    return std::aligned_alloc(4096, (bytes + 4095) & ~4095ul);
  }
  void FreePinned(void* memory) override { std::free(memory); }
  absl::StatusOr<driver::PointerInfo> Inspect(const void* at) override {
    const auto address = reinterpret_cast<uintptr_t>(at);
    if (address < kDevice) return driver::PointerInfo{driver::PointerInfo::Kind::kPinned, -1, 0, kDevice};
    if (address < 2 * kDevice) return driver::PointerInfo{driver::PointerInfo::Kind::kDevice, 0, kDevice, 2 * kDevice};
    return driver::PointerInfo{driver::PointerInfo::Kind::kPinned, -1, 2 * kDevice, UINTPTR_MAX};
  }
  absl::Status Copy(driver::Stream, const driver::CopyOp&) override { return Called(); }
  absl::Status CopyBatch(driver::Stream, const driver::BatchOp&) override { return Called(); }
  absl::Status Fill(driver::Stream, const driver::FillOp&) override { return Called(); }
  absl::StatusOr<driver::KernelCode> LoadKernel(int, const driver::KernelSource&) override {
    return driver::KernelCode{};
  }
  absl::Status Launch(driver::Stream, const driver::KernelOp&) override { return Called(); }

  absl::StatusOr<driver::Graph> CreateGraph(int) override { return driver::Graph{++made_}; }
  void DestroyGraph(driver::Graph) override {}
  absl::StatusOr<int32_t> AddNode(driver::Graph, std::span<const int32_t>, const driver::NodeOp&,
                                  driver::NodePlace) override {
    return static_cast<int32_t>(++made_);
  }
  absl::StatusOr<driver::GraphExec> Instantiate(driver::Graph) override { return driver::GraphExec{++made_}; }
  void DestroyExec(driver::GraphExec) override {}
  absl::Status Upload(driver::GraphExec, driver::Stream) override { return Called(); }
  absl::Status LaunchGraph(driver::GraphExec, driver::Stream) override { return Called(); }
  absl::Status SetNode(driver::GraphExec, int32_t, const driver::NodeOp&) override { return Called(); }
  absl::Status EnableNode(driver::GraphExec, int32_t, bool) override { return Called(); }
  absl::Status BeginCapture(driver::Stream) override { return Called(); }
  absl::StatusOr<driver::Graph> EndCapture(driver::Stream) override { return driver::Graph{++made_}; }
  absl::StatusOr<int32_t> CountNodes(driver::Graph) override { return 1; }
  absl::StatusOr<int32_t> AddChild(driver::Graph, std::span<const int32_t>, driver::Graph) override {
    return static_cast<int32_t>(++made_);
  }
  absl::Status SetChild(driver::GraphExec, int32_t, driver::Graph) override { return Called(); }
  absl::StatusOr<driver::ConditionalHandle> CreateConditional(driver::Graph) override {
    return driver::ConditionalHandle{++made_};
  }
  absl::StatusOr<driver::ConditionalNode> AddConditional(driver::Graph, std::span<const int32_t>,
                                                         driver::ConditionalHandle, driver::ConditionalKind,
                                                         int32_t bodies) override {
    driver::ConditionalNode node{.number = static_cast<int32_t>(++made_), .bodies = {}};
    for (int32_t b = 0; b < bodies; ++b) node.bodies.push_back(driver::Graph{++made_});
    return node;
  }
  absl::StatusOr<driver::GraphExec> BodyOf(driver::GraphExec, driver::Graph) override {
    return driver::GraphExec{++made_};
  }
  absl::StatusOr<driver::NodeSwitch> AddSwitch(driver::Graph, int32_t, driver::Alternative) override {
    return driver::NodeSwitch{++made_};
  }
  absl::StatusOr<driver::LoopKernels> LoadLoopKernels(int) override { return driver::LoopKernels{}; }

  int64_t calls() const { return calls_.load(std::memory_order_relaxed); }

 private:
  absl::Status Called() {
    calls_.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }

  static constexpr uintptr_t kDevice = uintptr_t{1} << 40;  // where its memory is

  const driver::DeviceInfo info_{driver::DeviceKind::kHost, "host:0", "does nothing", int64_t{1} << 40, 1};
  std::atomic<uint64_t> made_{0};
  std::atomic<int64_t> calls_{0};
};

}  // namespace penstock::runtime
