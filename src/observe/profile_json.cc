// The JSON of a profile, and the file that it is written to.
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/profile.h"
#include "src/base/file.h"
#include "src/observe/chrome_json.h"
#include "src/observe/json_writer.h"

namespace penstock {
namespace {

using observe::JsonWriter;

// Texts that many spans share, each once.
class Texts {
 public:
  size_t Of(std::string_view text) {
    const auto [at, is_new] = places_.try_emplace(text, texts_.size());
    if (is_new) texts_.push_back(text);
    return at->second;
  }
  const std::vector<std::string_view>& all() const { return texts_; }

 private:
  std::map<std::string_view, size_t> places_;
  std::vector<std::string_view> texts_;
};

const char* NameOf(Mode mode) {
  switch (mode) {
    case Mode::kStream: return "stream";
    case Mode::kGraph: return "graph";
    case Mode::kAuto: break;
  }
  return "auto";
}

template <class T, class F>
void WriteArray(JsonWriter& to, std::string_view name, const T& all, F write) {
  to.Key(name);
  to.Open('[');
  for (const auto& one : all) write(one);
  to.Close(']');
}

void WriteJson(JsonWriter& to, const Device& device) {
  to.Open('{');
  to.Member("name", device.name);
  to.Member("description", device.description);
  to.Member("is_cuda", device.is_cuda);
  to.Member("memory_bytes", device.memory_bytes);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const SubmissionReport& report) {
  to.Open('{');
  to.Member("mode", NameOf(report.mode));
  to.Member("stream_us", report.stream_us);
  to.Member("graph_us", report.graph_us);
  WriteArray(to, "notes", report.notes, [&](const std::string& note) { to.Value(note); });
  for (const auto& [name, count] :
       {std::pair("graphs", report.graphs), std::pair("graph_nodes", report.graph_nodes),
        std::pair("regions", report.regions), std::pair("region_nodes", report.region_nodes),
        std::pair("graph_launches", report.graph_launches), std::pair("nodes_set", report.nodes_set),
        std::pair("nodes_switched", report.nodes_switched), std::pair("captures", report.captures),
        std::pair("refreshes", report.refreshes)}) {
    to.Member(name, count);
  }
  WriteArray(to, "loops", report.loops, [&](const SubmissionReport::Loop& loop) {
    to.Open('{');
    to.Member("name", loop.name);
    to.Member("iterations", loop.iterations);
    to.Member("iteration_us", loop.iteration_us);
    to.Close('}');
  });
  to.Member("instantiating_us", report.instantiating_us);
  to.Member("capturing_us", report.capturing_us);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const Profile::Node& node) {
  to.Line();
  to.Open('{');
  to.Member("name", node.name);
  to.Member("kind", node.kind);
  to.Member("where", node.where);
  to.Member("device", node.device);
  to.Member("lane", node.lane);
  WriteArray(to, "after", node.after, [&](int other) { to.Value(other); });
  to.Member("read_bytes", node.read_bytes);
  to.Member("written_bytes", node.written_bytes);
  if (node.flops != 0) to.Member("flops", node.flops);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const PlacementReport::Candidate& candidate) {
  to.Open('{');
  to.Member("name", candidate.name);
  to.Member("taken", candidate.taken);
  to.Member("makespan_us", candidate.makespan_us);
  to.Member("gain", candidate.gain);
  WriteArray(to, "work_us", candidate.work_us, [&](double us) { to.Value(us); });
  to.Member("between_bytes", candidate.between_bytes);
  to.Member("host_bytes", candidate.host_bytes);
  to.Member("why", candidate.why);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const Profile::Graph& graph) {
  to.Line();
  to.Open('{');
  to.Member("executable", graph.executable);
  to.Member("name", graph.name);
  if (!graph.where.empty()) to.Member("where", graph.where);
  to.Member("slots", graph.slots);
  to.Member("slot_device_bytes", graph.slot_device_bytes);
  to.Member("slot_pinned_bytes", graph.slot_pinned_bytes);
  to.Member("launches", graph.launches);
  WriteArray(to, "lanes", graph.lanes, [&](const Profile::Lane& lane) {
    to.Open('{');
    to.Member("device", lane.device);
    to.Member("kind", lane.kind);
    to.Close('}');
  });
  WriteArray(to, "nodes", graph.nodes, [&](const Profile::Node& node) { WriteJson(to, node); });
  to.Key("report");
  WriteJson(to, graph.report);
  if (!graph.placement.empty()) {
    WriteArray(to, "placement", graph.placement, [&](const PlacementReport::Candidate& one) { WriteJson(to, one); });
  }
  to.Close('}');
}

void WriteJson(JsonWriter& to, const StageStats& stage) {
  to.Line();
  to.Open('{');
  to.Member("name", stage.name);
  to.Member("capacity", stage.capacity);
  to.Member("waiting", stage.waiting);
  to.Member("working", stage.working);
  to.Member("done", stage.done);
  to.Member("failed", stage.failed);
  to.Member("busy", stage.busy);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const BusyShare& share) {
  to.Open('{');
  to.Member("name", share.name);
  to.Member("busy", share.busy);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const Profile::Pipeline& pipeline) {
  const PipelineStats& stats = pipeline.stats;
  to.Line();
  to.Open('{');
  to.Member("begin_us", pipeline.begin_us);
  to.Member("end_us", pipeline.end_us);
  WriteArray(to, "stages", stats.stages, [&](const StageStats& stage) { WriteJson(to, stage); });
  WriteArray(to, "engines", stats.engines, [&](const BusyShare& share) { WriteJson(to, share); });
  WriteArray(to, "threads", stats.threads, [&](const BusyShare& share) { WriteJson(to, share); });
  for (const auto& [name, count] :
       {std::pair("accepted", stats.accepted), std::pair("delivered", stats.delivered),
        std::pair("dropped", stats.dropped), std::pair("refused", stats.refused), std::pair("failed", stats.failed),
        std::pair("retries", stats.retries), std::pair("inside", stats.inside), std::pair("ready", stats.ready)}) {
    to.Member(name, count);
  }
  to.Member("window", stats.window);
  to.Member("bottleneck", stats.bottleneck);
  to.Close('}');
}

void WriteJson(JsonWriter& to, const Span& span, Texts& texts) {
  to.Line();
  to.Open('[');
  to.Value(span.executable);
  to.Value(span.run);
  to.Value(span.node);
  to.Value(span.slot);
  to.Value(span.device);
  to.Value(observe::KindName(span.kind));
  to.Value(span.begin_us);
  to.Value(span.end_us);
  to.Value(texts.Of(span.name));
  to.Value(texts.Of(span.track));
  to.Close(']');
}

constexpr std::array<const char*, 10> kColumns = {"executable", "run",      "node",   "slot", "device",
                                                  "kind",       "begin_us", "end_us", "name", "track"};

}  // namespace

std::string Profile::Json() const {
  JsonWriter to;
  to.Open('{');
  to.Member("format", "penstock profile");
  to.Member("version", kVersion);
  to.Member("length_us", length_us);
  to.Member("lost_spans", lost_spans);
  to.Member("lost_graphs", lost_graphs);
  to.Line();
  WriteArray(to, "devices", devices, [&](const Device& device) { WriteJson(to, device); });
  to.Line();
  WriteArray(to, "graphs", graphs, [&](const Graph& graph) { WriteJson(to, graph); });
  to.Line();
  WriteArray(to, "pipelines", pipelines, [&](const Pipeline& pipeline) { WriteJson(to, pipeline); });
  if (open) {
    to.Line();
    WriteArray(to, "open", *open, [&](const std::string& key) { to.Value(key); });
  }
  to.Line();
  WriteArray(to, "columns", kColumns, [&](const char* column) { to.Value(column); });
  Texts texts;
  to.Line();
  WriteArray(to, "spans", spans, [&](const Span& span) { WriteJson(to, span, texts); });
  to.Line();
  WriteArray(to, "texts", texts.all(), [&](std::string_view text) { to.Value(text); });
  to.Close('}');
  to.Line();
  return std::move(to).Finish();
}

absl::Status Profile::Write(const std::string& path) const { return base::WriteFile("profile", path, Json()); }

}  // namespace penstock
