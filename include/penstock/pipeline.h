// Pipeline: a stream of items through host stages and executables, at the speed of the slowest of them.
//
//   ps::Stages<Photo> stages;
//   stages.Host("decode", Decode, {.workers = 4});
//   stages.Run("edges", exec, [&](ps::Item<Photo>& photo) { photo.Set(in, photo->rgb).Set(out, photo->edges); });
//   stages.Host("encode", Encode, {.workers = 4});
//   PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Photo>::Create(std::move(stages)));
//   return pipe.Run(NextPhoto, Done);                                // pull
//   while (...) PS_RETURN_IF_ERROR(pipe.RunBatch(NextPhoto, Done));  // or pull batches
//   pipe.Push(photo); ... while (auto photo = pipe.Pop()) ...        // or push
//
// One number bounds everything: the *window*, the number of window slots, each held from Push or Acquire until the
// popped item is dropped or the sink returns. If no items are taken out, exactly that many go in. Once inside, an item
// never waits for space, so stages cannot deadlock, whatever their speeds.
//
// Ownership: a movable handle. Destroying it cancels the work in progress and waits for its end; items that others hold
//            may be dropped later. Inside a stage, sink or callback it does not wait: the work ends, and is freed,
//            after that has returned.
// Threads:   thread-safe. Host stages have their own threads. Callers of this class, and otherwise the runtime's
//            threads, drive the runs and what precedes them (their Set functions).
// Ordering:  see Order. Runs of executables whose graphs name a State begin in that order too, so the State's contents
//            do not depend on the number of threads or slots.
// Errors:    an item's: its status, with the stage and its line; exceptions of stages become Internal. The pipeline's:
//            status(), and the results of Run, RunBatch and Drain. Create: InvalidArgument. Calls that wait return
//            FailedPrecondition inside a stage, host node or callback, where they could wait for themselves; TryPush,
//            TryAcquire and Submit never wait.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/deadline.h"
#include "penstock/export.h"
#include "penstock/item.h"
#include "penstock/pipeline_stats.h"
#include "penstock/runtime.h"
#include "penstock/stages.h"

namespace penstock {

// The order in which ended items come out: as submitted, as they become ready, or as submitted within each key.
enum class Order : uint8_t { kInOrder, kAsReady, kPerKey };
PENSTOCK_HIDDEN inline constexpr Order kInOrder = Order::kInOrder, kAsReady = Order::kAsReady, kPerKey = Order::kPerKey;

// What a new item does when every window slot is taken:
//   kWait         it waits (TryPush and TryAcquire: is refused).
//   kDropOldest   it replaces the oldest item that no stage is working on, even one that has ended, with or without a
//                 failure.
//   kDropWaiting  it replaces the oldest item that has not begun its first stage. What has begun goes on and comes out,
//                 failed items included, so no work is wasted and no failure is missed.
// If there is no item to replace, it waits. A replaced item is dropped: it never comes out and is only counted.
enum class WhenFull : uint8_t { kWait, kDropOldest, kDropWaiting };
PENSTOCK_HIDDEN inline constexpr WhenFull kWait = WhenFull::kWait, kDropOldest = WhenFull::kDropOldest;
PENSTOCK_HIDDEN inline constexpr WhenFull kDropWaiting = WhenFull::kDropWaiting;  // as WhenFull says

// What a failed item does to the others: nothing, or fail the whole pipeline.
enum class OnError : uint8_t { kSkip, kFail };
PENSTOCK_HIDDEN inline constexpr OnError kSkip = OnError::kSkip, kFail = OnError::kFail;

// Options of Pipeline::Create.
struct PipelineOptions {
  // For the graph that Create is given. 3, the default: as the runtime's settings say (settings.h), else 3. 0: as
  // Compile chooses (CompileOptions::slots).
  int slots_per_device = 3;
  // Number of window slots. 0: as the runtime's settings say (settings.h), else twice the threads and slots of all
  // stages.
  int window = 0;
  Order order = kInOrder;  // the order in which ended items come out
  WhenFull when_full = kWait;  // what a new item does when every window slot is taken
  OnError on_error = kSkip;  // what a failed item means for the others
  int retries = 0;  // how often a stage is retried with an item that failed in it
  // Called with the key of an item whose run failed and left a State poisoned (state.h), while no run of that stage is
  // in flight. It sets or resets the State (Executable::StateOf the key); then the stage resumes. It may wait for
  // States, but not for the pipeline. If it fails or is empty, the pipeline fails.
  std::function<absl::Status(Key)> reset{};
  // Called at about this interval with stats(), on a thread of its own, while the pipeline lives.
  std::function<void(const PipelineStats&)> progress{};
  std::chrono::milliseconds progress_every{1000};  // must be positive
};

// A Pipeline with the type of its items' values erased.
class PENSTOCK_EXPORT AnyPipeline {
 public:
  // Closes the pipeline to new items and lets those inside finish. Push, Acquire and Submit are refused from now on.
  void Stop();
  // Stops, and waits until every item has ended; these may still be popped. DeadlineExceeded: some had not ended; they
  // go on. Otherwise returns status().
  absl::Status Drain(Deadline deadline = {});
  // Stops, and ends every item that has not ended: cancels its run, or lets a stage that has begun finish. The items
  // come out with Cancelled. Returns immediately; may be called anywhere.
  void Cancel();

  // OK, or what made the pipeline fail: the first item to fail under OnError::kFail, a poisoned State, or
  // a dead device.
  absl::Status status() const;
  // Counters since the pipeline was made, and its state now.
  PipelineStats stats() const;
  // The number of window slots.
  int window() const;
  // The executable of the first Run or Then with this name, for its States (Executable::StateOf), memory and plan. The
  // stage of a pipeline that was created from a graph has the graph's name. What is launched on it takes slots away
  // from the pipeline. NotFound: there is no such stage, or it is a Host stage.
  absl::StatusOr<Executable> executable(std::string_view stage) const;

 protected:
  static absl::StatusOr<AnyPipeline> Create(detail::StageList stages, const detail::ValueType& value,
                                            PipelineOptions options);
  AnyItem Pop(Deadline deadline);
  absl::StatusOr<AnyItem> Acquire(Key key, int device, Deadline deadline, bool wait);
  // `pull` puts a value into an item, or returns false when there are no more.
  absl::Status Run(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink);
  absl::Status RunBatch(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink);

 private:
  struct Closer {
    explicit Closer(std::shared_ptr<runtime::PipelineCore> c) : core(std::move(c)) {}
    ~Closer();
    std::shared_ptr<runtime::PipelineCore> core;
  };
  explicit AnyPipeline(std::shared_ptr<runtime::PipelineCore> core)
      : core_(std::make_unique<Closer>(std::move(core))) {}
  std::unique_ptr<Closer> core_;
};

template <class T = NoValue>
class Pipeline : public AnyPipeline {
 public:
  // Creates and starts a pipeline. InvalidArgument lists all mistakes in the stages and options, with their lines.
  PENSTOCK_HIDDEN static absl::StatusOr<Pipeline> Create(Stages<T> stages, PipelineOptions options = {}) {
    auto made = AnyPipeline::Create(std::move(stages).list(), detail::ValueTypeOf<T>(), std::move(options));
    if (!made.ok()) return made.status();
    return Pipeline(*std::move(made));
  }
  // Runs one graph on each of the runtime's devices.
  PENSTOCK_HIDDEN static absl::StatusOr<Pipeline> Create(Runtime& runtime, const Graph& graph,
                                                         PipelineOptions options = {}) {
    auto stages = detail::StagesOfGraph(runtime, graph, options.slots_per_device);
    if (!stages.ok()) return stages.status();
    auto made = AnyPipeline::Create(*std::move(stages), detail::ValueTypeOf<T>(), std::move(options));
    if (!made.ok()) return made.status();
    return Pipeline(*std::move(made));
  }

  // Hands a value in, waiting for a window slot until the deadline. On an error the value stays with the caller:
  // DeadlineExceeded, FailedPrecondition (stopped), or status() of a pipeline that has failed.
  absl::Status Push(T&& value, Key key = {}, const ItemOptions& item = {}, Deadline deadline = {}) {
    return PushInto(AnyPipeline::Acquire(key, item.device, deadline, /*wait=*/true), std::move(value), item);
  }
  // The same without waiting: ResourceExhausted if every window slot is taken, and no item may be replaced (WhenFull).
  absl::Status TryPush(T&& value, Key key = {}, const ItemOptions& item = {}) {
    return PushInto(AnyPipeline::Acquire(key, item.device, Deadline(), /*wait=*/false), std::move(value), item);
  }

  // Takes a window slot, as an item to fill and submit whose value is T(). `device` is as in ItemOptions, for the
  // executable slots that the item takes now. Errors as for Push and TryPush.
  absl::StatusOr<Item<T>> Acquire(Key key = {}, Deadline deadline = {}, int device = kAnyDevice) {
    return Filled(AnyPipeline::Acquire(key, device, deadline, /*wait=*/true));
  }
  absl::StatusOr<Item<T>> TryAcquire(Key key = {}, int device = kAnyDevice) {
    return Filled(AnyPipeline::Acquire(key, device, Deadline(), /*wait=*/false));
  }

  // Returns the next item that has ended, waiting for one until the deadline. If there is none, its status is
  // OutOfRange when all items of a stopped pipeline have been popped, DeadlineExceeded, or FailedPrecondition inside a
  // stage or callback.
  Item<T> Pop(Deadline deadline = {}) { return Item<T>(AnyPipeline::Pop(deadline)); }

  // Takes items from `source` until it has no more, and hands ended items to `sink`. Both run on the calling thread,
  // one at a time: the source when a window slot is free, the sink when an item has ended. Stops the pipeline and
  // returns when the sink has seen every item that was not dropped.
  //
  // Returns status(), or Internal if source or sink threw (InvalidArgument: one is empty). A source that throws ends
  // the stream; a sink that throws cancels the items inside and is not called again. A refused item (KeyedState: no
  // State is left) ends the stream too, with its error. The sink sees it last, with the reason, as it does an item that
  // the source returned while the pipeline failed or was stopped. `key` gives a value's key. FailedPrecondition: items
  // take slots on several devices before they have a value (kSlot and KeyedState in one graph); use Push.
  PENSTOCK_HIDDEN absl::Status Run(const std::function<std::optional<T>()>& source,
                                   const std::function<void(Item<T>&)>& sink,
                                   const std::function<Key(const T&)>& key = {}) {
    return AnyPipeline::Run(PullFrom(source, key), ShowTo(sink));
  }
  // The same, but leaves the pipeline open, so that other batches may follow, or Push, or Run. States keep their
  // contents.
  //
  // The sink sees the items that belong to the batch: those that its source returns, and those that its source, its
  // sink or a stage with an item of it submits. Pop and Run do not see them. So several threads may have a batch each,
  // and others may push and pop meanwhile. They share the window, the order and PipelineOptions::when_full. An item
  // keeps its place in the window until somebody pops it.
  //
  // Errors are those of Run, but a source or sink that throws and a refused item end the batch only. The items inside
  // then go through all stages, though a sink that threw does not see them. FailedPrecondition too if the pipeline is
  // stopped before the source has no more.
  PENSTOCK_HIDDEN absl::Status RunBatch(const std::function<std::optional<T>()>& source,
                                        const std::function<void(Item<T>&)>& sink,
                                        const std::function<Key(const T&)>& key = {}) {
    return AnyPipeline::RunBatch(PullFrom(source, key), ShowTo(sink));
  }

 private:
  explicit Pipeline(AnyPipeline made) : AnyPipeline(std::move(made)) {}
  // The functions with T erased, null where they are; both are used by reference.
  PENSTOCK_HIDDEN static std::function<bool(AnyItem&)> PullFrom(const std::function<std::optional<T>()>& source,
                                                                const std::function<Key(const T&)>& key) {
    if (!source) return nullptr;
    return [&source, &key](AnyItem& place) {
      std::optional<T> next = source();
      if (next && key) place.SetKey(key(*next));
      if (next) place.Emplace<T>(*std::move(next));
      return next.has_value();
    };
  }
  PENSTOCK_HIDDEN static std::function<void(AnyItem&)> ShowTo(const std::function<void(Item<T>&)>& sink) {
    if (!sink) return nullptr;
    return [&sink](AnyItem& any) {
      Item<T> item(std::move(any));
      sink(item);
    };
  }
  PENSTOCK_HIDDEN static absl::Status PushInto(absl::StatusOr<AnyItem> place, T&& value, const ItemOptions& options) {
    if (!place.ok()) return place.status();
    T& inside = place->Emplace<T>(std::move(value));
    absl::Status submitted = place->Submit(options);
    if (!submitted.ok()) value = std::move(inside);
    return submitted;
  }
  PENSTOCK_HIDDEN static absl::StatusOr<Item<T>> Filled(absl::StatusOr<AnyItem> place) {
    static_assert(std::is_default_constructible_v<T>, "Acquire makes the value by T(); use Push");
    if (!place.ok()) return place.status();
    place->Emplace<T>();
    return Item<T>(*std::move(place));
  }
};

}  // namespace penstock
