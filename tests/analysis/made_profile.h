// Profiles made by hand, for tests of what is made of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/profile.h"

namespace penstock::analysis {

inline Profile::Node MadeNode(std::string name, int lane, std::vector<int> after) {
  return {std::move(name),
          lane < 0 ? "host" : "parallel for",
          "made.cc:1",
          lane < 0 ? -1 : 0,
          lane,
          std::move(after),
          0,
          0};
}

// Of executable 0, on one device.
inline Span MadeSpan(SpanKind kind, int64_t run, int node, double begin, double end) {
  const bool on_host = kind != SpanKind::kKernel && kind != SpanKind::kUpload && kind != SpanKind::kDownload;
  return {.name = "span",
          .track = "track",
          .kind = kind,
          .begin_us = begin,
          .end_us = end,
          .run = run,
          .device = on_host ? -1 : 0,
          .executable = 0,
          .node = node,
          .slot = 0};
}

// One device, and one graph on it of these nodes, with two lanes.
inline Profile MadeProfile(std::vector<Profile::Node> nodes, std::vector<Span> spans, Mode mode = Mode::kStream) {
  Profile profile;
  profile.devices.push_back({.name = "cuda:0", .description = "made"});
  Profile::Graph& graph = profile.graphs.emplace_back();
  graph.executable = 0;
  graph.name = "made";
  graph.lanes = {{0, "compute"}, {0, "upload"}};
  graph.nodes = std::move(nodes);
  graph.report.mode = mode;
  profile.spans = std::move(spans);
  return profile;
}

}  // namespace penstock::analysis
