// GraphCacheCore: what a GraphCache holds: the executables it has made, each with the declarations it was made from.
//
// A step is compared with one graph after another: with the one that followed the last step's graph before, then with
// the others, the most recently used first. What it declares is compared with a model and its values with those of a
// slot that is leased for it, in one go. Each slot catches up by itself with what its own last run had not; so a
// comparison that ends in a difference has done no harm, though it has set some values. Where no slot is free, the
// structure is compared alone, and a slot waited for only where it is the same.
//
// Ownership: owns the executables' handles; runs in flight keep them.
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
  // The function that declares.
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
    detail::DeclarationMatcher again;
    Bindings io;
    std::vector<NodeAt> nodes;
    std::vector<std::vector<detail::DeclarationMatcher::Place>> places;  // of each slot: a node each
    Entry* next = nullptr;  // what was launched after it
  };

  absl::Status CheckMayLaunch() const;
  absl::StatusOr<Run> LaunchChecked(const Declaration& declaration, Deadline deadline);
  // A run, where the declaration is the entry's.
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
  const bool checks_against_host_;  // what a check keeps of its node no later step could change
  std::vector<std::unique_ptr<Entry>> entries_;  // the most recently used first
  Entry* last_ = nullptr;  // launched
  const std::shared_ptr<PendingBindings> pending_;
  Bindings io_;  // on pending_
  bool launching_ = false;
  GraphCacheCounts counts_;
};

}  // namespace penstock::runtime
