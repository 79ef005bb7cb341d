// Lifetimes: the steps that use each instance, and what the lane clocks know to be done before its first use and
// after its last.
//
// Threads: immutable once made; borrows the draft, whose clocks must be filled in.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/passes/passes.h"

namespace penstock::graph {

class Lifetimes {
 public:
  explicit Lifetimes(const Draft& draft);

  // All instances that are used, ordered by first and by last user.
  const std::vector<int32_t>& by_first() const { return by_first_; }
  const std::vector<int32_t>& by_last() const { return by_last_; }
  // The first and the last user in submission order; -1: none.
  int32_t first(int32_t instance) const { return lives_[instance].first; }
  int32_t last(int32_t instance) const { return lives_[instance].last; }

  // The instance's bytes are free when all its users are done: the last one, and the list `others`. An instance with a
  // user outside all columns is never known to be free.
  Tick end(int32_t instance) const { return lives_[instance].end; }
  int32_t others(int32_t instance) const { return lives_[instance].others; }
  bool AreDone(int32_t others, const int32_t* done) const {
    for (; others >= 0; others = others_[others].next) {
      if (!others_[others].tick.DoneIn(done)) return false;
    }
    return true;
  }
  bool never_ends(int32_t instance) const { return others(instance) == kNever; }
  // Whether a user does not come after the first one.
  bool has_other_starts(int32_t instance) const { return lives_[instance].starts >= 0; }
  // What is done by the end of every user, as a row of clocks: that of a step, or `scratch`. For work submitted before
  // the first user, this is what is done before any user starts.
  const int32_t* DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const;

 private:
  static constexpr int32_t kNone = -1, kNever = -2;
  struct Life {
    int32_t first = kNone, last = kNone;
    Tick begin, end;  // of the first and last user
    int32_t others = kNone;  // users except the last, and except the first if another comes after it
    int32_t starts = kNone;  // users that do not come after the first
  };
  struct Other {
    Tick tick;
    int32_t next;
  };
  struct Start {
    int32_t step, next;
  };

  // Prepends to a list in `items`.
  template <class Item, class Value>
  static void Add(std::vector<Item>& items, int32_t& list, const Value& value) {
    items.push_back({value, list});
    list = static_cast<int32_t>(items.size()) - 1;
  }
  void AddUser(int32_t instance, int32_t step);
  void SortByLast();

  const Draft& draft_;
  std::vector<Life> lives_;
  std::vector<int32_t> by_first_, by_last_;
  std::vector<Other> others_;  // lists
  std::vector<Start> starts_;
};

// Calls `f` with each instance that a step uses, possibly twice.
template <class F>
void ForEachInstance(const Draft& draft, const Step& step, F&& f) {
  if (step.decl < 0) f(step.src), f(step.dst);
  for (int32_t u = step.first_use; u < step.first_use + step.uses; ++u) {
    f(draft.uses[u].instance);
  }
}

}  // namespace penstock::graph
