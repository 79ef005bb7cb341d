// Bindings: the values and memory that one launch uses. Executable::bindings makes one, to be reused from
// launch to launch.
//
//   exec.Launch(io.Set(a, 2.f).Set(x, hx).Set(y, hy));
//
// Launch copies what it needs, so a Bindings may be changed as soon as Launch returns. Values stay set. Bindings keeps
// a mistake made in Set, and Launch returns it, naming the parameter or buffer, until a correct Set replaces it. The
// mistake of using another graph's handle stays (ClearBuffers forgets it for a buffer).
//
// A launch is cheaper if no buffer has been set since the last one, not even to the same memory, and no shape depends
// on parameters. It then looks again only at memory that was pinned or on a device, so memory that the application has
// pinned in the meantime may still be copied as unpinned.
//
// Ownership: borrows bound memory, which must outlive the run unless a keep-alive is given or a buffer is moved in.
// Threads:   thread-compatible: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/detail/arguments.h"
#include "penstock/detail/model.h"
#include "penstock/device_buffer.h"
#include "penstock/export.h"
#include "penstock/host_buffer.h"
#include "penstock/key.h"
#include "penstock/run.h"

namespace penstock {

namespace runtime {
class ExecutableCore;
class LaunchBinder;
class ExecutableSet;
class PendingBindings;
class PipelineAccess;
class GraphCacheCore;
}  // namespace runtime

// Memory given for one buffer.
struct BoundMemory {
  void* data = nullptr;
  int64_t elements = -1;  // -1: nothing bound
  bool read_only = false;  // bound from const memory: refused for Output and InOut
  bool once = false;  // moved in: the next run takes ownership of it
  bool held = false;  // `keep_alive` owns the memory itself, so its kind cannot change
  std::shared_ptr<const void> keep_alive{};  // held until the run has ended
  std::vector<Run> runs_ahead{};  // set by After
  std::vector<void*> events_ahead{};  // set by After for events
};

// An event of the platform, a cudaEvent_t: Native (cuda.h) makes one.
struct NativeEvent {
  void* handle = nullptr;
};

// A stream of the platform, a cudaStream_t: Native (cuda.h) makes one.
struct NativeStream {
  void* handle = nullptr;
};

namespace detail {
// Ranges that may be bound without a keep-alive: lvalues, and ranges whose elements outlive them, such as spans. A
// temporary vector would be gone before the launch.
template <class R, class T>
concept RangeOf = std::ranges::contiguous_range<R> && std::is_same_v<std::ranges::range_value_t<R>, T> &&
                  !std::is_same_v<std::remove_cvref_t<R>, HostBuffer<T>>;
template <class R, class T>
concept BorrowedRangeOf = RangeOf<R, T> && std::ranges::borrowed_range<R>;
template <class R, class T>
concept KeptRangeOf = RangeOf<R, T> && (std::ranges::borrowed_range<R> || std::ranges::view<std::remove_cvref_t<R>>);
template <class M, class T>
concept MemoryOf = BorrowedRangeOf<M, T> || std::is_same_v<std::remove_cvref_t<M>, HostBuffer<T>> ||
                   std::is_same_v<std::remove_cvref_t<M>, DeviceBuffer<T>>;
}  // namespace detail

// Setters return the object itself, or by value when called on a temporary.
class PENSTOCK_EXPORT Bindings {
 public:
  Bindings() = default;  // belongs to no executable: accepts everything, and Launch refuses it

  // Sets the value of a parameter.
  template <class T>
  PENSTOCK_HIDDEN Bindings& Set(ParamHandle<T> param, std::type_identity_t<T> value) & {
    SetParam(param.graph(), param.index(), detail::TypeOf<T>(), &value);
    return *this;
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings Set(ParamHandle<T> param, std::type_identity_t<T> value) && {
    return std::move(Set(param, value));
  }

  // Takes any contiguous range of T that outlives this call: a span, or a named vector or array; of device memory for a
  // buffer declared kDevice. With `keep_alive` any view will do; the run holds it until it has ended, and this object
  // until the buffer is set again.
  template <class T, detail::BorrowedRangeOf<T> R>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, R&& memory) & {
    return Set(buffer, std::forward<R>(memory), nullptr);
  }
  template <class T, detail::KeptRangeOf<T> R>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, R&& memory, std::shared_ptr<const void> keep_alive) & {
    auto* data = std::ranges::data(memory);
    BoundMemory bound{.data = const_cast<T*>(data),
                      .elements = static_cast<int64_t>(std::ranges::size(memory)),
                      .read_only = std::is_const_v<std::remove_pointer_t<decltype(data)>>};
    bound.keep_alive = std::move(keep_alive);
    SetBuffer(buffer.graph(), buffer.index(), detail::TypeOf<T>(), std::move(bound));
    return *this;
  }
  // Binds pool memory and keeps its block alive. (A HostBuffer is a range too, which the overload above must not take.)
  template <class T>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, const HostBuffer<T>& memory) & {
    SetBuffer(buffer.graph(), buffer.index(), detail::TypeOf<T>(),
              {.data = memory.data(), .elements = memory.size(), .held = true, .keep_alive = memory.block()});
    return *this;
  }
  // Moves the buffer into the next run, which returns it to the pool when it has ended; later launches need another
  // one. If the launch fails, the buffer stays here, unless the run was abandoned (On).
  template <class T>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, HostBuffer<T>&& memory) & {
    const HostBuffer<T> taken = std::move(memory);
    SetBuffer(
        buffer.graph(), buffer.index(), detail::TypeOf<T>(),
        {.data = taken.data(), .elements = taken.size(), .once = true, .held = true, .keep_alive = taken.block()});
    return *this;
  }
  // Binds a runtime's device memory and keeps it alive.
  template <class T>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, const DeviceBuffer<T>& memory) & {
    SetBuffer(buffer.graph(), buffer.index(), detail::TypeOf<T>(),
              {.data = memory.data(), .elements = memory.size(), .held = true, .keep_alive = memory.block()});
    return *this;
  }
  template <class T, detail::MemoryOf<T> M>
  PENSTOCK_HIDDEN Bindings Set(BufferHandle<T> buffer, M&& memory) && {
    return std::move(Set(buffer, std::forward<M>(memory)));
  }
  template <class T, detail::KeptRangeOf<T> R>
  PENSTOCK_HIDDEN Bindings Set(BufferHandle<T> buffer, R&& memory, std::shared_ptr<const void> keep_alive) && {
    return std::move(Set(buffer, std::forward<R>(memory), std::move(keep_alive)));
  }

  // Delays the run's first touch of the memory set for `buffer`, declared kDevice, until `run`'s work on devices is
  // done. No host thread is involved, and everything that need not wait starts earlier. This run ends no sooner than
  // `run`, and fails if `run` fails. Both must belong to one runtime. Several runs may be named; Set forgets them.
  //
  //   a.Launch(ia.Set(out, middle));  b.Launch(ib.Set(in, middle).After(in, run_of_a));
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, const Run& run) & {
    AddPredecessor(buffer.graph(), buffer.index(), detail::TypeOf<T>(), &run, nullptr);
    return *this;
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, const Run& run) && {
    return std::move(After(buffer, run));
  }
  // Waits for the work that the event captures at the time of Launch. It must have been recorded by then.
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, NativeEvent event) & {
    AddPredecessor(buffer.graph(), buffer.index(), detail::TypeOf<T>(), nullptr, event.handle);
    return *this;
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, NativeEvent event) && {
    return std::move(After(buffer, event));
  }

  // Selects the key whose States the launch uses, for States that the graph declares by key (Graph::KeyedState). In a
  // pipeline the item's key is used.
  Bindings& SetKey(Key key) &;
  Bindings SetKey(Key key) && { return std::move(SetKey(key)); }

  // Orders all later launches with one of the application's streams: the run begins after the work already submitted to
  // the stream, and work submitted to the stream after Launch has returned begins after the run. Launch returns when
  // the whole run has been submitted, without waiting for it. The exceptions are Host nodes that no kernel requests,
  // and unpinned memory: a stream cannot wait for host threads, so Launch waits for these to end. If the run is
  // abandoned first, Launch returns its status. The stream must belong to a device of the plan and must not be
  // capturing. On(NativeStream()) ends the ordering.
  Bindings& On(NativeStream stream) &;
  Bindings On(NativeStream stream) && { return std::move(On(stream)); }

  // Forgets bound memory, keep-alives and mistakes with buffers; keeps parameters and the stream.
  void ClearBuffers();

 private:
  friend class runtime::ExecutableCore;
  friend class runtime::LaunchBinder;
  friend class runtime::ExecutableSet;
  friend class runtime::PendingBindings;
  friend class runtime::PipelineAccess;
  friend class runtime::GraphCacheCore;
  explicit Bindings(std::shared_ptr<const Model> model);

  void Reset();  // forgets all that was set
  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory);
  void AddPredecessor(uint32_t graph, int32_t index, TypeInfo type, const Run* run, void* event);
  bool CheckBuffer(const char* call, uint32_t graph, int32_t index, TypeInfo type);
  // A mistake and its subject; index -1: a handle of another graph.
  struct Noted {
    bool of_buffer;
    int32_t index;
    absl::Status mistake;
  };
  void Note(bool of_buffer, int32_t index, absl::Status mistake);
  void Forgive(bool of_buffer, int32_t index);

  std::shared_ptr<const Model> model_;
  std::vector<uint32_t> param_offsets_;
  std::vector<std::byte> params_;
  std::vector<bool> param_set_;
  mutable std::vector<BoundMemory> buffers_;  // a launch takes ownership of moved-in memory
  // The version of the memory that is set: changes with every Set, and copies share it. 0: a run has taken some
  // of the memory.
  mutable uint64_t version_ = 0;
  std::vector<Noted> mistakes_;
  std::optional<Key> key_;
  void* stream_ = nullptr;  // set by On
  std::shared_ptr<runtime::PendingBindings> pending_;  // for a step that is being declared: receives all that is set
};

}  // namespace penstock
