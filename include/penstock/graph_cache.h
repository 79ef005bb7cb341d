// GraphCache: a graph that is declared in every step, and replayed if it was declared before.
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
// Launch calls the function with a graph that compares what is declared on it, in place, with graphs declared earlier.
// Where names, types, extents, accesses, what is said about nodes (After, On, ...) and the order of all that are the
// same, the executable of that graph runs, with what else the function gave: plain arguments, functors, patterns of
// fills, host callables and host fallbacks. Nothing is allocated, locked or hashed for a node. Only a graph that equals
// none is compiled. Functors and arguments are compared by their bytes; each run has the callables of its own step.
//
// The function may be called several times in one Launch, for each graph it is compared with and for one that is new,
// and must declare and set the same each time: it moves nothing out of what it captures. It may return a Status; one
// that is not OK, and what it throws, is Launch's.
//
// Ownership: the executables, and in each of their slots what the callables captured, until the slot's next launch.
//            Names that are no std::string must outlive the cache. Runs keep what they need, so it may be dropped at
//            any time, and may outlive the runtime's handle.
// Threads:   thread-compatible: one thread at a time. Runs are as thread-safe as any.
// Errors:    see Launch.
#pragma once

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
  int limit = 8;  // executables that are kept, at least 1; while a new one is compiled there may be one more
  CompileOptions compile{};  // of all of them. Where host fallbacks are checked, each launch compiles.
  Name name = "step";  // of the graphs, for messages
};

// Since the cache was made.
struct GraphCacheCounts {
  int64_t found = 0, compiled = 0;  // launches that found their executable, and executables made
  int64_t evicted = 0;  // executables evicted to make room
  int64_t calls = 0;  // of the function that declares
  int64_t nodes_changed = 0;  // nodes of all runs with an argument, functor, pattern or callable that the slot had not
};

class PENSTOCK_EXPORT GraphCache {
 public:
  // Creates an empty cache that compiles for `runtime`. Launch returns mistakes in the options.
  explicit GraphCache(const Runtime& runtime, GraphCacheOptions options = {});

  // Starts a run of what `declare(Graph&)` or `declare(Graph&, Bindings&)` declares, with what it sets in the bindings.
  // What it does not set is as the last step with that graph left it. Waits for a free slot, or for an executable to
  // evict (the least recently used without a run), until the deadline, which is the run's too.
  //
  // As of Runtime::Compile for a new graph, and of Executable::Launch. InvalidArgument: the limit is below 1, or the
  // graph has kSlot buffers, which nobody could fill. DeadlineExceeded: too many runs were in flight, nothing was
  // started. Internal: the function threw. FailedPrecondition: inside a host node, a callback or the function itself,
  // or the function does not declare the same when it is called again.
  template <class F>
  PENSTOCK_HIDDEN absl::StatusOr<Run> Launch(F&& declare, Deadline deadline = {}) {
    using Function = std::remove_reference_t<F>;
    if (detail::IsNull(declare)) return LaunchDeclared(nullptr, nullptr, deadline);
    return LaunchDeclared(&Call<Function>, const_cast<void*>(static_cast<const void*>(&declare)), deadline);
  }

  // What the cache has done so far.
  GraphCacheCounts counts() const;
  // Of the executable that was launched last.
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

// The names of before 0.1.0.
using ReplayCache [[deprecated("renamed GraphCache")]] = GraphCache;
using ReplayCacheOptions [[deprecated("renamed GraphCacheOptions")]] = GraphCacheOptions;
using ReplayCacheCounts [[deprecated("renamed GraphCacheCounts")]] = GraphCacheCounts;

}  // namespace penstock
