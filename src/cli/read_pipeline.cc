#include "src/cli/read_pipeline.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::cli {
namespace {

StageStats ReadStage(JsonObject& from) {
  StageStats stage;
  stage.name = from.Text("name");
  stage.capacity = from.Index("capacity", 0);
  stage.waiting = from.Count("waiting");
  stage.working = from.Count("working");
  stage.done = from.Count("done");
  stage.failed = from.Count("failed");
  stage.busy = from.Number("busy");
  return stage;
}

std::vector<BusyShare> ReadShares(JsonObject& from, const char* name) {
  std::vector<BusyShare> shares;
  from.Objects(name, [&](JsonObject& one) {
    BusyShare& share = shares.emplace_back();
    share.name = one.Text("name");
    share.busy = one.Number("busy");
  });
  return shares;
}

}  // namespace

Profile::Pipeline ReadPipeline(JsonObject& from) {
  Profile::Pipeline pipeline;
  pipeline.begin_us = from.Number("begin_us");
  pipeline.end_us = from.Number("end_us");
  PipelineStats& stats = pipeline.stats;
  from.Objects("stages", [&](JsonObject& one) { stats.stages.push_back(ReadStage(one)); });
  stats.engines = ReadShares(from, "engines");
  stats.threads = ReadShares(from, "threads");
  stats.accepted = from.Count("accepted");
  stats.delivered = from.Count("delivered");
  stats.dropped = from.Count("dropped");
  stats.refused = from.Count("refused");
  stats.failed = from.Count("failed");
  stats.retries = from.Count("retries");
  stats.inside = from.Count("inside");
  stats.ready = from.Count("ready");
  stats.window = from.Index("window", 0);
  stats.bottleneck = from.Index("bottleneck", -1);
  if (stats.bottleneck >= static_cast<int>(stats.stages.size())) {
    from.Refuse("bottleneck",
                absl::StrCat("is ", stats.bottleneck, ", and there are ", stats.stages.size(), " stages"));
  }
  return pipeline;
}

}  // namespace penstock::cli
