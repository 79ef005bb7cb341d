// Run: the public handle of a RunCore.
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "penstock/run.h"
#include "src/runtime/run/run_core.h"

namespace penstock {

namespace {
absl::Status NoRun() { return absl::FailedPreconditionError("this Run was default-constructed or moved from"); }
}  // namespace

Run::Run(runtime::RunCore* state) : state_(state) {}
Run::Run(const Run& other) : state_(other.state_) {
  if (state_ != nullptr) state_->AddHandle();
}
Run::~Run() {
  if (state_ != nullptr) state_->DropHandle();
}
absl::Status Run::Wait(Deadline deadline) const { return state_ == nullptr ? NoRun() : state_->Wait(deadline); }
bool Run::done() const {
  if (state_ == nullptr || state_->ended() || state_->forked()) return true;
  state_->Advance();
  return state_->ended();
}
absl::Status Run::status() const { return state_ == nullptr ? NoRun() : state_->status(); }
absl::StatusOr<int64_t> Run::Count(uint32_t graph, int32_t output) const {
  if (state_ == nullptr) return NoRun();
  return state_->Count(graph, output);
}
void Run::OnDone(std::function<void(const absl::Status&)> callback) const {
  if (state_ != nullptr) state_->OnDone(std::move(callback));
}
void Run::Cancel() const {
  if (state_ != nullptr) state_->Cancel();
}

}  // namespace penstock
