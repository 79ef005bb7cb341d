// ItemBook: where each item of a pipeline is, and which comes next: places, the queue in front of each stage, the order
// in which items come out. A pure state machine: no thread, lock, clock or user code.
//
//   free -> held (being filled) -> waiting (in front of a stage) -> working (in it) -> waiting ... -> finished (ended,
//   others come out before it) -> ready -> taken -> free
//
// Items are numbered from 0. Everything takes constant time, but for Begin, which passes over waiting items that others
// must begin before, and OldestIdle, which passes over those that are being worked on. Nothing is allocated but to make
// it.
//
// Order: under kInOrder all items are one *chain*, under kPerKey those of a key are, in the order of their submission;
// under kAsReady there is none. An item comes out when those before it in its chain have. A stage that is `in_order`
// begins an item when those before it in its chain have begun the stage, or ended without.
//
// Threads: thread-compatible.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "penstock/pipeline.h"

namespace penstock::runtime {

// Doubly linked lists of the same items, each of which is in one of them at most.
class ItemLists {
 public:
  struct List {
    int head = -1, tail = -1, size = 0;
  };
  explicit ItemLists(int items) : links_(static_cast<size_t>(items)) {}
  void PushBack(List& list, int item);
  void PushFront(List& list, int item);
  void Remove(List& list, int item);
  int PopFront(List& list);  // -1: it is empty
  int next(int item) const { return links_[static_cast<size_t>(item)].next; }
  int prev(int item) const { return links_[static_cast<size_t>(item)].prev; }

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

  // As many stages as `in_order` has entries, at least one.
  ItemBook(int items, std::vector<bool> in_order, Order order);

  // A free item, held from now on; kNone: there is none.
  int Hold();
  // A held item goes in front of the first stage, behind all that did before.
  void Submit(int item, uint64_t key);
  // The first item that waits for the stage, may begin it, and is `fit` for it; kNone: there is none.
  template <class Fit>
  int Begin(int stage, Fit fit) {
    ItemLists::List& queue = queues_[static_cast<size_t>(stage)];
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
  // One that is working: back to the front of its stage's queue, as if it had not begun the stage. Where that begins in
  // order those behind it wait for it, though others of them may have begun.
  void PutBack(int item);
  // One that is working has been through its stage.
  void End(int item);
  // One that is waiting or working goes no further.
  void Finish(int item);
  // The next one that comes out; kNone: there is none.
  int Take();
  // The oldest item that waits, or has ended and not been taken, and is `fit`; kNone: there is none. Drop takes it out
  // of the order.
  template <class Fit>
  int OldestIdle(Fit fit) const {
    for (int item = inside_list_.head; item >= 0; item = inside_links_.next(item)) {
      if (At(item).state != State::kWorking && fit(item)) return item;
    }
    return kNone;
  }
  void Drop(int item);
  // One that is held or taken.
  void Free(int item);

  State state(int item) const { return entries_[static_cast<size_t>(item)].state; }
  int stage(int item) const { return entries_[static_cast<size_t>(item)].stage; }  // of one waiting or working
  int items() const { return static_cast<int>(entries_.size()); }
  int stages() const { return static_cast<int>(queues_.size()); }
  int waiting(int stage) const { return queues_[static_cast<size_t>(stage)].size; }
  int first_waiting(int stage) const { return queues_[static_cast<size_t>(stage)].head; }
  int inside() const { return inside_list_.size; }  // submitted and not taken
  int ready() const { return ready_.size; }
  int open() const { return open_; }  // waiting or working

 private:
  struct Entry {
    State state = State::kFree;
    int stage = 0;
    int begun = -1;  // the last stage it has begun
    bool put_back = false;  // and waits since
    int chain = kNone;
    uint64_t key = 0;
  };

  Entry& At(int item) { return entries_[static_cast<size_t>(item)]; }
  const Entry& At(int item) const { return entries_[static_cast<size_t>(item)]; }
  bool MayBegin(int item, int stage) const;
  int ChainOf(uint64_t key);
  void Enqueue(int item);
  void Close(int item);  // it has ended, or is dropped
  void Deliver(int chain);
  void LeaveChain(int item);

  const Order order_;
  const std::vector<bool> in_order_;
  std::vector<Entry> entries_;
  ItemLists queue_links_;  // of free_, queues_ and ready_
  ItemLists inside_links_;
  ItemLists chain_links_;
  ItemLists::List free_, ready_, inside_list_;
  std::vector<ItemLists::List> queues_;  // a stage each
  std::vector<ItemLists::List> chains_;
  std::vector<int> free_chains_;
  absl::flat_hash_map<uint64_t, int> chain_of_key_;
  int open_ = 0;
  int put_back_ = 0;  // items
};

}  // namespace penstock::runtime
