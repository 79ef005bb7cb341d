// Bindings: the values and memory one launch uses. Made by Executable::bindings, reused from launch to launch.
//
//   exec.Launch(io.Set(a, 2.f).Set(x, hx).Set(y, hy));
//
// Launch copies what it needs, so a Bindings may be changed as soon as Launch returns. What was set stays set. A
// mistake in Set is kept and returned by Launch, naming the parameter or buffer, until that parameter or buffer is set
// rightly. A handle of another graph names neither: that mistake stays (ClearBuffers forgets it for a buffer).
//
// Ownership: borrows bound memory, which must outlive the run unless a keep-alive is given.
// Threads:   thread-compatible: one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/detail/arguments.h"
#include "penstock/export.h"
#include "penstock/host_buffer.h"
#include "penstock/model.h"

namespace penstock {

namespace runtime {
class ExecutableCore;
}

// Memory given for one buffer.
struct BoundMemory {
  void* data = nullptr;
  int64_t elements = -1;  // -1: nothing bound
  bool read_only = false;  // bound from const memory: refused for Output and InOut
  std::shared_ptr<const void> keep_alive;
};

class PENSTOCK_EXPORT Bindings {
 public:
  Bindings() = default;  // of no executable: takes everything, and Launch refuses it

  template <class T>
  Bindings& Set(ParamHandle<T> param, std::type_identity_t<T> value) {
    SetParam(param.graph(), param.index(), detail::TypeOf<T>(), &value);
    return *this;
  }

  // Any contiguous range of T: a span, vector, array. `keep_alive` is held until the run has ended, and by this object
  // until the buffer is set again.
  template <class T, std::ranges::contiguous_range R>
    requires std::is_same_v<std::ranges::range_value_t<R>, T> &&
             (!std::is_same_v<std::remove_cvref_t<R>, HostBuffer<T>>)
  Bindings& Set(BufferHandle<T> buffer, R&& memory, std::shared_ptr<const void> keep_alive = nullptr) {
    auto* data = std::ranges::data(memory);
    SetBuffer(buffer.graph(), buffer.index(), detail::TypeOf<T>(),
              {const_cast<T*>(data), static_cast<int64_t>(std::ranges::size(memory)),
               std::is_const_v<std::remove_pointer_t<decltype(data)>>, std::move(keep_alive)});
    return *this;
  }
  // Pool memory; its block is kept alive. (A HostBuffer is a range too, which the overload above must not take.)
  template <class T>
  Bindings& Set(BufferHandle<T> buffer, const HostBuffer<T>& memory) {
    SetBuffer(buffer.graph(), buffer.index(), detail::TypeOf<T>(),
              {memory.data(), memory.size(), false, memory.block()});
    return *this;
  }
  // Forgets bound memory, keep-alives and mistakes with buffers; parameters stay.
  void ClearBuffers();

 private:
  friend class runtime::ExecutableCore;
  explicit Bindings(std::shared_ptr<const Model> model);

  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory);
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
  std::vector<BoundMemory> buffers_;
  std::vector<Noted> mistakes_;
};

}  // namespace penstock
