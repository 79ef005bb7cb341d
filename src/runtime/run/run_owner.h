// RunOwner: the executable, as its runs see it.
//
// Ownership: shared; each run in flight holds it, and with it the context.
// Threads:   the thread that advances the run calls it.
#pragma once

#include <memory>
#include <utility>

#include "src/memory/staging.h"
#include "src/runtime/core/loaded_images.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/program/compiled_graph.h"
#include "src/runtime/run/run_trace.h"
#include "src/runtime/run/submission_turns.h"
#include "src/runtime/run/submitter.h"

namespace penstock::runtime {

struct RunSlot;

// What all runs of an executable share. Constant once it is compiled, apart from the turns.
struct RunContext {
  RunContext(std::shared_ptr<RuntimeCore> of, std::shared_ptr<const Model> model, int32_t default_device,
             std::shared_ptr<Trace> recorded)
      : runtime(std::move(of)),
        images(*runtime),
        graph(std::move(model), runtime->devices(), default_device, std::move(recorded), runtime->event_count()) {}

  const std::shared_ptr<RuntimeCore> runtime;
  LoadedImages images;
  CompiledGraph graph;
  Submitter submitter{graph, *runtime};
  RunTrace trace{graph};
  memory::Staging* staging = nullptr;  // null if no copy uses the ring
  bool in_order = false;  // CompileOptions::in_order
  observe::RunCounts* counts = nullptr;  // of the runtime; set by Compile
  const std::unique_ptr<SubmissionTurns> turns = std::make_unique<SubmissionTurns>();
};

class RunOwner {
 public:
  // The run has drained and no longer uses its slot, which may be launched again.
  virtual void OnRunEnded(RunSlot& slot) = 0;

 protected:
  ~RunOwner() = default;
};

}  // namespace penstock::runtime
