// How much of what is hard the random graphs hold, counted by brute force: a proof over graphs without it proves
// little.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

// Part of a whole.
struct Share {
  const char* name;
  double least = 0.1;  // that random graphs must have
  int64_t part = 0, of = 0;
  double value() const { return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0; }
  std::string text() const;
};

struct GraphShares {
  // Edges: a read or write after the write or reads it depends on, and After. Redundant ones are implied by others;
  // ends on different lanes are counted where both are on streams.
  Share redundant{"redundant edges"}, cross_lane{"edges across lanes"};
  // Graphs with a device whose nodes are wider (by Dilworth) than the lanes they were given, as many as allowed.
  Share capped{"graphs with capped lanes"};
  // Accesses of part of a buffer, and through an alias; graphs with Unordered accesses that conflict, with parameters
  // as dimensions or offsets, and with accesses of part of a State.
  Share slices{"accesses to slices"}, aliases{"accesses through aliases"}, loose{"graphs with Unordered conflicts"},
      params{"graphs with parameters in boxes"}, states{"graphs with States"},
      state_parts{"graphs with parts of States"}, pins{"nodes pinned to another device than the default one"};
  // Graphs by what they hold.
  Share hosts{"graphs with host steps"}, segments{"graphs of several segments"}, staged{"graphs with staged buffers"},
      peers{"graphs with peer copies"}, reused{"graphs that reuse memory"},
      in_place{"graphs with a node that writes in place"}, batches{"graphs with batches"},
      tasks{"graphs with host copies that join others", 0.03}, external_deps{"graphs with bound device memory"};

  std::vector<const Share*> all() const {
    return {&redundant, &cross_lane, &capped, &slices, &aliases, &loose,    &params,  &states, &state_parts,  &pins,
            &hosts,     &segments,   &staged, &peers,  &reused,  &in_place, &batches, &tasks,  &external_deps};
  }
  void Count(const Model& model, const PlanOptions& options, const Plan& plan);

 private:
  void CountAccesses(const Model& model);
};

}  // namespace penstock::graph
