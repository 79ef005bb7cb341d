// CreateExecutable: compiles a graph that may have constructs (control.h): an executable for what is outside of them,
// and one for each condition and body, whose slots belong to slots of the one around it.
//
// Threads: one thread.
// Errors:  those of Compiler, for any of the executables.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "penstock/compile_options.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

absl::StatusOr<std::shared_ptr<ExecutableCore>> CreateExecutable(const std::shared_ptr<RuntimeCore>& runtime,
                                                                 const Model& model, const CompileOptions& options);

}  // namespace penstock::runtime
