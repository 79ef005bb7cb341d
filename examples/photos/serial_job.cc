// The job without any overlap: what the table compares with.
#include <utility>

#include "edges_graph.h"
#include "job.h"
#include "job_parts.h"
#include "penstock/executable.h"
#include "penstock/status_macros.h"
#include "stages.h"

namespace photos {
namespace {

// One picture's whole way.
absl::Status RunOne(const EdgesGraph& graph, const Photo& photo, Stages* stages, penstock::Executable* executable,
                    penstock::Bindings* bindings, Item* item) {
  PENSTOCK_RETURN_IF_ERROR(stages->Decode(item));
  Bind(graph, photo, *item, bindings);
  PENSTOCK_ASSIGN_OR_RETURN(const penstock::Run run, executable->Launch(*bindings));
  PENSTOCK_RETURN_IF_ERROR(run.Wait());
  bindings->ClearBuffers();
  return stages->Finish(item);
}

}  // namespace

JobResult RunSerial(const Options& options, const Catalogue& catalogue, penstock::Runtime* runtime, int64_t images,
                    const OnPicture& on_picture) {
  JobResult result;
  result.trace = penstock::Trace::Create();
  const EdgesGraph graph = DeclareFor(catalogue, options);
  absl::StatusOr<penstock::Executable> executable = runtime->Compile(graph.graph, {.slots = 1, .trace = result.trace});
  if (!executable.ok()) {
    result.status = executable.status();
    return result;
  }

  Stages stages(options, catalogue, runtime, result.trace);
  if (options.preload) stages.Preload();
  SkipList skipped;
  penstock::Bindings bindings = executable->bindings();
  JobClock clock;
  for (int64_t i = 0; i < images; ++i) {
    Item item = ItemAt(catalogue, i);
    const Photo& photo = catalogue.photos[item.photo];
    if (absl::Status status = RunOne(graph, photo, &stages, &*executable, &bindings, &item); status.ok()) {
      clock.Count(photo.info);
    } else if (item.unreadable) {
      skipped.Add(item.photo, status);
    } else {
      result.status = status;
      break;
    }
    on_picture(clock.images(), skipped.size());
  }
  result.measurement = clock.Stop(stages, *result.trace, 1);
  result.skipped = skipped.statuses();
  return result;
}

}  // namespace photos
