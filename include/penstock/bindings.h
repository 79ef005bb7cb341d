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

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

#include "penstock/detail/arguments.h"
#include "penstock/detail/bound_values.h"
#include "penstock/detail/internals.h"
#include "penstock/detail/model.h"
#include "penstock/device_buffer.h"
#include "penstock/export.h"
#include "penstock/host_buffer.h"
#include "penstock/key.h"
#include "penstock/native.h"
#include "penstock/run.h"

namespace penstock {

namespace runtime {
class PendingBindings;
}

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
// A named variable.
template <class M, class T>
concept VariableOf = std::is_same_v<M, T&> || std::is_same_v<M, const T&>;
template <class M, class T>
concept MemoryOf = BorrowedRangeOf<M, T> || VariableOf<M, T> || std::is_same_v<std::remove_cvref_t<M>, HostBuffer<T>> ||
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
  // Takes the one element of a buffer, a variable that outlives this call: `float sum; io.Set(total, sum)`.
  template <class T, detail::VariableOf<T> V>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, V&& variable) & {
    return Set(buffer, std::span(std::addressof(variable), 1), nullptr);
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
  // `run`, and fails if `run` fails. Both must belong to one runtime. Each call replaces what an earlier one named for
  // the buffer, runs and events, and so does Set: name several in one call, or none to wait for nothing.
  //
  //   a.Launch(ia.Set(out, middle));  b.Launch(ib.Set(in, middle).After(in, run_of_a));
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, const Run& run) & {
    return After(buffer, std::span(&run, 1));
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, const Run& run) && {
    return std::move(After(buffer, run));
  }
  // Waits for the work that the event captures at the time of Launch. It must have been recorded by then.
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, NativeEvent event) & {
    return After(buffer, std::span<const Run>(), std::span(&event, 1));
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, NativeEvent event) && {
    return std::move(After(buffer, event));
  }
  // Waits for all of these: After(in, {run, other_run}), or a vector of runs.
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, std::span<const Run> runs,
                                  std::span<const NativeEvent> events = {}) & {
    SetPredecessors(buffer.graph(), buffer.index(), detail::TypeOf<T>(), runs, events);
    return *this;
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, std::span<const Run> runs,
                                 std::span<const NativeEvent> events = {}) && {
    return std::move(After(buffer, runs, events));
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, std::initializer_list<Run> runs,
                                  std::initializer_list<NativeEvent> events = {}) & {
    return After(buffer, std::span(runs.begin(), runs.size()), std::span(events.begin(), events.size()));
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, std::initializer_list<Run> runs,
                                 std::initializer_list<NativeEvent> events = {}) && {
    return std::move(After(buffer, runs, events));
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

  // Whether the next launch has a value for the parameter, or memory for the buffer: it was set, without a mistake, and
  // neither forgotten nor moved into a run. False for handles of other graphs. In a step that a GraphCache declares: by
  // that step.
  template <class T>
  PENSTOCK_HIDDEN bool Has(ParamHandle<T> param) const {
    return Has(/*of_buffer=*/false, param.graph(), param.index());
  }
  template <class T>
  PENSTOCK_HIDDEN bool Has(BufferHandle<T> buffer) const {
    return Has(/*of_buffer=*/true, buffer.graph(), buffer.index());
  }

  // Forgets bound memory, keep-alives and mistakes with buffers; keeps parameters and the stream.
  void ClearBuffers();

 private:
  friend class detail::Internals<Bindings>;
  explicit Bindings(std::shared_ptr<const Model> model) : values_(std::move(model)) {}

  bool Has(bool of_buffer, uint32_t graph, int32_t index) const;
  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory);
  void SetPredecessors(uint32_t graph, int32_t index, TypeInfo type, std::span<const Run> runs,
                       std::span<const NativeEvent> events);
  // Calls `set` with what receives all that is set.
  template <class F>
  PENSTOCK_HIDDEN void To(F set);

  detail::BoundValues values_;
  std::shared_ptr<runtime::PendingBindings> pending_;  // for a step that is being declared: receives all instead
};

}  // namespace penstock
