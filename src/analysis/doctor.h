// The doctor: why a program takes as long as it does, and what to change.
//
// Diagnose looks at the steady state of a profile (facts.h). The floor is what the busiest engine of a device was at
// work: with the same nodes no order is faster. Each rule (rules/rules.h) looks for one fault.
//
// A gain is the share of the wall time that following the advice saves, computed from the profile as Finding::gain_how
// says; what cannot be computed is unknown. All gains together never promise more than wall - floor, except
// what a rule takes off the floor itself. The findings claim it in the order of their gains. The doctor drops a finding
// for which less than 2 % is left: what it names goes away with the others, or shows once they are mended.
//
// Threads: pure functions and plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "penstock/profile.h"
#include "src/analysis/machine.h"

namespace penstock::analysis {

// In percent. From there on only less work, or faster nodes, helps.
inline constexpr double kGoodEfficiency = 90;

// One fault, with its fix. Shares are of the wall time, 0 to 1.
struct Finding {
  std::string rule;  // "one-slot"
  double share = 0;  // of the time that it is about
  int graph = -1;  // a place in Profile::graphs; -1: none
  std::string graph_name;
  int node = -1;  // a place in Profile::Graph::nodes; -1: none
  std::string node_name;  // empty: none
  std::string where;  // the source line that declared the node, or else made the graph; empty: unknown
  int span = -1;  // where to look, a place in Profile::spans; -1: none
  double begin_us = 0, end_us = 0;  // the same as times; both 0: nowhere in particular
  std::vector<std::string> evidence;  // sentences
  std::string fix;  // what to write
  std::optional<double> gain;  // expected; unset: unknown
  std::string gain_how;  // what it was computed from, or why it is unknown
  double floor_cut = 0;  // how much of the gain lowers the floor
};

struct Diagnosis {
  double wall_us = 0;  // looked at; 0: no graph had a steady state
  double floor_us = 0;  // of these, what the busiest engine was at work
  std::string busiest;  // "cuda:0 kernels"; empty if none worked
  double efficiency = 0;  // percent: floor / wall
  std::vector<Finding> findings;  // by gain, then by share
  std::vector<std::string> notes;  // what limits the diagnosis: graphs that ran once, lost spans; sentences
};

// `machine` may be null: rules that compare with it then say nothing.
Diagnosis Diagnose(const Profile& profile, const Machine* machine);

}  // namespace penstock::analysis
