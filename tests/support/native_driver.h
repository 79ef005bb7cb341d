// A driver in front of a host one, whose streams and graphs have handles of their own as those of CUDA have: so that
// tests can be the application that has such a stream, or gets such a graph, without a GPU.
//
// Threads: those of the driver behind.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "tests/support/forwarding_driver.h"

namespace penstock::driver {

class NativeDriver : public ForwardingDriver {
 public:
  using ForwardingDriver::ForwardingDriver;

  std::atomic<bool> refuses_waits = false;  // MakeNativeWait fails

  static void* HandleOf(Stream stream) { return reinterpret_cast<void*>(stream.bits); }
  static Graph GraphOf(void* handle) { return {reinterpret_cast<uint64_t>(handle)}; }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override {
    absl::StatusOr<Stream> stream = ForwardingDriver::CreateStream(device, priority);
    const std::lock_guard lock(mu_);
    if (stream.ok()) device_of_[HandleOf(*stream)] = device;
    return stream;
  }
  absl::StatusOr<int> DeviceOfNative(void* stream) override {
    const std::lock_guard lock(mu_);
    const auto found = device_of_.find(stream);
    if (found == device_of_.end()) return absl::InvalidArgumentError("of no device here");
    return found->second;
  }
  absl::Status RecordOnNative(Event event, void* stream) override { return Record(event, StreamOf(stream)); }
  absl::Status MakeNativeWait(void* stream, Event event) override {
    return refuses_waits ? absl::InternalError("no waits") : Wait(StreamOf(stream), event);
  }
  void* NativeGraph(Graph graph) override { return reinterpret_cast<void*>(graph.bits); }

 private:
  static Stream StreamOf(void* handle) { return {reinterpret_cast<uint64_t>(handle)}; }

  std::mutex mu_;
  std::map<void*, int> device_of_;
};

}  // namespace penstock::driver
