#include "src/cli/read_profile.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/cli/check_profile.h"
#include "src/cli/json_object.h"
#include "src/cli/profile_document.h"
#include "src/cli/read_file.h"
#include "src/cli/read_pipeline.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kDamaged = "; the profile is damaged or was changed; record it again";
constexpr size_t kMostFileBytes = size_t{1} << 30;

Device ReadDevice(JsonObject& from) {
  Device device;
  device.name = from.Text("name");
  device.description = from.Text("description");
  device.is_cuda = from.Flag("is_cuda");
  device.memory_bytes = from.Bytes("memory_bytes");
  return device;
}

Profile::Node ReadNode(JsonObject& from) {
  Profile::Node node;
  node.name = from.Text("name");
  node.kind = from.Text("kind");
  node.where = from.Text("where");
  node.device = from.Index("device", -1);
  node.lane = from.Index("lane", -1);
  node.after = from.Indices("after");
  node.read_bytes = from.Bytes("read_bytes");
  node.written_bytes = from.Bytes("written_bytes");
  node.flops = from.AmountIfAny("flops");
  if (node.flops >= 1e18) from.Refuse("flops", "is not below 10^18");
  return node;
}

Mode ReadMode(JsonObject& from) {
  const std::string mode = from.Text("mode");
  if (mode == "stream") return Mode::kStream;
  if (mode == "graph") return Mode::kGraph;
  if (mode != "auto") from.Refuse("mode", "is none of \"stream\", \"graph\" and \"auto\"");
  return Mode::kAuto;
}

SubmissionReport ReadReport(JsonObject from) {
  SubmissionReport report;
  report.mode = ReadMode(from);
  report.stream_us = from.Number("stream_us");
  report.graph_us = from.Number("graph_us");
  report.notes = from.Texts("notes");
  report.graphs = from.Count("graphs");
  report.graph_nodes = from.Count("graph_nodes");
  report.regions = from.Count("regions");
  report.region_nodes = from.Count("region_nodes");
  report.graph_launches = from.Count("graph_launches");
  report.nodes_set = from.Count("nodes_set");
  report.nodes_switched = from.Count("nodes_switched");
  report.captures = from.Count("captures");
  report.refreshes = from.Count("refreshes");
  from.Objects("loops", [&](JsonObject& one) {
    SubmissionReport::Loop& loop = report.loops.emplace_back();
    loop.name = one.Text("name");
    loop.iterations = one.Count("iterations");
    loop.iteration_us = one.Number("iteration_us");
  });
  report.instantiating_us = from.Number("instantiating_us");
  report.capturing_us = from.Number("capturing_us");
  return report;
}

PlacementReport::Candidate ReadCandidate(JsonObject& from) {
  PlacementReport::Candidate candidate;
  candidate.name = from.Text("name");
  candidate.taken = from.Flag("taken");
  candidate.makespan_us = from.Number("makespan_us");
  candidate.gain = from.Number("gain");
  candidate.work_us = from.Numbers("work_us");
  candidate.between_bytes = from.Bytes("between_bytes");
  candidate.host_bytes = from.Bytes("host_bytes");
  candidate.why = from.Text("why");
  return candidate;
}

Profile::Graph ReadGraph(JsonObject& from) {
  Profile::Graph graph;
  graph.executable = from.Count("executable");
  graph.name = from.Text("name");
  graph.where = from.TextIfAny("where");
  graph.slots = from.Index("slots", 0);
  graph.slot_device_bytes = from.Bytes("slot_device_bytes");
  graph.slot_pinned_bytes = from.Bytes("slot_pinned_bytes");
  graph.launches = from.Count("launches");
  from.Objects("lanes", [&](JsonObject& one) {
    Profile::Lane& lane = graph.lanes.emplace_back();
    lane.device = one.Index("device", 0);
    lane.kind = one.Text("kind");
  });
  from.Objects("nodes", [&](JsonObject& one) { graph.nodes.push_back(ReadNode(one)); });
  graph.report = ReadReport(from.Object("report"));
  if (from.Has("placement")) {  // only of graphs that were placed
    from.Objects("placement", [&](JsonObject& one) { graph.placement.push_back(ReadCandidate(one)); });
  }
  return graph;
}

// A text that many rows share is short in the file and long in memory.
class SpanTexts {
 public:
  SpanTexts(std::vector<std::string> texts, size_t file_bytes)
      : texts_(std::move(texts)), bytes_left_((size_t{64} << 20) + 50 * file_bytes) {}

  absl::Status Take(int64_t place, const char* column, size_t row, std::string& to) {
    const auto at = static_cast<size_t>(place);
    if (at >= texts_.size()) {
      return absl::DataLossError(
          absl::StrCat("spans[", row, "].", column, ": is ", place, ", and there are ", texts_.size(), " texts"));
    }
    if (texts_[at].size() > bytes_left_) {
      return absl::ResourceExhaustedError("texts: take more than 50 times the size of the profile in its spans");
    }
    bytes_left_ -= texts_[at].size();
    to = texts_[at];
    return absl::OkStatus();
  }

 private:
  const std::vector<std::string> texts_;
  size_t bytes_left_;
};

absl::StatusOr<Profile> ProfileOf(ProfileDocument document, size_t file_bytes) {
  absl::Status status;
  JsonObject members(document.members, "", status);
  members.Integer("version", 1, Profile::kVersion);
  Profile profile;
  profile.length_us = members.Number("length_us");
  profile.lost_spans = members.Count("lost_spans");
  profile.lost_graphs = members.Count("lost_graphs");
  members.Objects("devices", [&](JsonObject& one) { profile.devices.push_back(ReadDevice(one)); });
  members.Objects("graphs", [&](JsonObject& one) { profile.graphs.push_back(ReadGraph(one)); });
  if (members.Has("pipelines")) {  // the first profiles had none
    members.Objects("pipelines", [&](JsonObject& one) { profile.pipelines.push_back(ReadPipeline(one)); });
  }
  if (members.Has("open")) profile.open = members.Texts("open");
  members.Objects("spans", [](JsonObject&) {});
  SpanTexts texts(members.Texts("texts"), file_bytes);
  PENSTOCK_RETURN_IF_ERROR(status);
  if (profile.lost_spans > INT64_MAX - document.unknown_rows) {
    return absl::DataLossError("lost_spans: is too large");
  }
  profile.lost_spans += document.unknown_rows;
  profile.spans.reserve(document.rows.size());
  for (size_t r = 0; r < document.rows.size(); ++r) {
    ProfileDocument::Row& row = document.rows[r];
    PENSTOCK_RETURN_IF_ERROR(texts.Take(row.name, "name", r, row.span.name));
    PENSTOCK_RETURN_IF_ERROR(texts.Take(row.track, "track", r, row.span.track));
    profile.spans.push_back(std::move(row.span));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckProfile(profile));
  return profile;
}

absl::StatusOr<Profile> Parse(std::string_view json) {
  PENSTOCK_ASSIGN_OR_RETURN(ProfileDocument document, ParseProfileDocument(json));
  return ProfileOf(std::move(document), json.size());
}

}  // namespace

absl::StatusOr<Profile> ParseProfile(std::string_view json, std::string_view name) {
  const std::string prefix = absl::StrCat("profile '", graph::OneLine(name), "'");
  try {
    absl::StatusOr<Profile> profile = Parse(json);
    if (profile.ok()) return profile;
    const bool damaged = absl::IsDataLoss(profile.status());
    return base::Prefixed(prefix, damaged ? base::Suffixed(profile.status(), kDamaged) : profile.status());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(prefix, ": there is no memory for it"));
  }
}

absl::StatusOr<Profile> ReadProfile(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text, ReadFile("profile", path, kMostFileBytes));
  return ParseProfile(text, path);
}

}  // namespace penstock::cli
