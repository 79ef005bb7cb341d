// Chain: a graph of equal nodes, one after the other, whose run is timed from before Launch until Wait has returned.
//
// What a node costs is the time of a run of many, divided by their number: the host's clock needs no help from the
// device then, and what one launch and one wait cost is lost in the sum. A trace would add an event or a kernel behind
// each node, which of small ones changes the very figure.
//
// Ownership: owns its executable. What Bind has bound must outlive the chain, as must the runtime.
// Threads:   one thread.
// Errors:    those of Compile, Launch and Wait.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "penstock/ps.h"

namespace penstock::cli::measure {

class Chain {
 public:
  // Sets the memory that the nodes use.
  using Bind = std::function<void(Bindings&)>;
  // Declares so many nodes, each after the one before. What they write must be read, by one of them or later, and must
  // not be written before: the planner leaves out copies that nobody needs.
  using Declare = std::function<Bind(Graph&, int nodes)>;

  static constexpr int kMostNodes = 4096;

  // With one slot, unless the options say otherwise.
  static absl::StatusOr<Chain> Make(Runtime& runtime, const Declare& declare, int nodes, CompileOptions options);
  // Of as many nodes, up to `most`, as make a run last at least so long. It has run.
  static absl::StatusOr<Chain> Lasting(Runtime& runtime, const Declare& declare, double us, int most,
                                       const CompileOptions& options);

  int nodes() const { return nodes_; }
  const Executable& executable() const { return exec_; }
  absl::StatusOr<Run> Launch() { return exec_.Launch(io_); }
  // Runs it once, and returns the time.
  absl::StatusOr<double> Time();

 private:
  Chain(Executable exec, int nodes) : exec_(std::move(exec)), io_(exec_.bindings()), nodes_(nodes) {}

  Executable exec_;
  Bindings io_;
  int nodes_;
};

}  // namespace penstock::cli::measure
