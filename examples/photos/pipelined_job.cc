// The job over all devices at once, by a Pipeline: decode, one executable a device, check and encode.
#include <algorithm>
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
  absl::Status RunPart(penstock::Executable executable, int64_t first, int64_t end);
  absl::StatusOr<penstock::Executable> Compile(std::shared_ptr<penstock::Trace> trace);
  penstock::Stages<Item> StagesFor(penstock::Executable executable);
  int Window(int slots) const;
  // False: the job breaks off.
  bool Take(const Item& item, const absl::Status& status);

  const Options& options_;
  const Catalogue& catalogue_;
  penstock::Runtime* const runtime_;
  const OnPicture& on_picture_;
  const std::shared_ptr<penstock::Trace> trace_ = penstock::Trace::Create();
  const EdgesGraph graph_;
  Stages stages_;
  TrySemaphore workers_;

  // Of the sink's thread, which is the one that called Run.
  absl::Status status_;
  SkipList skipped_;
  bool broken_ = false;  // what still comes is cancelled
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
  PENSTOCK_ASSIGN_OR_RETURN(penstock::Executable executable, Compile(trace_));
  if (options_.preload) stages_.Preload();
  clock_.emplace();
  PENSTOCK_RETURN_IF_ERROR(RunPart(std::move(executable), 0, traced));
  if (traced == total || broken_) return absl::OkStatus();
  clock_->EndTracing();
  stages_.StopTracing();
  PENSTOCK_ASSIGN_OR_RETURN(executable, Compile(nullptr));
  return RunPart(std::move(executable), traced, total);
}

// Pictures `first` to `end` - 1 of the job.
absl::Status PipelinedJob::RunPart(penstock::Executable executable, int64_t first, int64_t end) {
  const int window = Window(executable.slots());
  PENSTOCK_ASSIGN_OR_RETURN(auto pipeline,
                            penstock::Pipeline<Item>::Create(StagesFor(std::move(executable)), {.window = window}));
  const auto source = [&, next = first]() mutable -> std::optional<Item> {
    if (next == end || broken_) return std::nullopt;
    return ItemAt(catalogue_, next++);
  };
  return pipeline.Run(source, [&](penstock::Item<Item>& item) {
    if (!broken_ && !Take(item.value(), item.status())) pipeline.Cancel();
  });
}

// On all devices.
absl::StatusOr<penstock::Executable> PipelinedJob::Compile(std::shared_ptr<penstock::Trace> trace) {
  penstock::CompileOptions compile;
  compile.slots = options_.slots;
  compile.devices = runtime_->all_devices();
  compile.trace = std::move(trace);
  return runtime_->Compile(graph_.graph, compile);
}

// Decoding and encoding can each take all the workers, or as many as the settings say; handing out what is preloaded
// takes one.
penstock::Stages<Item> PipelinedJob::StagesFor(penstock::Executable executable) {
  const auto decode = [this](Item& item) {
    const TrySemaphore::Pass pass(&workers_);
    return stages_.Decode(&item);
  };
  const auto bind = [this](penstock::Item<Item>& item) {
    Bind(graph_, catalogue_.photos[item->photo], item.value(), &item);
  };
  const auto finish = [this](Item& item) {
    const TrySemaphore::Pass pass(&workers_);
    return stages_.Finish(&item);
  };
  const int workers = options_.own_workers ? options_.workers : 0;
  penstock::Stages<Item> stages;
  stages.Host("decode", decode, {.workers = options_.preload ? 1 : workers});
  stages.Run("edges", std::move(executable), bind);
  stages.Host("encode", finish, {.workers = workers});
  return stages;
}

// Pictures leave in order, so while one takes several times as long as the others, the workers live on what waits to be
// encoded: eight pictures a worker, fewer where they are large.
int PipelinedJob::Window(int slots) const {
  const int64_t bytes = (sizeof(Rgb) + 1) * catalogue_.max_width * catalogue_.max_height;
  const int64_t waiting = std::clamp<int64_t>(kWaitingBytes / bytes, 2, 8 * options_.workers);
  return static_cast<int>(waiting) + 2 * options_.workers + 2 * slots + 1;
}

// The sink: pictures come in the order of the source. The first error that is not about a file breaks the job off.
bool PipelinedJob::Take(const Item& item, const absl::Status& status) {
  if (status.ok()) {
    clock_->Count(catalogue_.photos[item.photo].info);
  } else if (item.unreadable) {
    skipped_.Add(item.photo, status);
  } else {
    status_.Update(status);
    broken_ = true;
    return false;
  }
  on_picture_(clock_->images(), skipped_.size());
  return true;
}

}  // namespace

JobResult RunPipelined(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime,
                       const OnPicture& on_picture) {
  return PipelinedJob(options, catalogue, runtime, on_picture).Run();
}

}  // namespace photos
