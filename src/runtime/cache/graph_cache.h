// GraphCacheCore: what a GraphCache holds: the executables that it has made, each with its declaration.
//
// A step is compared with one graph after another: first with the one that last followed the previous step's graph,
// then with the others, most recently used first. One pass compares what the step declares with a model, and its values
// with those of a slot leased for the comparison. Each slot catches up by itself with the values that its own last run
// lacked, so a comparison that finds a difference does no harm although it has set some values. If no slot is free, the
// structure is compared alone, and only if it matches does the launch wait for a slot.
//
// Threads launch simultaneously, each with a *step* of its own: what it sets, and what it compares with each entry.
// What a slot holds belongs to the slot's lease. A thread whose graph is new takes the turn to compile; if others have
// added entries since it began to compare, it gives the turn back and compares again, so no graph is compiled twice.
//
// Ownership: owns the executables' handles. A launch in progress keeps its entry, and a run in flight its executable,
//            also if they are evicted.
// Threads:   thread-safe.
// Locks:     mu_ guards which entries and steps there are, and the counts; nothing is called with it held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/detail/declaration_matcher.h"
#include "penstock/graph_cache.h"
#include "src/base/mutex.h"
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
  GraphCacheCounts counts() const;
  SubmissionReport submission_report() const;

 private:
  // Where a node's values are in a slot: an entry of Program::calls or fills.
  struct NodeAt {
    int32_t call = -1, fill = -1;
  };
  // What steps of one index compare with an entry and bind for it.
  struct Comparison {
    Comparison(std::shared_ptr<Model> model, Bindings bindings)
        : declared(std::move(model)), matcher(*declared), io(std::move(bindings)) {}
    const std::shared_ptr<Model> declared;  // a graph that is declared again notes its scope there
    detail::DeclarationMatcher matcher;
    Bindings io;
  };
  struct Entry {
    Entry(std::shared_ptr<ExecutableCore> executable, std::shared_ptr<Model> model)
        : core(std::move(executable)), declared(std::move(model)) {}
    void FindPlaces();

    const std::shared_ptr<ExecutableCore> core;
    const std::shared_ptr<const Model> declared;  // without its callables
    std::vector<NodeAt> nodes;
    std::vector<std::vector<detail::DeclarationMatcher::Place>> places;  // for each slot, one for each node
    // Guarded by mu_.
    std::vector<std::unique_ptr<Comparison>> comparisons;  // one for each step, made when it first needs it
    std::weak_ptr<Entry> next;  // the entry launched after this one, by the same step
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;
  // What a launch uses for itself alone, from its beginning to its end.
  struct Step {
    explicit Step(size_t at);
    const size_t index;
    const std::shared_ptr<PendingBindings> pending;
    Bindings io;  // writes to `pending`
    std::weak_ptr<Entry> last;  // launched last
    std::vector<std::weak_ptr<Entry>> others;  // to be compared with, unless they are evicted meanwhile
    int64_t found = 0, calls = 0, nodes_changed = 0;  // not yet among the counts
  };

  absl::Status CheckMayLaunch() const;
  Step& TakeStep();
  void GiveBack(Step& step);
  absl::StatusOr<Run> LaunchStep(Step& step, const Declaration& declaration, Deadline deadline);
  // Returns a run if the declaration matches an entry. Sets `added` to the count of entries that had been added before.
  absl::StatusOr<std::optional<Run>> LaunchKnown(Step& step, const Declaration& declaration, Deadline deadline,
                                                 int64_t& added);
  // The same for one entry.
  absl::StatusOr<std::optional<Run>> TryEntry(Step& step, const std::shared_ptr<Entry>& entry,
                                              const Declaration& declaration, Deadline deadline);
  absl::StatusOr<std::optional<Run>> TryIn(RunSlot& slot, Step& step, const Entry& entry, Comparison& with,
                                           const Declaration& declaration, Deadline deadline);
  absl::StatusOr<bool> Compare(Step& step, const Entry& entry, Comparison& with, RunSlot* slot,
                               const Declaration& declaration);
  static void TakeChanges(Step& step, const Entry& entry, const Comparison& with, RunSlot& slot);
  absl::Status CallDeclaration(Step& step, const Declaration& declaration, Graph& graph);
  Comparison& ComparisonOf(const Step& step, Entry& entry);

  // The turn to compile. Returns false, without the turn, if entries have been added since `added` was counted.
  absl::StatusOr<bool> TakeCompileTurn(int64_t added, Deadline deadline);
  void EndCompileTurn();
  absl::StatusOr<std::shared_ptr<Entry>> MakeEntry(const std::shared_ptr<Model>& model, Deadline deadline);
  absl::StatusOr<Run> LaunchNew(Step& step, const std::shared_ptr<Entry>& entry, const Declaration& declaration,
                                Deadline deadline);
  absl::StatusOr<std::shared_ptr<ExecutableCore>> Compile(const Model& model);
  absl::Status AwaitRoom(Deadline deadline);
  void AddEntry(std::shared_ptr<Entry> entry);
  bool IsFull() const;
  void MarkUsed(Step& step, const std::shared_ptr<Entry>& entry);
  Entries entries() const;
  std::shared_ptr<Entry> LeastRecentlyUsedIdle() const;
  void Evict(const std::shared_ptr<Entry>& entry);

  const std::shared_ptr<RuntimeCore> runtime_;
  const GraphCacheOptions options_;
  const bool checks_against_host_;  // a check keeps copies of its node that a later step could not change

  mutable base::Mutex mu_;
  base::CondVar turn_ended_;
  Entries entries_ ABSL_GUARDED_BY(mu_);  // most recently used first
  std::vector<std::unique_ptr<Step>> steps_ ABSL_GUARDED_BY(mu_);
  std::vector<Step*> idle_steps_ ABSL_GUARDED_BY(mu_);  // the one given back last is taken first
  GraphCacheCounts counts_ ABSL_GUARDED_BY(mu_);
  int64_t added_ ABSL_GUARDED_BY(mu_) = 0;  // entries so far
  bool compiling_ ABSL_GUARDED_BY(mu_) = false;  // a thread has the turn
};

}  // namespace penstock::runtime
