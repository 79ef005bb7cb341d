// Pipeline: a stream of items through host stages and executables, at the speed of the slowest of them.
//
//   ps::Stages<Photo> stages;
//   stages.Host("decode", Decode, {.workers = 4});
//   stages.Run("edges", exec, [&](ps::Item<Photo>& photo) { photo.Set(in, photo->rgb).Set(out, photo->edges); });
//   stages.Host("encode", Encode, {.workers = 4});
//   PS_ASSIGN_OR_RETURN(auto pipe, ps::Pipeline<Photo>::Create(std::move(stages)));
//   return pipe.Run(NextPhoto, Done);                                // pull
//   pipe.Push(photo); ... while (auto photo = pipe.Pop()) ...        // or push
//
// Everything is bounded by one number, the *window*: the places for items, from Push or Acquire until the popped item
// is dropped, or the sink returns. With nobody taking items out exactly so many go in, then no more. Inside an item
// never waits for room, so no speeds of stages can lock each other up.
//
// Ownership: a movable handle. Destroying it cancels what is under way and waits until that has ended; items that
//            others hold may be dropped later. Inside a stage, sink or callback it does not wait: what is under way
//            ends, and is freed, after it has returned.
// Threads:   thread-safe. Stages have threads of their own; what is before a run (its Set function), and the runs
//            themselves, are pushed on by whoever is in a call here, and by the runtime's threads else.
// Ordering:  Order. Runs of executables whose graphs name a State begin in that order too, so what they leave in it
//            does not depend on the number of threads or slots.
// Errors:    of an item: its status, with the stage and its line; exceptions of stages become Internal. Of the whole:
//            status(), and what Run and Drain return. Create: InvalidArgument. Calls that wait: FailedPrecondition
//            inside a stage, host node or callback, where they could wait for themselves; TryPush, TryAcquire and
//            Submit do not.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

// In what order ended items come out: as they were submitted, or as they are ready, or as submitted among those of a
// key.
enum class Order : uint8_t { kInOrder, kAsReady, kPerKey };
PENSTOCK_HIDDEN inline constexpr Order kInOrder = Order::kInOrder, kAsReady = Order::kAsReady, kPerKey = Order::kPerKey;

// What a new item does when every place is taken: wait (TryPush and TryAcquire: be refused), or take that of the oldest
// item that nobody is working on, which is gone and only counted.
enum class WhenFull : uint8_t { kWait, kDropOldest };
PENSTOCK_HIDDEN inline constexpr WhenFull kWait = WhenFull::kWait, kDropOldest = WhenFull::kDropOldest;

// What an item that fails means for the others: nothing, or that the pipeline fails with it.
enum class OnError : uint8_t { kSkip, kFail };
PENSTOCK_HIDDEN inline constexpr OnError kSkip = OnError::kSkip, kFail = OnError::kFail;

// Options of Pipeline::Create.
struct PipelineOptions {
  int slots_per_device = 3;  // of the graph that Create is given
  int window = 0;  // places for items; 0: twice the threads and slots of all stages
  Order order = kInOrder;  // in which ended items come out
  WhenFull when_full = kWait;  // what a new item does when every place is taken
  OnError on_error = kSkip;  // what a failed item means for the others
  int retries = 0;  // how often a stage is tried again with an item that it has failed
  // Called with the key of an item whose run has failed and left a State poisoned (state.h), with no run of that stage
  // in flight: sets or resets it (Executable::StateOf the key); then the stage goes on. May wait for States, but not
  // for the pipeline. A failure, or none to call: the pipeline fails.
  std::function<absl::Status(Key)> reset{};
  // Called about so often with what stats() says, on a thread of its own, while the pipeline lives.
  std::function<void(const PipelineStats&)> progress{};
  std::chrono::milliseconds progress_every{1000};  // must be positive
};

// A Pipeline whose items' type is erased.
class PENSTOCK_EXPORT AnyPipeline {
 public:
  // Nothing more comes in; what is inside goes on. Push, Acquire and Submit are refused from now on.
  void Stop();
  // Stop, and waits until every item has ended; those may still be popped. DeadlineExceeded: some had not; they go on.
  // Else status().
  absl::Status Drain(Deadline deadline = {});
  // Stop, and ends every item that has not: runs are cancelled, stages that have begun run to their end. The items come
  // out with Cancelled. Returns at once; may be called anywhere.
  void Cancel();

  // OK, or what has failed the pipeline: the first item that failed under OnError::kFail, a poisoned State, a dead
  // device.
  absl::Status status() const;
  // Counters since the pipeline was made, and its state now.
  PipelineStats stats() const;
  // The number of places for items.
  int window() const;

 protected:
  static absl::StatusOr<AnyPipeline> Create(detail::StageList stages, const detail::ValueType& value,
                                            PipelineOptions options);
  AnyItem Pop(Deadline deadline);
  absl::StatusOr<AnyItem> Acquire(Key key, int device, Deadline deadline, bool wait);
  // `pull`: puts a value into an item, or says that there are no more.
  absl::Status Run(const std::function<bool(AnyItem&)>& pull, const std::function<void(AnyItem&)>& sink);

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
  // One graph, on each of the runtime's devices.
  PENSTOCK_HIDDEN static absl::StatusOr<Pipeline> Create(Runtime& runtime, const Graph& graph,
                                                         PipelineOptions options = {}) {
    auto stages = detail::StagesOfGraph(runtime, graph, options.slots_per_device);
    if (!stages.ok()) return stages.status();
    auto made = AnyPipeline::Create(*std::move(stages), detail::ValueTypeOf<T>(), std::move(options));
    if (!made.ok()) return made.status();
    return Pipeline(*std::move(made));
  }

  // Hands a value in, waiting for a place until the deadline. Where that fails the value stays the caller's.
  // DeadlineExceeded, FailedPrecondition (stopped), or status() of a pipeline that has failed.
  absl::Status Push(T&& value, Key key = {}, const ItemOptions& item = {}, Deadline deadline = {}) {
    return PushInto(AnyPipeline::Acquire(key, item.device, deadline, /*wait=*/true), std::move(value), item);
  }
  // The same without waiting: ResourceExhausted when every place is taken.
  absl::Status TryPush(T&& value, Key key = {}, const ItemOptions& item = {}) {
    return PushInto(AnyPipeline::Acquire(key, item.device, Deadline(), /*wait=*/false), std::move(value), item);
  }

  // A place, to be filled and submitted, with a value made by T(). `device`: as ItemOptions says, of the slots that the
  // item has from now on. Errors as for Push and TryPush.
  absl::StatusOr<Item<T>> Acquire(Key key = {}, Deadline deadline = {}, int device = kAnyDevice) {
    return Filled(AnyPipeline::Acquire(key, device, deadline, /*wait=*/true));
  }
  absl::StatusOr<Item<T>> TryAcquire(Key key = {}, int device = kAnyDevice) {
    return Filled(AnyPipeline::Acquire(key, device, Deadline(), /*wait=*/false));
  }

  // The next item that has ended, waiting for one until the deadline. None: its status is OutOfRange when all items of
  // a stopped pipeline have been popped, DeadlineExceeded, or FailedPrecondition inside a stage or callback.
  Item<T> Pop(Deadline deadline = {}) { return Item<T>(AnyPipeline::Pop(deadline)); }

  // Takes items from `source` until it has no more, and hands those that have ended to `sink`: both on the calling
  // thread, one at a time, neither while the other could wait for it. Returns when the sink has seen every item that
  // was not dropped: status(), or Internal where one of the two threw (InvalidArgument: one is empty): a source that
  // does ends the stream, a sink cancels what is under way and is not called again. An item that is refused
  // (KeyedState: no State is left) ends the stream too, with that error. The sink sees a refused item last, with the
  // reason; so too one that the source gave while the pipeline failed or was stopped. Stops the pipeline. `key`: that
  // of a value; not where items have slots on several devices before the value is there (kSlot and KeyedState in one
  // graph): FailedPrecondition, use Push.
  PENSTOCK_HIDDEN absl::Status Run(const std::function<std::optional<T>()>& source,
                                   const std::function<void(Item<T>&)>& sink,
                                   const std::function<Key(const T&)>& key = {}) {
    const auto pull = [&](AnyItem& place) {
      std::optional<T> next = source();
      if (next && key) place.SetKey(key(*next));
      if (next) place.Emplace<T>(*std::move(next));
      return next.has_value();
    };
    const auto push = [&](AnyItem& any) {
      Item<T> item(std::move(any));
      sink(item);
    };
    return AnyPipeline::Run(source ? std::function<bool(AnyItem&)>(pull) : nullptr,
                            sink ? std::function<void(AnyItem&)>(push) : nullptr);
  }

 private:
  explicit Pipeline(AnyPipeline made) : AnyPipeline(std::move(made)) {}
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
