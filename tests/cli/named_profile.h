// A small profile that has one name wherever a profile has names: a device, a graph of one node, and a span of it.
#pragma once

#include <string>
#include <string_view>

#include "penstock/profile.h"

namespace penstock::cli {

inline Profile ProfileNamed(std::string_view text) {
  const std::string name(text);
  Profile profile;
  profile.devices = {{.name = name, .description = name}};
  Profile::Graph graph;
  graph.executable = 0;
  graph.name = name;
  graph.lanes = {{.device = 0, .kind = name}};
  graph.nodes = {{.name = name, .kind = name, .where = name, .device = 0, .lane = 0, .after = {}}};
  graph.report.notes = {name};
  graph.report.loops = {{.name = name}};
  profile.graphs = {graph};
  profile.spans = {{.name = name, .track = name, .begin_us = 1, .end_us = 2, .run = 0, .executable = 0, .node = 0}};
  profile.length_us = 10;
  return profile;
}

}  // namespace penstock::cli
