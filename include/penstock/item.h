// Item: one thing on its way through a pipeline, in the hands of one party at a time: the producer that fills it, a
// stage, or the consumer at the end.
//
// An item has a value of the pipeline's type, an id and a key for its user, and bindings for each executable it
// passes. If an executable has kSlot buffers, the item also holds a slot from its beginning to its end, to be filled
// and read in place.
//
//   auto frame = pipe.TryAcquire(ps::Key(camera));          // the producer
//   frame->Set(h, height).Set(w, width);
//   camera.ReadInto(frame->span(raw));
//   frame->Submit({.id = number, .deadline = 40ms});
//   ...
//   while (auto done = pipe.Pop()) Show(done.key(), done.span(edges));
//
// Ownership: move-only. When an item is dropped that was popped, or acquired but not submitted, it returns to its
//            pipeline and frees its window slot and its slot. It may outlive the pipeline's handle.
// Threads:   thread-compatible.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
#include "penstock/detail/internals.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"
#include "penstock/key.h"

namespace penstock {

namespace runtime {
class PipelineCore;
struct PipelineItem;
}  // namespace runtime

// Lets the pipeline choose the device of an item.
PENSTOCK_HIDDEN inline constexpr int kAnyDevice = -1;

// Options for one item, given when it is submitted.
struct ItemOptions {
  uint64_t id = 0;  // for the user's own use
  // The device for its runs, as an index of the runtime's list. kAnyDevice: the device that has the States of
  // its key, or the one that will be free first. InvalidArgument: no stage has that device, or the item's slot
  // is on another one.
  int device = kAnyDevice;
  // An item that has not ended by then ends with DeadlineExceeded, wherever it is; its run is abandoned (run.h).
  Deadline deadline{};
};

namespace detail {
// The arguments that Bindings::Set takes for a buffer.
template <class T, class... M>
concept Settable =
    requires(Bindings& io, BufferHandle<T> buffer, M&&... memory) { io.Set(buffer, std::forward<M>(memory)...); };
}  // namespace detail

// An Item with the type of its value erased.
class PENSTOCK_EXPORT AnyItem {
 public:
  AnyItem() : status_(absl::FailedPreconditionError("this Item was default-constructed or moved from")) {}
  AnyItem(AnyItem&& other) noexcept
      : core_(std::move(other.core_)), item_(std::exchange(other.item_, nullptr)), status_(std::move(other.status_)) {}
  AnyItem& operator=(AnyItem other) noexcept {
    std::swap(core_, other.core_);
    std::swap(item_, other.item_);
    std::swap(status_, other.status_);
    return *this;
  }
  ~AnyItem();

  // Whether there is an item. If not, status() says why.
  explicit operator bool() const { return item_ != nullptr; }

  // How it ended: OK, or its first failure. OK until then.
  absl::Status status() const;
  // The id given in ItemOptions; 0 before Submit.
  uint64_t id() const;
  // The key given to Push or Acquire.
  Key key() const;
  // The device of its current or last run, as an index of the runtime's list; -1 before its first run.
  int device() const;

  // Sets what its run will use (bindings.h) for the executable whose graph made the handle. Allowed until the run
  // begins. Bound memory must live as long as the item; mistakes become the item's status.
  template <class T>
  PENSTOCK_HIDDEN AnyItem& Set(ParamHandle<T> param, std::type_identity_t<T> value) & {
    BindingsOf(param.graph()).Set(param, value);
    return *this;
  }
  template <class T>
  PENSTOCK_HIDDEN AnyItem Set(ParamHandle<T> param, std::type_identity_t<T> value) && {
    return std::move(Set(param, value));
  }
  template <class T, class... M>
    requires detail::Settable<T, M...>
  PENSTOCK_HIDDEN AnyItem& Set(BufferHandle<T> buffer, M&&... memory) & {
    BindingsOf(buffer.graph()).Set(buffer, std::forward<M>(memory)...);
    return *this;
  }
  template <class T, class... M>
    requires detail::Settable<T, M...>
  PENSTOCK_HIDDEN AnyItem Set(BufferHandle<T> buffer, M&&... memory) && {
    return std::move(Set(buffer, std::forward<M>(memory)...));
  }

  // Whether its run has a value for the parameter, or memory for the buffer, that was set here (Bindings::Has). When
  // the run has ended well, what was set for it is forgotten.
  template <class T>
  PENSTOCK_HIDDEN bool Has(ParamHandle<T> param) const {
    return BindingsOf(param.graph()).Has(param);
  }
  template <class T>
  PENSTOCK_HIDDEN bool Has(BufferHandle<T> buffer) const {
    return BindingsOf(buffer.graph()).Has(buffer);
  }

  // The memory of a buffer declared kSlot, as in lease.h; empty for any other buffer. Not available on a temporary,
  // since the memory belongs to the item.
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const& {
    const auto [data, elements] = Find(buffer.graph(), buffer.index(), detail::TypeOf<T>());
    return {static_cast<T*>(data), elements};
  }
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const&& = delete;

  // How many elements of an Output with a CountOf (graph.h) count in the item's last run of its graph, as Run::count.
  // InvalidArgument: no such Output of a graph that the item has passed.
  template <class T>
  PENSTOCK_HIDDEN absl::StatusOr<int64_t> count(BufferHandle<T> output) const {
    return Count(output.graph(), output.index());
  }

  // Hands an acquired item to the pipeline, and leaves this object empty. FailedPrecondition: it was not acquired, or
  // the pipeline has been stopped or is gone; InvalidArgument or ResourceExhausted: it cannot be on the device named,
  // or no more States are left for its key. After an error the item stays here. Allowed inside stages and callbacks.
  absl::Status Submit(const ItemOptions& options = {});

 protected:
  void* value() const;

 private:
  friend class detail::Internals<AnyItem>;
  template <class T>
  friend class Pipeline;
  explicit AnyItem(absl::Status why) : status_(std::move(why)) {}
  // `core` null: the item is owned elsewhere.
  AnyItem(std::shared_ptr<runtime::PipelineCore> core, runtime::PipelineItem* item)
      : core_(std::move(core)), item_(item) {}
  template <class T, class... A>
  PENSTOCK_HIDDEN T& Emplace(A&&... args) {
    T* const made = new (value()) T(std::forward<A>(args)...);
    MarkValue();
    return *made;
  }
  void MarkValue();
  void SetKey(Key key);
  Bindings& BindingsOf(uint32_t graph) const;
  std::pair<void*, size_t> Find(uint32_t graph, int32_t index, TypeInfo type) const;
  absl::StatusOr<int64_t> Count(uint32_t graph, int32_t output) const;

  std::shared_ptr<runtime::PipelineCore> core_;
  runtime::PipelineItem* item_ = nullptr;
  absl::Status status_;  // why there is no item
};

// The value type for users who keep everything in slots, or elsewhere by id.
struct NoValue {};

template <class T = NoValue>
class Item : public AnyItem {
 public:
  Item() = default;
  // Wraps an item of a pipeline whose values have type T.
  explicit Item(AnyItem item) : AnyItem(std::move(item)) {}

  // The value stays at one address while the item is in the pipeline, so runs may use memory inside it. The item must
  // not be empty. On a temporary item the value is moved out.
  T& value() const& { return *static_cast<T*>(AnyItem::value()); }
  T value() && { return std::move(value()); }
  T* operator->() const { return &value(); }
};

}  // namespace penstock
