// GraphCacheCore: what a GraphCache holds: the executables that it has made, each with its declaration.
//
// A step is compared with one graph after another: first with the one that last followed the previous step's graph,
// then with the others, most recently used first. One pass compares what the step declares with a model, and its values
// with those of a slot leased for the comparison. Each slot catches up by itself with the values that its own last run
// lacked, so a comparison that finds a difference does no harm although it has set some values. If no slot is free, the
// structure is compared alone, and only if it matches does the launch wait for a slot.
//
// Ownership: owns the executables' handles; runs in flight keep the executables alive.
// Threads:   thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/detail/declaration_matcher.h"
#include "penstock/graph_cache.h"
#include "src/runtime/cache/deferred_bindings.h"
#include "src/runtime/executable/executable_core.h"

namespace penstock::runtime {

class GraphCacheCore {
 public:
  // The function that declares a step.
  struct Declaration {
    absl::Status (*call)(void* function, Graph& graph, Bindings& io);
    void* function;
  };

  GraphCacheCore(std::shared_ptr<RuntimeCore> runtime, GraphCacheOptions options);

  absl::StatusOr<Run> Launch(const Declaration& declaration, Deadline deadline);
  const GraphCacheCounts& counts() const { return counts_; }
  SubmissionReport submission_report() const {
    return entries_.empty() ? SubmissionReport() : entries_.front()->core->submission_report();
  }

 private:
  // Where a node's values are in a slot: an entry of Program::calls or fills.
  struct NodeAt {
    int32_t call = -1, fill = -1;
  };
  struct Entry {
    Entry(std::shared_ptr<ExecutableCore> executable, std::shared_ptr<Model> model);
    void FindPlaces();

    std::shared_ptr<ExecutableCore> core;
    std::shared_ptr<Model> declared;  // without its callables
    detail::DeclarationMatcher matcher;
    Bindings io;
    std::vector<NodeAt> nodes;
    std::vector<std::vector<detail::DeclarationMatcher::Place>> places;  // for each slot, one for each node
    Entry* next = nullptr;  // the entry launched after this one
  };

  absl::Status CheckMayLaunch() const;
  absl::StatusOr<Run> LaunchChecked(const Declaration& declaration, Deadline deadline);
  // Returns a run if the declaration matches the entry.
  absl::StatusOr<std::optional<Run>> TryEntry(Entry& entry, const Declaration& declaration, Deadline deadline);
  absl::StatusOr<std::optional<Run>> TryIn(RunSlot& slot, Entry& entry, const Declaration& declaration,
                                           Deadline deadline);
  absl::StatusOr<bool> Compare(Entry& entry, RunSlot* slot, const Declaration& declaration);
  void TakeChanges(const Entry& entry, RunSlot& slot);
  absl::Status CallDeclaration(const Declaration& declaration, Graph& graph);
  absl::StatusOr<Run> LaunchNew(const Declaration& declaration, Deadline deadline);
  absl::StatusOr<std::shared_ptr<ExecutableCore>> Compile(const Model& model);
  bool IsFull() const { return entries_.size() >= static_cast<size_t>(options_.limit); }
  absl::Status AwaitRoom(Deadline deadline);
  void MarkUsed(Entry& entry);
  Entry* LeastRecentlyUsedIdle() const;
  void Evict(const Entry& entry);

  const std::shared_ptr<RuntimeCore> runtime_;
  const GraphCacheOptions options_;
  const bool checks_against_host_;  // a check keeps copies of its node that a later step could not change
  std::vector<std::unique_ptr<Entry>> entries_;  // most recently used first
  Entry* last_ = nullptr;  // launched last
  const std::shared_ptr<PendingBindings> pending_;
  Bindings io_;  // writes to pending_
  bool launching_ = false;
  GraphCacheCounts counts_;
};

}  // namespace penstock::runtime
