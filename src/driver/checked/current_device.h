// CurrentDevices: the device of one driver that each thread has made current.
//
// A token encodes the previous device and the token of the driver below, so scopes need no storage.
//
// Threads: thread-safe; each thread sees its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

namespace penstock::driver::checked {

class CurrentDevices {
 public:
  // -1: none.
  int Now() const {
    const auto at = Mine().find(serial_);
    return at == Mine().end() ? -1 : at->second;
  }
  // Returns the token for Leave.
  int Enter(int device, int inner_token) {
    const int token = inner_token * kDevices + Now() + 1;
    Mine()[serial_] = device;
    return token;
  }
  // Returns the token for the driver below.
  int Leave(int token) {
    const int before = token % kDevices - 1;
    if (before < 0) Mine().erase(serial_);
    else Mine()[serial_] = before;
    return token / kDevices;
  }

 private:
  static constexpr int kDevices = 1024;
  static std::map<uint64_t, int>& Mine() {
    static thread_local std::map<uint64_t, int> mine;  // by serial, since an address may be reused
    return mine;
  }
  static uint64_t NextSerial() {
    static std::atomic<uint64_t> next{1};  // a serial number; nothing else depends on it
    return next.fetch_add(1, std::memory_order_relaxed);
  }
  const uint64_t serial_ = NextSerial();
};

}  // namespace penstock::driver::checked
