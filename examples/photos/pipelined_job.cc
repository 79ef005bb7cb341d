// The job over all devices at once, by RunPipeline: decode, one executable a device, check and encode.
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "edges_graph.h"
#include "gate.h"
#include "job.h"
#include "job_parts.h"
#include "penstock/executable.h"
#include "penstock/pipeline.h"
#include "penstock/status_macros.h"
#include "stages.h"

namespace photos {
namespace {

constexpr int64_t kWaitingBytes = int64_t{1} << 30;  // at most, of pinned memory for pictures to be encoded

class PipelinedJob {
 public:
  PipelinedJob(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime,
               const OnPicture& on_picture)
      : options_(options),
        catalogue_(catalogue),
        runtime_(runtime),
        on_picture_(on_picture),
        graph_(DeclareFor(catalogue, options)),
        stages_(options, catalogue, runtime, trace_),
        workers_(options.workers) {}

  JobResult Run();

 private:
  absl::Status RunAll();
  absl::Status RunPart(std::vector<penstock::Executable> executables, int64_t first, int64_t end);
  absl::StatusOr<std::vector<penstock::Executable>> Compile(std::shared_ptr<penstock::Trace> trace);
  penstock::PipelineStages<Item> StagesFor(int64_t first, int64_t end);
  penstock::PipelineOptions Shape(const std::vector<penstock::Executable>& executables) const;
  void Take(const Item& item, const absl::Status& status);

  const Options& options_;
  const Catalogue& catalogue_;
  penstock::Runtime* const runtime_;
  const OnPicture& on_picture_;
  const std::shared_ptr<penstock::Trace> trace_ = penstock::Trace::Create();
  const EdgesGraph graph_;
  Stages stages_;
  Gate workers_;
  std::atomic<bool> broken_{false};  // set by the sink; read by the source and the stages, which then only wind up

  // Of the sink's thread, which is the one that called Run.
  absl::Status status_;
  SkipList skipped_;
  std::optional<JobClock> clock_;
};

JobResult PipelinedJob::Run() {
  JobResult result;
  result.status = RunAll();
  result.status.Update(status_);
  if (clock_) result.measurement = clock_->Stop(stages_, *trace_, options_.workers);
  result.skipped = skipped_.statuses();
  result.trace = trace_;
  return result;
}

// Whether an executable traces is settled when it is compiled: the traced pictures and the rest each have their own.
absl::Status PipelinedJob::RunAll() {
  const int64_t total = static_cast<int64_t>(catalogue_.photos.size()) * options_.repeat;
  const int64_t traced = std::min<int64_t>(total, options_.trace_pictures);
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<penstock::Executable> executables, Compile(trace_));
  if (options_.preload) stages_.Preload();
  clock_.emplace();
  PENSTOCK_RETURN_IF_ERROR(RunPart(std::move(executables), 0, traced));
  if (traced == total || broken_) return absl::OkStatus();
  clock_->EndTracing();
  stages_.StopTracing();
  PENSTOCK_ASSIGN_OR_RETURN(executables, Compile(nullptr));
  return RunPart(std::move(executables), traced, total);
}

// Pictures `first` to `end` - 1 of the job.
absl::Status PipelinedJob::RunPart(std::vector<penstock::Executable> executables, int64_t first, int64_t end) {
  const penstock::PipelineOptions shape = Shape(executables);
  return penstock::RunPipeline(std::move(executables), StagesFor(first, end), shape);
}

// One executable a device.
absl::StatusOr<std::vector<penstock::Executable>> PipelinedJob::Compile(std::shared_ptr<penstock::Trace> trace) {
  std::vector<penstock::Executable> executables;
  for (size_t device = 0; device < runtime_->devices().size(); ++device) {
    penstock::CompileOptions compile;
    compile.slots = options_.slots;
    compile.device = static_cast<int>(device);
    compile.trace = trace;
    PENSTOCK_ASSIGN_OR_RETURN(penstock::Executable executable, runtime_->Compile(graph_.graph, compile));
    executables.push_back(std::move(executable));
  }
  return executables;
}

penstock::PipelineStages<Item> PipelinedJob::StagesFor(int64_t first, int64_t end) {
  penstock::PipelineStages<Item> stages;
  stages.source = [this, next = first, end]() mutable -> std::optional<Item> {
    if (next == end || broken_) return std::nullopt;
    return ItemAt(catalogue_, next++);
  };
  stages.before = [this](Item& item) {
    const Gate::Pass pass(&workers_);
    return broken_ ? absl::CancelledError("the job broke off") : stages_.Decode(&item);
  };
  stages.bind = [this](Item& item, int, penstock::Bindings& bindings) {
    Bind(graph_, catalogue_.photos[item.photo], item, &bindings);
    return absl::OkStatus();
  };
  stages.after = [this](Item& item) {
    const Gate::Pass pass(&workers_);
    return stages_.Finish(&item);
  };
  stages.sink = [this](Item&& item, const absl::Status& status) { Take(item, status); };
  return stages;
}

// Decoding and encoding can each take all the workers; handing out what is preloaded takes one. Pictures leave in
// order, so while one takes several times as long as the others, the workers live on what waits to be encoded: eight
// pictures a worker, fewer where they are large.
penstock::PipelineOptions PipelinedJob::Shape(const std::vector<penstock::Executable>& executables) const {
  penstock::PipelineOptions shape;
  shape.before_workers = options_.preload ? 1 : options_.workers;
  shape.after_workers = options_.workers;
  shape.before_queue = options_.slots * static_cast<int>(executables.size());
  const int64_t bytes = (sizeof(Rgb) + 1) * catalogue_.max_width * catalogue_.max_height;
  shape.after_queue = static_cast<int>(std::clamp<int64_t>(kWaitingBytes / bytes, 2, 8 * options_.workers));
  return shape;
}

// The sink: pictures come in the order of the source. The first error that is not about a file breaks the job off.
void PipelinedJob::Take(const Item& item, const absl::Status& status) {
  if (status.ok()) {
    clock_->Count(catalogue_.photos[item.photo].info);
  } else if (item.unreadable) {
    skipped_.Add(item.photo, status);
  } else {
    status_.Update(status);
    broken_ = true;
    return;
  }
  on_picture_(clock_->images(), skipped_.size());
}

}  // namespace

JobResult RunPipelined(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime,
                       const OnPicture& on_picture) {
  return PipelinedJob(options, catalogue, runtime, on_picture).Run();
}

}  // namespace photos
