// Stages: the host functions and executables that a pipeline's items pass, in order.
//
//   ps::Stages<Photo> stages;
//   stages.Host("decode", [](Photo& photo) { return Decode(photo); }, {.workers = 4});
//   stages.Run("edges", exec, [&](ps::Item<Photo>& photo) { photo.Set(in, photo->rgb).Set(out, photo->edges); });
//
// A function takes the item, or its value alone, and returns a Status or nothing. Declaring never fails: Stages keeps
// mistakes with their lines, and Pipeline::Create returns them all.
//
// Ownership: owns the functions. The pipeline takes them over, and must be gone before a plugin that contains them.
// Threads:   single-threaded. As many threads as a Host stage has workers call its function concurrently, for different
//            items. The function of a Run sets the run's bindings. It is called just before the run, by one thread at a
//            time per device of the executable, possibly one of the runtime's threads, so it must be short, must not
//            block, and must launch nothing.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/executable.h"
#include "penstock/export.h"
#include "penstock/graph.h"
#include "penstock/item.h"
#include "penstock/name.h"
#include "penstock/runtime.h"

namespace penstock {

// Options of a host stage.
struct HostStageOptions {
  // Threads, 1 to 1024. 0: as many as the runtime's settings say for the stage's name (settings.h), else 1; give it
  // only with a function that several threads may call at once.
  int workers = 1;
};

// Memory that one executable hands to the next on the device (Stages::Then).
struct Link {
  // `from` is an Output of the first, `to` an Input of the second: both kDevice, of one constant size and
  // on one device.
  template <class T>
  Link(BufferHandle<T> from, BufferHandle<T> to)
      : from_graph(from.graph()), from_index(from.index()), to_graph(to.graph()), to_index(to.index()) {}
  uint32_t from_graph;  // serial number of the graph that declares `from`
  int32_t from_index;  // index of `from` in that graph
  uint32_t to_graph;  // serial number of the graph that declares `to`
  int32_t to_index;  // index of `to` in that graph
};

namespace detail {

using StageFunction = std::function<absl::Status(AnyItem&)>;

struct StageDecl {
  Name name;
  bool run;  // a Run; otherwise a Host stage
  StageFunction call;  // may be empty for a Run
  int workers = 0;  // for a Host stage
  Executable executable{};  // for a Run
  std::vector<Link> links{};  // if not empty, this Run is launched with the one before it
  bool is_null = false;  // the function that was given is empty
};
using StageList = std::vector<StageDecl>;

// The type of a pipeline's values.
struct ValueType {
  size_t size, align;
  void (*destroy)(void* value);
};
template <class T>
PENSTOCK_HIDDEN constexpr ValueType ValueTypeOf() {
  return {sizeof(T), alignof(T), [](void* value) { static_cast<T*>(value)->~T(); }};
}

template <class T, class F>
PENSTOCK_HIDDEN absl::Status CallStage(F& f, Item<T>& item) {
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_invocable_v<F&, Item<T>&>) {
      return f(item);
    } else {
      return f(item.value());
    }
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return absl::OkStatus();
  } else {
    return call();
  }
}

template <class T, class F>
PENSTOCK_HIDDEN StageFunction EraseStage(F f) {
  static_assert(std::is_invocable_v<F&, Item<T>&> || std::is_invocable_v<F&, T&>,
                "a stage's function takes Item<T>& or T&");
  return [f = std::move(f)](AnyItem& any) mutable {
    Item<T> item(std::move(any));
    const absl::Status status = CallStage<T>(f, item);
    any = std::move(item);
    return status;
  };
}

// One Run: the graph on all devices.
PENSTOCK_EXPORT absl::StatusOr<StageList> StagesOfGraph(Runtime& runtime, const Graph& graph, int slots);

}  // namespace detail

// Adding a stage returns the object itself, or by value when called on a temporary.
template <class T = NoValue>
class Stages {
 public:
  // Adds a stage that calls `f` with each item, on `workers` threads of its own.
  template <class F>
  Stages& Host(Name name, F f, HostStageOptions options = {}) & {
    Add(std::move(name), false, std::move(f));
    list_.back().workers = options.workers;
    return *this;
  }
  template <class F>
  Stages Host(Name name, F f, HostStageOptions options = {}) && {
    return std::move(Host(std::move(name), std::move(f), options));
  }
  // `set` sets the run's bindings; not needed if the producer or an earlier stage has set them all.
  template <class F>
  Stages& Run(Name name, Executable executable, F set) & {
    Add(std::move(name), true, std::move(set));
    list_.back().executable = std::move(executable);
    return *this;
  }
  Stages& Run(Name name, Executable executable) & {
    list_.push_back({std::move(name), true, nullptr, 0, std::move(executable)});
    return *this;
  }
  template <class... F>
  Stages Run(Name name, Executable executable, F... set) && {
    return std::move(Run(std::move(name), std::move(executable), std::move(set)...));
  }
  // Adds a Run that is launched with the one before it and begins after it on the devices, with no host thread in
  // between. The links lie in device memory of the pipeline, enough for the slots of both. Together they are one stage.
  // Each executable has one device, or both have equally many, paired in order. If a pair has different devices, one of
  // the graphs states where the memory is (the `device` of Graph::Input) and gets a copy.
  template <class... F>
  Stages& Then(Name name, Executable executable, std::vector<Link> links, F... set) & {
    Run(std::move(name), std::move(executable), std::move(set)...);
    list_.back().links = std::move(links);
    return *this;
  }
  template <class... F>
  Stages Then(Name name, Executable executable, std::vector<Link> links, F... set) && {
    return std::move(Then(std::move(name), std::move(executable), std::move(links), std::move(set)...));
  }

  detail::StageList list() && { return std::move(list_); }

 private:
  template <class F>
  void Add(Name name, bool run, F f) {
    const bool is_null = detail::IsNull(f);
    list_.push_back({std::move(name), run, detail::EraseStage<T>(std::move(f))});
    list_.back().is_null = is_null;
  }

  detail::StageList list_;
};

}  // namespace penstock
