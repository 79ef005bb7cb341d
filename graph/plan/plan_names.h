// The words with which the printers of a plan name things. Internal to graph/.
//
// Threads: free functions without state.
#pragma once

#include <string>

#include "graph/plan/plan.h"

namespace penstock::graph {

inline const char* KindName(PlanKind kind) {
  switch (kind) {
    case PlanKind::kUpload: return "upload";
    case PlanKind::kDownload: return "download";
    case PlanKind::kDeviceCopy: return "device copy";
    case PlanKind::kPeerCopy: return "peer copy";
    case PlanKind::kStageIn: return "stage in";
    case PlanKind::kStageOut: return "stage out";
    case PlanKind::kHostCopy: return "host copy";
    case PlanKind::kFill: return "fill";
    case PlanKind::kParallelFor: return "parallel for";
    case PlanKind::kKernel: return "kernel";
    case PlanKind::kLaunch: return "launch";
    case PlanKind::kHostcall: return "hostcall";
    case PlanKind::kGate: return "gate";
    case PlanKind::kConditional: return "conditional";
    case PlanKind::kHost: return "host";
    case PlanKind::kControl: return "control";
  }
  return "?";
}

inline const char* ControlName(ControlKind kind) {
  switch (kind) {
    case ControlKind::kIf: return "if";
    case ControlKind::kSwitch: return "switch";
    case ControlKind::kWhile: return "while";
    case ControlKind::kRepeat: return "repeat";
  }
  return "?";
}

inline const char* LaneName(LaneKind kind) {
  switch (kind) {
    case LaneKind::kUpload: return "upload";
    case LaneKind::kDownload: return "download";
    case LaneKind::kPeer: return "peer";
    case LaneKind::kCompute: break;
  }
  return "compute";
}

inline const char* ModeName(AccessMode mode) {
  switch (mode) {
    case AccessMode::kRead: return "reads";
    case AccessMode::kWrite: return "writes";
    case AccessMode::kReadWrite: return "changes";
    case AccessMode::kWriteSome: return "writes some of";
    case AccessMode::kScratch: return "uses as scratch";
  }
  return "?";
}

// "x.bound", "x.pinned", "x.device0".
inline std::string InstanceName(const Plan& plan, const Model& model, InstanceId index) {
  const Instance& instance = plan.instances[index];
  std::string text(model.buffers[instance.buffer].name.view());
  switch (instance.space) {
    case Space::kBound: return text + ".bound" + (instance.device >= 0 ? std::to_string(instance.device) : "");
    case Space::kPinned: return text + ".pinned";
    case Space::kDevice: return text + ".device" + std::to_string(instance.device);
    case Space::kState: return text + ".state" + std::to_string(instance.device);
  }
  return text;
}

}  // namespace penstock::graph
