// Bindings: the values and memory one launch uses. Made by Executable::bindings, reused from launch to launch.
//
//   exec.Launch(io.Set(a, 2.f).Set(x, hx).Set(y, hy));
//
// Launch copies what it needs, so a Bindings may be changed as soon as Launch returns. What was set stays set. A
// mistake in Set is kept and returned by Launch, naming the parameter or buffer, until that parameter or buffer is set
// rightly. A handle of another graph names neither: that mistake stays (ClearBuffers forgets it for a buffer).
//
// A launch is cheaper where no buffer has been set since the last one, not even to the same memory, and no shape
// depends on parameters: then only memory that was pinned, or of a device, is looked at again, and memory that the
// application has pinned meanwhile may be copied as if it had not.
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
class PipelineCore;
class GraphCacheCore;
}  // namespace runtime

// Memory given for one buffer.
struct BoundMemory {
  void* data = nullptr;
  int64_t elements = -1;  // -1: nothing bound
  bool read_only = false;  // bound from const memory: refused for Output and InOut
  bool once = false;  // moved in: the next run takes it over
  bool held = false;  // `keep_alive` has the memory itself, which stays of the kind it is
  std::shared_ptr<const void> keep_alive{};  // held until the run has ended
  std::vector<Run> runs_ahead{};  // After
  std::vector<void*> events_ahead{};  // After, for events
};

// An event of the platform's own, a cudaEvent_t: Native (cuda.h) makes one.
struct NativeEvent {
  void* handle = nullptr;
};

// A stream of the platform's own, a cudaStream_t: Native (cuda.h) makes one.
struct NativeStream {
  void* handle = nullptr;
};

namespace detail {
// What may be bound without a keep-alive: a range that an lvalue names, or whose elements outlive it, as those of a
// span do. A temporary vector would be gone before the launch.
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

// Setters return the object itself, or, of a temporary, all of it by value.
class PENSTOCK_EXPORT Bindings {
 public:
  Bindings() = default;  // of no executable: takes everything, and Launch refuses it

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

  // Any contiguous range of T that outlives this call: a span, or a vector or array that has a name; of device memory
  // for a buffer declared kDevice. `keep_alive`, with which any view will do, is held until the run has ended, and by
  // this object until the buffer is set again.
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
  // Pool memory; its block is kept alive. (A HostBuffer is a range too, which the overload above must not take.)
  template <class T>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, const HostBuffer<T>& memory) & {
    SetBuffer(buffer.graph(), buffer.index(), detail::TypeOf<T>(),
              {.data = memory.data(), .elements = memory.size(), .held = true, .keep_alive = memory.block()});
    return *this;
  }
  // Moved into the next run, which gives it back to the pool when it has ended; launches after that need another. One
  // that fails leaves it here, but where the run was abandoned (On).
  template <class T>
  PENSTOCK_HIDDEN Bindings& Set(BufferHandle<T> buffer, HostBuffer<T>&& memory) & {
    const HostBuffer<T> taken = std::move(memory);
    SetBuffer(
        buffer.graph(), buffer.index(), detail::TypeOf<T>(),
        {.data = taken.data(), .elements = taken.size(), .once = true, .held = true, .keep_alive = taken.block()});
    return *this;
  }
  // Device memory of a runtime's; kept alive.
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

  // The run touches the memory set for `buffer`, declared kDevice, only when `run`'s work on devices is done: without a
  // host thread between them, and while it does all else that need not wait. It ends no sooner than `run`, and fails if
  // that fails. `run` is one of the same runtime. Several may be named; Set forgets them.
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
  // Only when the event, as it stands at Launch, is complete. It must be recorded by then.
  template <class T>
  PENSTOCK_HIDDEN Bindings& After(BufferHandle<T> buffer, NativeEvent event) & {
    AddPredecessor(buffer.graph(), buffer.index(), detail::TypeOf<T>(), nullptr, event.handle);
    return *this;
  }
  template <class T>
  PENSTOCK_HIDDEN Bindings After(BufferHandle<T> buffer, NativeEvent event) && {
    return std::move(After(buffer, event));
  }

  // Whose States a launch uses of those the graph declares by key (Graph::KeyedState). In a pipeline an item's key is
  // set.
  Bindings& SetKey(Key key) &;
  Bindings SetKey(Key key) && { return std::move(SetKey(key)); }

  // Launches are ordered with a stream of the application's from now on: the run begins when what has been submitted
  // there before is done, and what is submitted there when Launch has returned begins when the run is done. Launch
  // returns when all of the run has been submitted, without waiting for any of it, but for Host nodes that no kernel
  // asks for and memory that is not pinned: since a stream cannot wait for host threads, those have ended then. Where
  // the run is abandoned before, Launch returns its status. The stream is of a device of the plan's, and captures
  // nothing. NativeStream() ends it.
  Bindings& On(NativeStream stream) &;
  Bindings On(NativeStream stream) && { return std::move(On(stream)); }

  // Forgets bound memory, keep-alives and mistakes with buffers; parameters stay, and so does the stream.
  void ClearBuffers();

 private:
  friend class runtime::ExecutableCore;
  friend class runtime::LaunchBinder;
  friend class runtime::ExecutableSet;
  friend class runtime::PendingBindings;
  friend class runtime::PipelineCore;
  friend class runtime::GraphCacheCore;
  explicit Bindings(std::shared_ptr<const Model> model);

  void Reset();  // forgets all that was set
  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory);
  void AddPredecessor(uint32_t graph, int32_t index, TypeInfo type, const Run* run, void* event);
  bool CheckBuffer(const char* call, uint32_t graph, int32_t index, TypeInfo type);
  // A mistake, by what it is about; index -1: a handle of another graph.
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
  mutable std::vector<BoundMemory> buffers_;  // a launch takes over what was moved in
  // A number for the memory that is set: another one when any is, the same in copies. 0: some was taken over.
  mutable uint64_t version_ = 0;
  std::vector<Noted> mistakes_;
  std::optional<Key> key_;
  void* stream_ = nullptr;  // On
  std::shared_ptr<runtime::PendingBindings> pending_;  // of a step that is being declared: takes all that is set
};

}  // namespace penstock
