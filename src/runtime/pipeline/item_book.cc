#include "src/runtime/pipeline/item_book.h"

#include <utility>

namespace penstock::runtime {

void ItemLists::PushBack(List& list, int item) {
  links_[item] = {list.tail, -1};
  (list.tail < 0 ? list.head : links_[list.tail].next) = item;
  list.tail = item;
  ++list.size;
}

void ItemLists::PushFront(List& list, int item) {
  links_[item] = {-1, list.head};
  (list.head < 0 ? list.tail : links_[list.head].prev) = item;
  list.head = item;
  ++list.size;
}

void ItemLists::Remove(List& list, int item) {
  const Links links = links_[item];
  (links.prev < 0 ? list.head : links_[links.prev].next) = links.next;
  (links.next < 0 ? list.tail : links_[links.next].prev) = links.prev;
  --list.size;
}

int ItemLists::PopFront(List& list) {
  const int item = list.head;
  if (item >= 0) Remove(list, item);
  return item;
}

ItemBook::ItemBook(int items, std::vector<bool> in_order, Order order)
    : order_(order),
      in_order_(std::move(in_order)),
      entries_(static_cast<size_t>(items)),
      queue_links_(items),
      inside_links_(items),
      chain_links_(items),
      queues_(in_order_.size()),
      chains_(order == Order::kPerKey ? static_cast<size_t>(items) : 1) {
  for (int i = 0; i < items; ++i) queue_links_.PushBack(free_, i);
  if (order != Order::kPerKey) return;
  for (int c = items - 1; c >= 0; --c) free_chains_.push_back(c);
  chain_of_key_.reserve(static_cast<size_t>(items));
}

int ItemBook::Hold() {
  const int item = queue_links_.PopFront(free_);
  if (item >= 0) At(item).state = State::kHeld;
  return item;
}

void ItemBook::Submit(int item, uint64_t key, Batch* batch) {
  Entry& entry = At(item);
  entry.stage = 0;
  entry.begun = kNone;
  entry.key = key;
  entry.chain = ChainOf(key);
  if (entry.chain != kNone) chain_links_.PushBack(chains_[entry.chain], item);
  entry.batch = batch;
  ++BatchOf(item).inside;
  inside_links_.PushBack(inside_list_, item);
  ++open_;
  Enqueue(item);
}

int ItemBook::ChainOf(uint64_t key) {
  if (order_ == Order::kAsReady) return kNone;
  if (order_ == Order::kInOrder) return 0;
  const auto [at, is_new] = chain_of_key_.try_emplace(key, kNone);
  if (is_new) {
    at->second = free_chains_.back();
    free_chains_.pop_back();
  }
  return at->second;
}

void ItemBook::Enqueue(int item) {
  At(item).state = State::kWaiting;
  queue_links_.PushBack(queues_[At(item).stage], item);
}

// If an earlier item of the chain has begun the stage, it did so after all before it, unless one of those was put back.
bool ItemBook::MayBegin(int item, int stage) const {
  if (!in_order_[stage] || At(item).chain == kNone) return true;
  for (int p = chain_links_.prev(item); p >= 0; p = chain_links_.prev(p)) {
    if (At(p).begun >= stage) {
      if (put_back_ == 0) return true;
    } else if (At(p).state != State::kFinished) {
      return false;
    }
  }
  return true;
}

void ItemBook::PutBack(int item) {
  Entry& entry = At(item);
  entry.state = State::kWaiting;
  entry.begun = entry.stage - 1;
  entry.put_back = true;
  ++put_back_;
  queue_links_.PushFront(queues_[entry.stage], item);
}

void ItemBook::End(int item) {
  if (++At(item).stage < stages()) return Enqueue(item);
  Close(item);
}

void ItemBook::Finish(int item) {
  if (At(item).state == State::kWaiting) {
    queue_links_.Remove(queues_[At(item).stage], item);
  }
  Close(item);
}

void ItemBook::Close(int item) {
  At(item).state = State::kFinished;
  if (std::exchange(At(item).put_back, false)) --put_back_;
  --open_;
  if (At(item).chain != kNone) return Deliver(At(item).chain);
  BecomeReady(item);
}

void ItemBook::BecomeReady(int item) {
  At(item).state = State::kReady;
  queue_links_.PushBack(BatchOf(item).ready, item);
  ++ready_;
}

// Delivers the ended items at the head of the chain.
void ItemBook::Deliver(int chain) {
  ItemLists::List& list = chains_[chain];
  while (list.head >= 0 && At(list.head).state == State::kFinished) {
    const int item = list.head;
    LeaveChain(item);
    BecomeReady(item);
  }
}

void ItemBook::LeaveChain(int item) {
  const int chain = std::exchange(At(item).chain, kNone);
  ItemLists::List& list = chains_[chain];
  chain_links_.Remove(list, item);
  if (order_ != Order::kPerKey || list.size > 0) return;
  chain_of_key_.erase(At(item).key);
  free_chains_.push_back(chain);
}

int ItemBook::Take(Batch* batch) {
  Batch& from = batch == nullptr ? rest_ : *batch;
  const int item = queue_links_.PopFront(from.ready);
  if (item < 0) return kNone;
  --from.inside;
  --ready_;
  inside_links_.Remove(inside_list_, item);
  At(item).state = State::kTaken;
  return item;
}

void ItemBook::Dissolve(Batch& batch) {
  rest_.inside += batch.inside;
  for (int item = inside_list_.head; item >= 0; item = inside_links_.next(item)) {
    if (At(item).batch == &batch) At(item).batch = nullptr;
  }
  for (int item; (item = queue_links_.PopFront(batch.ready)) >= 0;) queue_links_.PushBack(rest_.ready, item);
  batch = {};
}

void ItemBook::Drop(int item) {
  Entry& entry = At(item);
  if (entry.state == State::kWaiting) {
    queue_links_.Remove(queues_[entry.stage], item);
    if (std::exchange(entry.put_back, false)) --put_back_;
    --open_;
  } else if (entry.state == State::kReady) {
    queue_links_.Remove(BatchOf(item).ready, item);
    --ready_;
  }
  --BatchOf(item).inside;
  entry.state = State::kTaken;
  inside_links_.Remove(inside_list_, item);
  if (entry.chain == kNone) return;
  const int chain = entry.chain;
  LeaveChain(item);
  Deliver(chain);
}

void ItemBook::Free(int item) {
  At(item).state = State::kFree;
  queue_links_.PushBack(free_, item);
}

}  // namespace penstock::runtime
