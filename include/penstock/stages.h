// Stages: what a pipeline's items pass, in order: host functions, and executables.
//
//   ps::Stages<Photo> stages;
//   stages.Host("decode", [](Photo& photo) { return Decode(photo); }, {.workers = 4});
//   stages.Run("edges", exec, [&](ps::Item<Photo>& photo) { photo.Set(in, photo->rgb).Set(out, photo->edges); });
//
// A function takes the item, or its value alone, and returns a Status or nothing. Declaring never fails: mistakes are
// kept, with their lines, and Pipeline::Create returns them all.
//
// Ownership: owns the functions; the pipeline takes them over, and must be gone before a plugin that they come from.
// Threads:   single-threaded. A Host function is called by as many threads at once as it has workers, for different
//            items. The function of a Run sets what the run is to use: it is called just before, by one thread at a
//            time for each device of the executable, possibly one of the runtime's, and so is short, does not block,
//            launches nothing.
#pragma once

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
  int workers = 1;  // threads, 1 to 1024
};

// What an executable hands to the next on the device (Stages::Then).
struct Link {
  // `from`: an Output of the one, `to`: an Input of the other, both kDevice, of one constant size and on one device.
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
  bool run;  // else Host
  StageFunction call;  // of a Run: may be empty
  int workers = 0;  // of a Host
  Executable executable{};  // of a Run
  std::vector<Link> links{};  // not empty: it begins with the Run before it
  bool is_null = false;  // a function that was given is empty
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

// What adds a stage returns the object itself, or, of a temporary, all of it by value.
template <class T = NoValue>
class Stages {
 public:
  // Adds a stage that calls `f` with each item, on as many threads of its own as it has workers.
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
  // `set`: what the run uses, unless who filled the item, or a stage before, has set it all.
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
  // A Run that is launched with the one before it and begins behind it on the devices, with no host thread in between:
  // what the links name lies in device memory of the pipeline's own, as much as the slots of both can use. Together
  // they are one stage. Each executable has one device, or both as many: the first with the first, and so on. Where the
  // two have different devices, one of the graphs says where the memory is (Graph::Input's `device`) and gets a copy.
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
