#include "src/runtime/calls/launch_objects.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "penstock/launch_context.h"
#include "src/base/catch_all.h"
#include "src/base/status.h"
#include "src/base/user_code.h"

namespace penstock {

void* LaunchContext::Find(const void* type, bool (*is)(const void* object, const void* by), const void* by) const {
  return objects_->Find(type, is, by);
}
void* LaunchContext::Make(const void* type, void* (*make)(LaunchContext&, const void* by), const void* by,
                          void (*destroy)(void*)) {
  return objects_->Add(*this, type, make, by, destroy);
}
const void* LaunchContext::Zeros() const { return objects_->zeros(); }

}  // namespace penstock

namespace penstock::runtime {

// A constructor may request other objects: only the outermost one leaves the capture.
void* LaunchObjects::Add(LaunchContext& launch, const void* type, Make make, const void* by, Destroy destroy) {
  const bool leaves = capturing_;
  if (leaves) LeaveCapture();
  void* it = nullptr;
  try {
    std::unique_ptr<void, Destroy> made(make(launch, by), destroy);
    if (made != nullptr) {
      objects_.push_back({type, made.get(), destroy});
      it = made.release();
      made_ = true;
    }
  } catch (...) {
    if (leaves) ReenterCapture();
    throw;
  }
  if (leaves) ReenterCapture();
  return it;
}

absl::Status LaunchObjects::Clear() {
  base::UserCodeScope scope;
  absl::Status first;
  while (!objects_.empty()) {
    const Object last = objects_.back();
    objects_.pop_back();
    first.Update(base::CatchAll("the destructor of an object of LaunchContext::Get", [&] { last.destroy(last.it); }));
  }
  return first;
}

absl::Status LaunchObjects::BeginCapture() {
  left_ = made_ = false;
  broken_ = absl::OkStatus();
  const absl::Status begun = driver_->BeginCapture(stream_);
  capturing_ = begun.ok();
  return begun;
}

// Whatever has broken the capture so far will break the next one too, and is reported then.
void LaunchObjects::LeaveCapture() {
  capturing_ = false;
  left_ = true;
  const absl::StatusOr<driver::Graph> graph = driver_->EndCapture(stream_);
  if (graph.ok()) driver_->DestroyGraph(*graph);
}

// What the callable submits next must not run.
void LaunchObjects::ReenterCapture() {
  broken_ = driver_->BeginCapture(stream_);
  capturing_ = broken_.ok();
  if (!broken_.ok()) throw std::runtime_error("capturing could not be begun again: " + base::Str(broken_.message()));
}

absl::StatusOr<std::optional<driver::Graph>> LaunchObjects::EndCapture(const absl::Status& called) {
  if (!std::exchange(capturing_, false)) return broken_;
  absl::StatusOr<driver::Graph> graph = driver_->EndCapture(stream_);
  if (called.ok() && !left_) return graph;
  if (graph.ok()) driver_->DestroyGraph(*graph);
  if (!called.ok()) return graph.ok() ? called : base::Suffixed(called, "; and " + base::Str(graph.status().message()));
  if (made_) return std::nullopt;
  return absl::FailedPreconditionError(
      "an object that the callable asked for by Get was not made, and the callable went on; let the exception of its "
      "constructor through, or return the error that Get returned");
}

}  // namespace penstock::runtime
