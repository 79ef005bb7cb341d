// ChooseLowerings: which constructs the device decides by itself, by conditional nodes of graphs, and which the host
// drives.
//
// A device decides a construct if all that is in it runs there, or is called by the host when the device asks for it
// (IsAskedFor), or a Launch node with the same arguments in all launches, which is captured once. What only the
// compiled bodies and what is captured can tell, whoever compiles them adds by ToHost.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/detail/model.h"

namespace penstock::graph {

class Lowerings {
 public:
  explicit Lowerings(const Model& model)
      : in_(model.controls.size()), why_(model.controls.size()), why_no_region_(model.controls.size()) {
    for (const ControlId c : model.controls.ids()) {
      const BodyId body = model.controls[c].in;
      if (body >= 0) in_[c] = model.bodies[body].of;
    }
  }

  bool OnDevice(ControlId c) const { return why_[c].empty(); }
  // Why the host drives the construct.
  const std::string& why(ControlId c) const { return why_[c]; }
  // From now on the host drives the construct and those around it.
  void ToHost(ControlId c, const std::string& why) {
    for (; c >= 0 && why_[c].empty(); c = in_[c]) why_[c] = why;
  }

  // Whether the device decides the construct in a resident region. None is to be in one before UseRegions is called;
  // LeaveRegion takes it back for a construct and those around it.
  bool InRegion(ControlId c) const { return uses_regions_ && OnDevice(c) && why_no_region_[c].empty(); }
  // Why it does not, if regions are used; empty if it does.
  const std::string& why_no_region(ControlId c) const { return why_no_region_[c]; }
  void UseRegions() { uses_regions_ = true; }
  void LeaveRegion(ControlId c, const std::string& why) {
    for (; c >= 0 && why_no_region_[c].empty(); c = in_[c]) why_no_region_[c] = why;
  }

 private:
  detail::Table<ControlId, ControlId> in_;  // the construct around each; none: it is in no body
  detail::Table<ControlId, std::string> why_;
  detail::Table<ControlId, std::string> why_no_region_;
  bool uses_regions_ = false;
};

// The devices, as far as the rule knows them.
struct LoweringDevices {
  int32_t by_default = 0;  // that of nodes without a pin
  std::vector<std::string> no_hostcalls;  // of each device; see IsAskedFor
};
// `host_why`: why the host drives all constructs; empty: the rule decides.
Lowerings ChooseLowerings(const Model& model, const LoweringDevices& devices, const std::string& host_why);

}  // namespace penstock::graph
