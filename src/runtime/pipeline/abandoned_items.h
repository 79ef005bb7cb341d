// AbandonedItems: items whose runs were abandoned at a deadline but are still in flight. When these runs have ended,
// the slots that a stage holds for the item are freed or, if the item has been handed back meanwhile, the whole item.
//
// Threads: thread-compatible; a pipeline guards it by its lock.
#pragma once

#include <algorithm>
#include <vector>

namespace penstock::runtime {

class AbandonedItems {
 public:
  static constexpr int kWholeItem = -1;
  struct Entry {
    int item, stage;  // kWholeItem: the item has been handed back
  };

  void Reserve(size_t items) { entries_.reserve(items); }
  int size() const { return static_cast<int>(entries_.size()); }
  void Add(int item, int stage) { entries_.push_back({item, stage}); }
  bool Has(int item) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.item == item; });
  }
  void RemoveItem(int item) {
    std::erase_if(entries_, [&](const Entry& e) { return e.item == item; });
  }
  // Removes the entries for which `drained` returns true.
  template <class Drained>
  void RemoveDrained(Drained drained) {
    std::erase_if(entries_, drained);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace penstock::runtime
