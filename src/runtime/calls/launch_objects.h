// LaunchObjects: what the callables of Launch nodes have had made by LaunchContext::Get on one lane of a slot, and the
// capture they are in.
//
// Ownership: owns the objects and what destroys them; borrows the stream and the zeros, which outlive it.
// Threads:   belongs to whoever owns the slot.
// Ordering:  objects go in the opposite order of their making, when Clear is called: the device is current then, and
//            what was submitted with them has ended.
// Errors:    what a constructor throws goes through LaunchContext::Get; so does a std::runtime_error where the capture
// cannot
//            be begun again, whose Status EndCapture returns.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/driver/driver.h"

namespace penstock {
class LaunchContext;
}

namespace penstock::runtime {

class LaunchObjects {
 public:
  using Make = void* (*)(LaunchContext&);
  using Destroy = void (*)(void*);

  LaunchObjects(driver::Driver& driver, driver::Stream stream, const void* zeros)
      : driver_(&driver), stream_(stream), zeros_(zeros) {}
  LaunchObjects(LaunchObjects&&) = default;
  LaunchObjects& operator=(LaunchObjects&&) = delete;
  ~LaunchObjects() { (void)Clear(); }

  driver::Driver& driver() const { return *driver_; }
  driver::Stream stream() const { return stream_; }
  // LaunchContext::kZeroBytes of them; null on host devices.
  const void* zeros() const { return zeros_; }

  // The object of this type, by the address of its tag; null: there is none yet.
  void* Find(const void* type) const {
    for (const Object& object : objects_) {
      if (object.type == type) return object.it;
    }
    return nullptr;
  }
  // Makes it. While the stream captures, that capture ends before and another begins behind.
  void* Add(LaunchContext& launch, const void* type, Make make, Destroy destroy);
  bool empty() const { return objects_.empty(); }
  // What the first destructor that throws has thrown; all others are called nonetheless.
  absl::Status Clear();

  // Around a callable that is to be captured, which has returned `called`: its failure, or what has broken the capture.
  // `again`: an object was made meanwhile, so that the capture is not whole and no graph comes of it (an empty handle);
  // the callable is to be captured once more.
  absl::Status BeginCapture();
  absl::StatusOr<driver::Graph> EndCapture(const absl::Status& called, bool& again);

 private:
  struct Object {
    const void* type;
    void* it;
    Destroy destroy;
  };

  void LeaveCapture();
  void ReenterCapture();

  driver::Driver* driver_;
  driver::Stream stream_;
  const void* zeros_;
  std::vector<Object> objects_;
  // Of the capture that was begun last.
  bool capturing_ = false;
  bool left_ = false;  // for an object
  bool made_ = false;  // one
  absl::Status broken_;  // why it could not be begun again
};

}  // namespace penstock::runtime
