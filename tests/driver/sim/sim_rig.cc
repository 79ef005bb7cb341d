#include "tests/driver/sim/sim_rig.h"

#include <algorithm>
#include <thread>

#include "penstock/status_macros.h"
#include "src/runtime/core/test_hook.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/executable/internals.h"
#include "src/runtime/run/internals.h"

namespace penstock {

void RunTimes::Resize(int32_t runs, size_t nodes) {
  begin_us.assign(static_cast<size_t>(runs), std::vector<double>(nodes, -1));
  end_us = begin_us;
}

SimRig::SimRig(std::vector<graph::SimDevice> devices, const graph::SimOptions& options)
    : options_(options), threads_(options.workers + 1) {
  host::EventCount* event_count = nullptr;
  runtime::DriverHook hook;
  hook.host_options = [&](driver::host::HostDriverOptions& host) { event_count = host.event_count; };
  hook.wrap = [&](std::unique_ptr<driver::Driver>) {
    auto sim = std::make_unique<driver::sim::SimDriver>(
        driver::sim::SimDriverOptions{.devices = devices,
                                      .times = options,
                                      .cost_of = [this](const driver::OpTag& tag) { return CostOf(tag); },
                                      .settle = [this] { Settle(); },
                                      .event_count = event_count});
    driver_ = sim.get();
    return sim;
  };
  hook.pinned.slab_bytes = 1 << 20;
  const runtime::ScopedDriverHook scope(std::move(hook));
  runtime_.emplace(*Runtime::Create(
      {.devices = "host", .workers = options.workers, .host_device_threads = 1, .submission_threads = 0}));
}

std::optional<driver::sim::SimDriverOptions::Cost> SimRig::CostOf(const driver::OpTag& tag) const {
  if (core_ == nullptr || tag.fault == nullptr || tag.node < 0) return std::nullopt;
  for (int s = 0; s < core_->slots(); ++s) {
    const runtime::RunSlot& slot = core_->slot(s);
    if (&slot.fault != tag.fault) continue;
    return driver::sim::SimDriverOptions::Cost{.run = static_cast<int32_t>(slot.progress.serial),
                                               .us = (*us_)[static_cast<size_t>(tag.node)]};
  }
  return std::nullopt;
}

void SimRig::SpendOnHost(int32_t decl, int32_t run) {
  const auto& nodes = core_->graph().plan().nodes;
  const auto at = std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.decl == decl; });
  const auto n = static_cast<size_t>(at - nodes.begin());
  const auto r = static_cast<size_t>(run);
  times_.begin_us[r][n] = driver_->now_us();
  driver_->Spend((*us_)[n]);
  times_.end_us[r][n] = driver_->now_us();
}

// A thread that spends time does so until the next step. A worker may wake the completion thread and then sleep, so
// that one has to have slept all the time while the workers are counted: then nobody can wake them.
bool SimRig::IsQuiet() const {
  runtime::RuntimeCore& runtime = core_->runtime();
  const std::optional<uint64_t> before = runtime.completion().asleep();
  const int spend = driver_->busy();
  const int64_t counted = spend + (before ? 1 : 0) + runtime.workers().asleep();
  return counted == threads_ && runtime.completion().asleep() == before;
}

void SimRig::Settle() {
  while (!IsQuiet()) std::this_thread::yield();
  for (Launched& launched : launched_) {
    if (launched.ended_us < 0 && detail::Internals<penstock::Run>::CoreOf(launched.run)->ended()) {
      launched.ended_us = driver_->now_us();
    }
  }
}

absl::StatusOr<Lease> SimRig::Acquire(Executable& executable) {
  for (;;) {
    absl::StatusOr<Lease> lease = executable.TryAcquire();
    if (lease.ok() || lease.status().code() != absl::StatusCode::kResourceExhausted) return lease;
    if (!driver_->Step()) return absl::InternalError("no slot comes free, and nothing will happen");
  }
}

absl::Status SimRig::LaunchAll(Executable& executable, const std::function<const Bindings&(int32_t)>& bind) {
  for (int32_t r = 0; r < options_.runs; ++r) {
    const double ready = std::max(driver_->now_us() + options_.between_us, r * options_.period_us);
    driver_->Spend(ready - driver_->now_us());
    PENSTOCK_ASSIGN_OR_RETURN(Lease lease, Acquire(executable));
    times_.launched_us.push_back(driver_->now_us());
    driver_->Spend(options_.launch_us);
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Run run, lease.Launch(bind(r)));
    detail::Internals<penstock::Run>::CoreOf(run)->WatchInBackground();
    launched_.push_back({std::move(run)});
  }
  return absl::OkStatus();
}

absl::StatusOr<RunTimes> SimRig::Run(Executable& executable, const std::vector<double>& us,
                                     const std::function<const Bindings&(int32_t)>& bind) {
  core_ = &detail::Internals<Executable>::SetOf(executable)->first();
  us_ = &us;
  times_.Resize(options_.runs, us.size());
  const absl::Status launched = LaunchAll(executable, bind);
  while (driver_->Step()) {  // also after an error: nobody can wait for what is in flight
  }
  PENSTOCK_RETURN_IF_ERROR(launched);
  for (const Launched& of : launched_) {
    if (of.ended_us < 0) return absl::InternalError("a run has not ended, and nothing will happen");
    PENSTOCK_RETURN_IF_ERROR(detail::Internals<penstock::Run>::CoreOf(of.run)->status());
    times_.ended_us.push_back(of.ended_us);
  }
  launched_.clear();
  for (const graph::SimSpan& span : driver_->spans()) {
    times_.begin_us[static_cast<size_t>(span.run)][static_cast<size_t>(span.node)] = span.begin_us;
    times_.end_us[static_cast<size_t>(span.run)][static_cast<size_t>(span.node)] = span.end_us;
  }
  return std::move(times_);
}

}  // namespace penstock
