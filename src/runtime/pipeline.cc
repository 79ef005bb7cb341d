// RunPipeline over real executables: checks what it is given, then binds and launches for PipelineCore.
#include "penstock/pipeline.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "penstock/run.h"
#include "penstock/status_macros.h"
#include "src/base/user_code.h"
#include "src/runtime/pipeline_core.h"

namespace penstock {
namespace {

constexpr int kMost = 1 << 16;  // of workers and places in a queue

absl::Status CheckCount(const char* name, int value) {
  if (value >= 1 && value <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pipeline: PipelineOptions::", name, " is ", value, "; it must be from 1 to ", kMost));
}

absl::Status Check(const std::vector<Executable>& executables, const detail::AnyStages& stages,
                   const PipelineOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(CheckCount("before_workers", options.before_workers));
  PENSTOCK_RETURN_IF_ERROR(CheckCount("after_workers", options.after_workers));
  PENSTOCK_RETURN_IF_ERROR(CheckCount("before_queue", options.before_queue));
  PENSTOCK_RETURN_IF_ERROR(CheckCount("after_queue", options.after_queue));
  if (!stages.source || !stages.bind || !stages.sink) {
    return absl::InvalidArgumentError("pipeline: a stage is missing; source, bind and sink are required");
  }
  if (executables.empty()) return absl::InvalidArgumentError("pipeline: no executables; give at least one");
  for (size_t e = 0; e < executables.size(); ++e) {
    if (executables[e].slots() > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("pipeline: executable ", e, " was default-constructed or moved from; use Runtime::Compile"));
  }
  if (base::InUserCode()) {
    return absl::FailedPreconditionError(
        "pipeline: RunPipeline was called inside a host node or callback, where it could wait for the very worker it "
        "runs on; call it from a thread of your own");
  }
  return absl::OkStatus();
}

std::vector<int> SlotsOf(std::span<const Executable> executables) {
  std::vector<int> slots;
  for (const Executable& executable : executables) slots.push_back(executable.slots());
  return slots;
}

// One executable and the bindings that all its launches share. Used by the feeder alone.
class Station {
 public:
  explicit Station(Executable executable) : executable_(std::move(executable)), bindings_(executable_.bindings()) {}

  template <class Bind>
  absl::Status Launch(Bind bind, runtime::PipelineCore::Done done) {
    const absl::Status bound = runtime::CatchAll("bind", [&] { return bind(bindings_); });
    const absl::StatusOr<Run> run = bound.ok() ? executable_.Launch(bindings_) : bound;
    if (!run.ok()) {
      bindings_ = executable_.bindings();  // they keep a mistake once made
      return run.status();
    }
    bindings_.ClearBuffers();  // the run has its own keep-alives
    run->OnDone(std::move(done));
    return absl::OkStatus();
  }

 private:
  Executable executable_;
  Bindings bindings_;
};

}  // namespace

int64_t MaxInFlight(std::span<const Executable> executables, const PipelineOptions& options) {
  return runtime::PipelineCore::MaxInFlight(SlotsOf(executables), options);
}

absl::Status detail::RunAnyPipeline(std::vector<Executable> executables, AnyStages stages,
                                    const PipelineOptions& options) {
  PENSTOCK_RETURN_IF_ERROR(Check(executables, stages, options));
  const std::vector<int> slots = SlotsOf(executables);
  std::vector<Station> stations;
  for (Executable& executable : executables) stations.emplace_back(std::move(executable));
  runtime::PipelineCore::Stages steps;
  steps.source = std::move(stages.source);
  steps.before = std::move(stages.before);
  steps.after = std::move(stages.after);
  steps.sink = std::move(stages.sink);
  steps.launch = [&](void* item, int executable, runtime::PipelineCore::Done done) {
    auto bind = [&](Bindings& bindings) { return stages.bind(item, executable, bindings); };
    return stations[static_cast<size_t>(executable)].Launch(bind, std::move(done));
  };
  return runtime::PipelineCore(std::move(steps), slots, options).Run();
}

}  // namespace penstock
