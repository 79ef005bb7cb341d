// RunPipeline: a stream of items through a host stage, executables and another host stage, in order.
//
//   source -> before (own threads) -> [queue] -> executables -> [queue] -> after (own threads) -> sink
//
// An item goes to whichever executable has a free slot, so several devices share one stream. Everything is bounded: the
// source is at most MaxInFlight items ahead of the sink, and each stage holds an item until the next has room.
//
// Ownership: an item stays at one address from source to sink, so runs may use memory inside it. Executables may be
// used
//            by others meanwhile, at the price that an item may then wait for a slot while another device has one.
// Threads:   sink is called on the calling thread; source by one thread at a time; bind by one thread; before and after
//            by as many threads as they have workers, for different items.
// Ordering:  sink sees items in the order of the source, each exactly once. Between the stages they may overtake.
// Errors:    an item whose stage or run failed goes to the sink with the first failure, past its remaining stages;
//            exceptions of stages become Internal. RunPipeline itself returns InvalidArgument for options and stages
//            that are missing, FailedPrecondition inside a host node or callback, and Internal where source or sink
//            threw: then what is under way is finished, without the sink in the latter case.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/bindings.h"
#include "penstock/executable.h"
#include "penstock/export.h"

namespace penstock {

// Item is any type that can be moved. `before` and `after` may be empty.
template <class Item>
struct PipelineStages {
  std::function<std::optional<Item>()> source;  // nullopt: there are no more
  std::function<absl::Status(Item&)> before;
  // Sets what the item's run on executable number `executable` uses: all buffers and parameters, since the bindings may
  // hold another item's values or nothing.
  std::function<absl::Status(Item&, int executable, Bindings&)> bind;
  std::function<absl::Status(Item&)> after;  // the run's outputs are there
  std::function<void(Item&&, const absl::Status&)> sink;
};

// All are at least 1.
struct PipelineOptions {
  int before_workers = 1;
  int after_workers = 1;
  int before_queue = 2;  // items that may wait for a slot
  int after_queue = 2;  // items that may wait for the after stage; beyond it their slots stay taken
};

// How many items can have left the source without having left the sink: one in every slot, the two queues full, one in
// the hands of every worker and one in the sink. Finished items that wait for their turn are among them. With the sink
// blocked exactly so many leave the source, then no more.
PENSTOCK_EXPORT int64_t MaxInFlight(std::span<const Executable> executables, const PipelineOptions& options);

namespace detail {

struct ItemDeleter {
  void (*destroy)(void*) = nullptr;
  void operator()(void* item) const { destroy(item); }
};
using AnyItem = std::unique_ptr<void, ItemDeleter>;

// PipelineStages with the item's type erased.
struct AnyStages {
  std::function<AnyItem()> source;  // null: there are no more
  std::function<absl::Status(void*)> before;
  std::function<absl::Status(void*, int, Bindings&)> bind;
  std::function<absl::Status(void*)> after;
  std::function<void(void*, const absl::Status&)> sink;
};

PENSTOCK_EXPORT absl::Status RunAnyPipeline(std::vector<Executable> executables, AnyStages stages,
                                            const PipelineOptions& options);

template <class Item>
AnyItem Erase(std::optional<Item> item) {
  if (!item) return AnyItem();
  return AnyItem(new Item(*std::move(item)), ItemDeleter{[](void* p) { delete static_cast<Item*>(p); }});
}

}  // namespace detail

// Returns when the source has ended and the sink has seen every item.
template <class Item>
absl::Status RunPipeline(std::vector<Executable> executables, PipelineStages<Item> stages,
                         PipelineOptions options = {}) {
  detail::AnyStages any;
  if (stages.source) any.source = [&] { return detail::Erase(stages.source()); };
  if (stages.before) any.before = [&](void* item) { return stages.before(*static_cast<Item*>(item)); };
  if (stages.bind) {
    any.bind = [&](void* item, int executable, Bindings& bindings) {
      return stages.bind(*static_cast<Item*>(item), executable, bindings);
    };
  }
  if (stages.after) any.after = [&](void* item) { return stages.after(*static_cast<Item*>(item)); };
  if (stages.sink) {
    any.sink = [&](void* item, const absl::Status& status) {
      stages.sink(std::move(*static_cast<Item*>(item)), status);
    };
  }
  return detail::RunAnyPipeline(std::move(executables), std::move(any), options);
}

}  // namespace penstock
