// ItemBook: where each item of a pipeline is, and which comes next: the window, the queue before each stage, the order
// in which items come out. A pure state machine: no thread, lock, clock or user code.
//
//   free -> held (being filled) -> waiting (before a stage) -> working (in it) -> waiting ... -> finished (ended, but
//   others come out before it) -> ready -> taken -> free
//
// Items are numbered from 0. Every call takes constant time, except Begin, which passes over waiting items that others
// must begin before, OldestIdle and OldestUnbegun, which pass over items that are unfit, and Dissolve. Only the
// constructor allocates.
//
// Order: under kInOrder all items form one *chain*; under kPerKey the items of each key form one, in the order of their
// submission; under kAsReady there is none. An item is ready after those before it in its chain have ended. An
// `in_order` stage begins an item after those before it in its chain have begun the stage, or have ended without doing
// so. Items of a *batch* are taken apart from the others; for all else batches do not matter.
//
// Threads: thread-compatible.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "penstock/pipeline.h"

namespace penstock::runtime {

// Doubly linked lists of the same items, each of which is in at most one of them.
class ItemLists {
 public:
  struct List {
    int head = -1, tail = -1, size = 0;
  };
  explicit ItemLists(int items) : links_(static_cast<size_t>(items)) {}
  void PushBack(List& list, int item);
  void PushFront(List& list, int item);
  void Remove(List& list, int item);
  int PopFront(List& list);  // -1: the list is empty
  int next(int item) const { return links_[item].next; }
  int prev(int item) const { return links_[item].prev; }

 private:
  struct Links {
    int prev = -1, next = -1;
  };
  std::vector<Links> links_;
};

class ItemBook {
 public:
  static constexpr int kNone = -1;
  enum class State : uint8_t { kFree, kHeld, kWaiting, kWorking, kFinished, kReady, kTaken };
  // Items that are taken together. It must outlive those that are inside, or be dissolved.
  struct Batch {
    ItemLists::List ready{};
    int inside = 0;  // submitted and not taken
  };

  // There is one stage for each entry of `in_order`, at least one.
  ItemBook(int items, std::vector<bool> in_order, Order order);

  // A free item, held from now on; kNone if there is none.
  int Hold();
  // A held item joins the end of the first stage's queue, and the batch. Null: it is of no batch.
  void Submit(int item, uint64_t key, Batch* batch = nullptr);
  // The first item that waits for the stage, may begin it, and is `fit` for it; kNone if there is none.
  template <class Fit>
  int Begin(int stage, Fit fit) {
    ItemLists::List& queue = queues_[stage];
    for (int item = queue.head; item >= 0; item = queue_links_.next(item)) {
      if (!MayBegin(item, stage) || !fit(item)) continue;
      queue_links_.Remove(queue, item);
      At(item).state = State::kWorking;
      At(item).begun = stage;
      if (std::exchange(At(item).put_back, false)) --put_back_;
      return item;
    }
    return kNone;
  }
  // Returns a working item to the front of its stage's queue, as if it had not begun the stage. In an in-order stage
  // the later items of its chain wait for it, although some may have begun.
  void PutBack(int item);
  // A working item has passed its stage.
  void End(int item);
  // A waiting or working item goes no further.
  void Finish(int item);
  // The next item of the batch, or of none, that comes out; kNone if there is none.
  int Take(Batch* batch = nullptr);
  // The batch's items that are inside are of no batch any more.
  void Dissolve(Batch& batch);
  // The oldest item that waits, or has ended and not been taken, and is `fit`; kNone if there is none. Drop removes it
  // from the order.
  template <class Fit>
  int OldestIdle(Fit fit) const {
    for (int item = inside_list_.head; item >= 0; item = inside_links_.next(item)) {
      if (At(item).state != State::kWorking && fit(item)) return item;
    }
    return kNone;
  }
  // The same among the items that wait and have begun no stage, or were put back in the first one.
  template <class Fit>
  int OldestUnbegun(Fit fit) const {
    return OldestIdle(
        [&](int item) { return At(item).state == State::kWaiting && At(item).begun == kNone && fit(item); });
  }
  void Drop(int item);
  // Frees an item that is held or taken.
  void Free(int item);

  State state(int item) const { return entries_[item].state; }
  int stage(int item) const { return entries_[item].stage; }  // if waiting or working
  Batch* batch(int item) const { return entries_[item].batch; }  // if inside; null: none
  int items() const { return static_cast<int>(entries_.size()); }
  int stages() const { return static_cast<int>(queues_.size()); }
  int waiting(int stage) const { return queues_[stage].size; }
  int first_waiting(int stage) const { return queues_[stage].head; }
  int inside() const { return inside_list_.size; }  // submitted and not taken
  int ready() const { return ready_; }
  int open() const { return open_; }  // waiting or working

 private:
  struct Entry {
    State state = State::kFree;
    int stage = 0;
    int begun = kNone;  // the last stage that it has begun
    bool put_back = false;  // it was put back and has waited since
    int chain = kNone;
    uint64_t key = 0;
    Batch* batch = nullptr;
  };

  Entry& At(int item) { return entries_[item]; }
  const Entry& At(int item) const { return entries_[item]; }
  bool MayBegin(int item, int stage) const;
  int ChainOf(uint64_t key);
  void Enqueue(int item);
  Batch& BatchOf(int item) { return At(item).batch == nullptr ? rest_ : *At(item).batch; }
  void BecomeReady(int item);
  void Close(int item);  // the item has ended or is dropped
  void Deliver(int chain);
  void LeaveChain(int item);

  const Order order_;
  const std::vector<bool> in_order_;
  std::vector<Entry> entries_;
  ItemLists queue_links_;  // links of free_, queues_ and the batches' ready items
  ItemLists inside_links_;
  ItemLists chain_links_;
  ItemLists::List free_, inside_list_;
  Batch rest_;  // the items of no batch
  std::vector<ItemLists::List> queues_;  // one for each stage
  std::vector<ItemLists::List> chains_;
  std::vector<int> free_chains_;
  absl::flat_hash_map<uint64_t, int> chain_of_key_;
  int open_ = 0;
  int ready_ = 0;
  int put_back_ = 0;  // items that were put back
};

}  // namespace penstock::runtime
