// What must hold of a plan's order and memory, found from the declaration and from what its nodes touch, by brute force
// over pairs. The planner's own code has no part in it.
//
// Each check returns an empty string, or what is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/plan/plan.h"
#include "penstock/detail/model.h"
#include "tests/graph/oracle/atoms.h"
#include "tests/graph/oracle/execution.h"

namespace penstock::graph {

// Pairs of declared nodes that must run in this order: conflicting accesses in declaration order, none of them
// Unordered, and After.
struct DeclaredPair {
  int32_t before, after;
  bool operator==(const DeclaredPair&) const = default;
};
std::vector<DeclaredPair> DeclaredPairs(const Model& model);

// Pairs of nodes of which at least one of two conflicting accesses is Unordered; the earlier declared first. Some path
// of declared pairs must join them.
std::vector<DeclaredPair> LoosePairs(const Model& model);

// Whether a path of pairs leads from one node to another: row `to`, column `from`.
using Paths = std::vector<std::vector<bool>>;
Paths PathsOf(const Model& model, const std::vector<DeclaredPair>& pairs);

// The nodes in an order of the declared pairs, the first declared first; shorter than the model when there is a cycle.
std::vector<int32_t> SequenceOf(const Model& model);

// The order a plan owes: that of the declared pairs, and some order for conflicting accesses to common elements of one
// instance, or of a staging instance and the memory it may be at launch. Copies touch the parts that they copy.
class OrderOracle {
 public:
  OrderOracle(const Model& model, const Plan& plan);
  std::string Check(const Execution& run) const;

 private:
  struct Used {
    int32_t instance;
    Footprint footprint;
  };
  std::vector<Used> UsedBy(const Model& model, const PlanNode& node, const Footprints& declared) const;
  bool Clash(int32_t a, int32_t b, const std::vector<std::vector<Used>>& used) const;

  struct Pair {
    int32_t a, b;
    bool forward;  // a before b; otherwise either way
  };
  const Plan& plan_;
  std::vector<Pair> pairs_;
};

// Whether two instances may hold contents at one time: unless every use of one is before every use of the other, from
// first use to last. An instance nobody uses holds nothing.
bool MayLiveAtOnce(const Plan& plan, const Execution& run, int32_t a, int32_t b);

// Whether one of two instances may take the other's bytes although both live while a node runs: it says InPlace of
// them, reads all of one and writes all of the other, element by element of one size; all others that use the first
// are before it, and those that use the second behind.
bool MayHandOver(const Model& model, const Plan& plan, const Execution& run, int32_t a, int32_t b);

// No two instances that may live at once share bytes of an arena, but where one may be handed over to the other and
// both begin there.
std::string CheckMemory(const Model& model, const Plan& plan, const Execution& run);

// Both, of the plan as it is executed.
std::string CheckOrder(const Model& model, const Plan& plan);

}  // namespace penstock::graph
