// Item: one thing on its way through a pipeline, in the hands of one party at a time: who fills it, a stage, who takes
// it out at the end.
//
// An item has a value of the pipeline's type, an id and a key for its user, bindings for each executable it passes,
// and, of executables with kSlot buffers, the slot itself from its beginning to its end: it is filled and read in
// place.
//
//   auto frame = pipe.TryAcquire(ps::Key(camera));          // who fills it
//   frame->Set(h, height).Set(w, width);
//   camera.ReadInto(frame->span(raw));
//   frame->Submit({.id = number, .deadline = 40ms});
//   ...
//   while (auto done = pipe.Pop()) Show(done.key(), done.span(edges));
//
// Ownership: moves only. One that was acquired and not submitted, or popped, goes back to its pipeline when it is
//            dropped, and its place is free again, slot and all. It may outlive the pipeline's handle.
// Threads:   thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "penstock/bindings.h"
#include "penstock/deadline.h"
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
  // The device its runs are to be on, as an index of the runtime's list. kAnyDevice: where its key has its States, or
  // that will be free first. InvalidArgument: none of the stages' devices, or not that of the slot the item has.
  int device = kAnyDevice;
  // An item that has not ended by then ends with DeadlineExceeded, wherever it is; its run is abandoned (run.h).
  Deadline deadline{};
};

namespace detail {
// What Bindings::Set takes for a buffer.
template <class T, class... M>
concept Settable =
    requires(Bindings& io, BufferHandle<T> buffer, M&&... memory) { io.Set(buffer, std::forward<M>(memory)...); };
}  // namespace detail

// An Item whose value's type is erased.
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

  // Whether there is an item. Where there is none, status() says why.
  explicit operator bool() const { return item_ != nullptr; }

  // How it ended: OK, or its first failure. OK before.
  absl::Status status() const;
  // The id given in ItemOptions; 0 before Submit.
  uint64_t id() const;
  // The key given to Push or Acquire.
  Key key() const;
  // The device its run is on or was on last, as an index of the runtime's list; -1 before.
  int device() const;

  // Sets what its run will use (bindings.h), of the executable whose graph has made the handle. Until the run begins;
  // what is bound must stay as long as the item, and mistakes become its status.
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

  // The memory of a buffer declared kSlot, as in lease.h. Empty for any other. The item has it, so a temporary one
  // gives none away.
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const& {
    const auto [data, elements] = Find(buffer.graph(), buffer.index(), detail::TypeOf<T>());
    return {static_cast<T*>(data), elements};
  }
  template <class T>
  PENSTOCK_HIDDEN std::span<T> span(BufferHandle<T> buffer) const&& = delete;

  // Hands an acquired item to the pipeline; from then on it is empty. FailedPrecondition: it was not acquired, or the
  // pipeline has been stopped or is gone; InvalidArgument or ResourceExhausted: it cannot be on the device named, or
  // its key can have no more States. Then it stays as it is. Allowed inside stages and callbacks.
  absl::Status Submit(const ItemOptions& options = {});

 protected:
  void* value() const;

 private:
  friend class runtime::PipelineCore;
  template <class T>
  friend class Pipeline;
  explicit AnyItem(absl::Status why) : status_(std::move(why)) {}
  // `core` null: somebody else owns it.
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
  Bindings& BindingsOf(uint32_t graph);
  std::pair<void*, size_t> Find(uint32_t graph, int32_t index, TypeInfo type) const;

  std::shared_ptr<runtime::PipelineCore> core_;
  runtime::PipelineItem* item_ = nullptr;
  absl::Status status_;  // of none
};

// What items have for a value whose users keep everything in slots, or under ids.
struct NoValue {};

template <class T = NoValue>
class Item : public AnyItem {
 public:
  Item() = default;
  // Wraps an item of a pipeline whose values have type T.
  explicit Item(AnyItem item) : AnyItem(std::move(item)) {}

  // Stays at one address while the item is in the pipeline, so runs may use memory inside it. There is one. That of a
  // temporary item is moved out.
  T& value() const& { return *static_cast<T*>(AnyItem::value()); }
  T value() && { return std::move(value()); }
  T* operator->() const { return &value(); }
};

}  // namespace penstock
