#include "src/analysis/rules/rules.h"

namespace penstock::analysis {

std::span<const Rule> AllRules() {
  static constexpr Rule kRules[] = {
      {"memory-not-pinned", FindMemoryNotPinned},
      {"one-slot", FindOneSlot},
      {"waits-for-each-run", FindWaitsForEachRun},
      {"starved-source", FindStarvedSource},
      {"slow-sink", FindSlowSink},
      {"synchronizing-host-node", FindSynchronizingHostNodes},
      {"host-bound", FindHostBound},
      {"made-again", FindMadeAgain},
      {"launch-bound", FindLaunchBound},
      {"many-tiny-nodes", FindManyTinyNodes},
      {"many-small-copies", FindManySmallCopies},
      {"idle-gaps", FindIdleGaps},
      {"runs-in-order", FindRunsInOrder},
      {"copies-bound", FindCopiesBound},
      {"compute-bound", FindComputeBound},
      {"far-below-roofline", FindFarBelowRoofline},
      {"job-too-small", FindJobTooSmall},
  };
  return kRules;
}

}  // namespace penstock::analysis
