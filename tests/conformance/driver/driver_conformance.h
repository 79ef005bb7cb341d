// What every driver must do alike: one suite, written once in driver_conformance.cc, run over each driver that
// registers.
//
//   INSTANTIATE_TEST_SUITE_P(Host, DriverConformance, testing::Values(DriverUnderTest{"host", &Make, &HostProbes}),
//   NameOf);
//
// A driver that is not there skips with its reason, and so do tests of two devices where the driver has one;
// PENSTOCK_REQUIRE_GPU=n makes a skip for want of up to n devices a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/checked/call_recorder.h"
#include "src/driver/driver.h"
#include "src/host/event_count.h"
#include "tests/conformance/driver/packed_args.h"
#include "tests/conformance/driver/probe_kernels.h"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace penstock::driver::conformance {

struct DriverUnderTest {
  const char* name = "";
  // At least one device, and for a test of everything two.
  absl::StatusOr<std::unique_ptr<Driver>> (*create)(penstock::host::EventCount* event_count) = nullptr;
  const ProbeKernels& (*probes)() = nullptr;
  // Does to a stream that captures what breaks the capture; null: recording an event does, which a checked driver
  // reports.
  void (*break_capture)(void* native_stream) = nullptr;
  // Behind a checked driver, where a test that is not meant to break the driver's rules fails when it does.
  bool checked = false;
};

// PENSTOCK_REQUIRE_GPU=2 makes this a failure.
#define SKIP_UNLESS_TWO_DEVICES()                                                      \
  if (driver_->device_count() < 2) {                                                   \
    if (RequiredDevices() >= 2) FAIL() << "PENSTOCK_REQUIRE_GPU asks for two devices"; \
    GTEST_SKIP() << "needs two devices";                                               \
  }

inline std::ostream& operator<<(std::ostream& out, const DriverUnderTest& driver) { return out << driver.name; }
inline std::string NameOf(const testing::TestParamInfo<DriverUnderTest>& info) { return info.param.name; }

class DriverConformance : public testing::TestWithParam<DriverUnderTest> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // These live until the test ends; each makes its device current meanwhile.
  template <class T>
  T* Device(size_t count, int device = 0) {
    return static_cast<T*>(DeviceBytes(count * sizeof(T), device));
  }
  template <class T>
  T* Pinned(size_t count) {
    return static_cast<T*>(PinnedBytes(count * sizeof(T)));
  }
  Stream NewStream(int device = 0, int priority = 0);
  Event NewEvent(int device = 0, bool timing = false);
  Graph NewGraph(int device = 0);
  // Of what `submit` submits to the stream, which is of device 0. That loads no kernel: see OpOf.
  Graph NewCapture(Stream stream, const std::function<absl::Status()>& submit);
  // Of a graph that is as it shall be.
  GraphExec NewExec(Graph graph, int device = 0);
  KernelLatch& NewLatch();
  void OpenLatches();

  // A probe as an operation, good while `args` is. The kernels are loaded.
  KernelOp OpOf(const Probe& probe, const PackedArgs& args, int64_t rows = 1, int device = 0);
  // Queues a probe.
  absl::Status Launch(Stream stream, const Probe& probe, const PackedArgs& args, int64_t rows = 1, int device = 0);
  absl::Status Step(Stream stream, int32_t* data, int64_t n, int32_t k, int device = 0);
  // Queues a kernel that stays until the latch is opened, and returns when it runs.
  [[nodiscard]] bool Hold(Stream stream, KernelLatch& latch, int device = 0);
  absl::Status Note(Stream stream, const KernelLatch& latch, int32_t* out, int device = 0);
  // Runs notes of a closed latch on a stream that waits for nothing, again and again: what was submitted before and
  // waits for nothing either has run by then. Needs a thread of the device that nothing holds; `out` is pinned. Says
  // whether all notes came to their end and found the latch closed.
  [[nodiscard]] bool LetOthersRun(Stream stream, const KernelLatch& closed, int32_t* out, int device = 0);

  // Nodes of a graph or body, by their number; -1 and a failure of the test if they are refused.
  int32_t AddStep(Graph graph, const std::vector<int32_t>& after, int32_t* number, int32_t k);
  int32_t AddProbe(Graph graph, const std::vector<int32_t>& after, const Probe& probe, const PackedArgs& args);
  ConditionalHandle NewHandle(Graph graph);
  ConditionalNode AddConditional(Graph graph, const std::vector<int32_t>& after, ConditionalHandle handle,
                                 ConditionalKind kind, int32_t bodies = 1);

  absl::Status Upload(Stream stream, void* device, const void* pinned, size_t bytes);
  absl::Status Download(Stream stream, void* pinned, const void* device, size_t bytes);
  // Wait for what is queued; false after a minute.
  [[nodiscard]] bool Finish(Event event);
  [[nodiscard]] bool Finish(Stream stream, int device = 0);
  // The bytes of device memory as they are now.
  std::vector<std::byte> BytesOf(const void* device_memory, size_t bytes, int device = 0);
  // Pinned memory with bytes that differ from place to place and between seeds.
  std::byte* PinnedNoise(size_t bytes, uint32_t seed);

  const ProbeKernels& probes() const { return GetParam().probes(); }
  // For tests that do on purpose what a driver must bear and the library must not do.
  void ExpectViolations() { breaks_rules_ = true; }

  penstock::host::EventCount event_count_;
  std::unique_ptr<Driver> driver_;
  Stream stream_;  // on device 0

 private:
  class Current;
  void* DeviceBytes(size_t bytes, int device);
  void* PinnedBytes(size_t bytes);
  const void* KernelOf(const Probe& probe, int device);

  std::shared_ptr<checked::CallRecorder> witness_;  // null where the driver is not checked
  bool breaks_rules_ = false;
  int outer_ = 0;
  std::vector<std::pair<int, void*>> device_memory_;
  std::vector<void*> pinned_memory_;
  std::vector<std::pair<int, Stream>> streams_;
  std::vector<std::pair<int, Event>> events_;
  std::vector<std::pair<int, Graph>> graphs_;
  std::vector<std::pair<int, GraphExec>> execs_;
  std::vector<KernelLatch*> latches_;
};

}  // namespace penstock::driver::conformance
