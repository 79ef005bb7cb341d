// GraphCache: a graph that is declared in every step, and replayed if an equal one was declared before.
//
//   ps::GraphCache cache(runtime, {.limit = 8});
//   for (const Batch& batch : batches) {
//     PS_ASSIGN_OR_RETURN(ps::Run run, cache.Launch([&](ps::Graph& g, ps::Bindings& io) {
//       auto x = g.Input<float>("x", batch.size());
//       g.ParallelFor("scale", batch.size(), Scale{batch.factor}, ps::Read(x), ps::ReadWrite(sum));
//       io.Set(x, batch.data());
//     }));
//   }
//
// Launch calls the function with a graph that compares declarations in place with graphs declared earlier. If names,
// types, extents, accesses, node options (After, On, ...) and the order of declarations are all the same, that graph's
// executable runs with whatever else the function gave: plain arguments, functors, fill patterns, host callables and
// host fallbacks. This allocates, locks and hashes nothing per node. Launch compiles only a graph that equals no
// earlier one. Functors and arguments are compared by their bytes; each run uses the callables of its own step.
//
// One Launch may call the function several times: once for each graph it is compared with, and once for a new one. The
// function must declare and set the same each time, so it must not move out of its captures. It may return a Status;
// Launch returns that if it is not OK, and reports exceptions. It is called on the thread that calls Launch, and by
// several threads simultaneously if they launch simultaneously.
//
// Ownership: owns the executables and, in each of their slots, what the callables captured, until the slot's next
//            launch. Names that are not std::string must outlive the cache. Runs keep what they need, so the cache may
//            be dropped at any time, and may outlive the runtime's handle.
// Threads:   thread-safe: any thread may launch. No thread waits for another's declaration; threads that need a new
//            graph compile one after the other, and an equal one only once.
// Errors:    see Launch.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/run.h"
#include "penstock/runtime.h"
#include "penstock/submission_report.h"

namespace penstock {

// Options of the cache.
struct GraphCacheOptions {
  // Executables kept, at least 1. One more may exist while a new one is compiled, and one for each thread that is
  // launching it.
  int limit = 8;
  CompileOptions compile{};  // for all executables; with check_against_host every launch compiles
  Name name = "step";  // the graphs' name in messages
};

// Counts since the cache was made.
struct GraphCacheCounts {
  int64_t found = 0, compiled = 0;  // launches that found their executable, and executables compiled
  int64_t evicted = 0;  // executables evicted to make room
  int64_t calls = 0;  // calls of the function that declares
  int64_t nodes_changed = 0;  // nodes, over all runs, whose argument, functor, pattern or callable was not the slot's
};

class PENSTOCK_EXPORT GraphCache {
 public:
  // Creates an empty cache that compiles for `runtime`. Launch reports mistakes in the options.
  explicit GraphCache(const Runtime& runtime, GraphCacheOptions options = {});

  // Starts a run of what `declare(Graph&)` or `declare(Graph&, Bindings&)` declares, with the bindings it sets.
  // Anything it does not set keeps the value from the last step with that graph, or from an earlier one if several
  // threads launch simultaneously: they should set everything. Waits for a free slot, or for an
  // executable to evict (the least recently used one without a run), until the deadline, which also applies to the run.
  //
  // Errors are those of Runtime::Compile, for a new graph, and of Executable::Launch. InvalidArgument: the limit is
  // below 1, or the graph has kSlot buffers, which nothing could fill. DeadlineExceeded: too many runs were in flight,
  // and none was started. Internal: the function threw. FailedPrecondition: called inside a host node, a callback or
  // the function itself, or the function declared something else when called again.
  template <class F>
  PENSTOCK_HIDDEN absl::StatusOr<Run> Launch(F&& declare, Deadline deadline = {}) {
    using Function = std::remove_reference_t<F>;
    if (detail::IsNull(declare)) return LaunchDeclared(nullptr, nullptr, deadline);
    return LaunchDeclared(&Call<Function>, const_cast<void*>(static_cast<const void*>(&declare)), deadline);
  }

  // What the cache has done so far.
  GraphCacheCounts counts() const;
  // The report of the executable launched last, by any thread.
  SubmissionReport submission_report() const;
  // The name of submission_report() before 0.1.0.
  [[deprecated("renamed submission_report")]] SubmissionReport ledger() const { return submission_report(); }

 private:
  using Declare = absl::Status (*)(void* function, Graph& graph, Bindings& io);

  template <class F>
  PENSTOCK_HIDDEN static absl::Status Call(void* function, Graph& graph, Bindings& io) {
    F& declare = *static_cast<F*>(function);
    const auto call = [&] {
      if constexpr (std::is_invocable_v<F&, Graph&, Bindings&>) return declare(graph, io);
      else return declare(graph);
    };
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      return absl::OkStatus();
    } else {
      return call();
    }
  }
  absl::StatusOr<Run> LaunchDeclared(Declare call, void* function, Deadline deadline);

  std::shared_ptr<runtime::GraphCacheCore> core_;  // null: moved from
};

// The names before 0.1.0.
using ReplayCache [[deprecated("renamed GraphCache")]] = GraphCache;
using ReplayCacheOptions [[deprecated("renamed GraphCacheOptions")]] = GraphCacheOptions;
using ReplayCacheCounts [[deprecated("renamed GraphCacheCounts")]] = GraphCacheCounts;

}  // namespace penstock
