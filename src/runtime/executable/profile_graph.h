// What a profile says of an executable: its plan, and what changes while it runs.
//
// Threads: thread-safe, once the executable is compiled.
#pragma once

#include <memory>

#include "penstock/compile_options.h"
#include "penstock/profile.h"
#include "src/observe/profile_recorder.h"
#include "src/runtime/core/runtime_core.h"

namespace penstock::runtime {

class ExecutableCore;

// Whether to record, and where: what RuntimeOptions say, and a trace in any case.
void UseProfile(RuntimeCore& runtime, CompileOptions& options);
// Adds an executable that is to be recorded, with its parts, to the runtime's profile. It must be complete.
void AddToProfile(const std::shared_ptr<ExecutableCore>& core);

class ProfiledExecutable final : public observe::ProfiledGraph {
 public:
  explicit ProfiledExecutable(const ExecutableCore& core) : core_(core) {}
  void UpdateProfile(Profile::Graph& graph) const override;

 private:
  const ExecutableCore& core_;
};

}  // namespace penstock::runtime
