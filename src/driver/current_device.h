// CurrentDevice: sets the calling thread's current device, to one device after another.
//
// Ownership: its destructor restores what was current before.
// Threads:   belongs to one thread.
#pragma once

#include "src/driver/driver.h"

namespace penstock::driver {

class CurrentDevice {
 public:
  explicit CurrentDevice(Driver& driver) : driver_(driver) {}
  CurrentDevice(Driver& driver, int device) : driver_(driver) { Set(device); }
  ~CurrentDevice() { Leave(); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  void Set(int device) {
    if (device == device_) return;
    Leave();
    token_ = driver_.MakeCurrent(device);
    device_ = device;
  }

 private:
  void Leave() {
    if (device_ >= 0) driver_.RestoreCurrent(token_);
  }

  Driver& driver_;
  int device_ = -1;
  int token_ = 0;
};

}  // namespace penstock::driver
