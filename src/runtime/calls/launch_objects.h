// LaunchObjects: the objects that callables of Launch nodes had LaunchContext::Get make on one lane of a slot, and the
// capture in progress.
//
// Ownership: owns the objects and their destroy functions; borrows the stream and the zeros, which outlive it.
// Threads:   used only by the slot's owner.
// Ordering:  Clear destroys objects in reverse order of creation, with the device current and after the work submitted
//            with them has ended.
// Errors:    an exception from a constructor propagates through LaunchContext::Get; so does a std::runtime_error if the
//            capture cannot be begun again, whose Status EndCapture returns.
#pragma once

#include <optional>
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
  using Make = void* (*)(LaunchContext&, const void* by);
  using Is = bool (*)(const void* object, const void* by);
  using Destroy = void (*)(void*);

  LaunchObjects(driver::Driver& driver, driver::Stream stream, const void* zeros)
      : driver_(&driver), stream_(stream), zeros_(zeros) {}
  LaunchObjects(LaunchObjects&&) = default;
  LaunchObjects& operator=(LaunchObjects&&) = delete;
  ~LaunchObjects() { (void)Clear(); }

  driver::Driver& driver() const { return *driver_; }
  driver::Stream stream() const { return stream_; }
  // LaunchContext::kZeroBytes zero bytes; null on host devices.
  const void* zeros() const { return zeros_; }

  // The object whose type has this tag address and of which is(object, by) is true; null if there is none yet.
  void* Find(const void* type, Is is, const void* by) const {
    for (const Object& object : objects_) {
      if (object.type == type && is(object.it, by)) return object.it;
    }
    return nullptr;
  }
  // Makes the object with make(launch, by), and returns it; null if that returns null, a failure that the callable
  // returns. If the stream is capturing, ends that capture first and begins another afterwards.
  void* Add(LaunchContext& launch, const void* type, Make make, const void* by, Destroy destroy);
  bool empty() const { return objects_.empty(); }
  // Returns what the first throwing destructor threw; the others are called nonetheless.
  absl::Status Clear();

  // Called around a callable that is captured and has returned `called`. EndCapture returns that failure, or what broke
  // the capture. If an object was made meanwhile, the capture is incomplete: it returns no graph, and the callable
  // must be captured once more.
  absl::Status BeginCapture();
  absl::StatusOr<std::optional<driver::Graph>> EndCapture(const absl::Status& called);

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
  // The state of the last capture.
  bool capturing_ = false;
  bool left_ = false;  // to make an object
  bool made_ = false;  // an object was made
  absl::Status broken_;  // why the capture could not be begun again
};

}  // namespace penstock::runtime
