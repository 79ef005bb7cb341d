// Lifetimes: the steps that use each instance, and what the lane clocks know to be done before its first use and
// after its last.
//
// Threads: immutable once made; borrows the stages.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/passes/passes.h"

namespace penstock::graph {

class Lifetimes {
 public:
  Lifetimes(const Ordered& ordered, const Reduced& reduced);

  // All instances that are used, ordered by first and by last user.
  const std::vector<InstanceId>& by_first() const { return by_first_; }
  const std::vector<InstanceId>& by_last() const { return by_last_; }
  // The first and the last user in submission order, if any.
  StepId first(InstanceId instance) const { return lives_[instance].first; }
  StepId last(InstanceId instance) const { return lives_[instance].last; }

  // The instance's bytes are free when all its users are done: the last one, and the list `others`. An instance with a
  // user outside all columns is never known to be free.
  Tick end(InstanceId instance) const { return lives_[instance].end; }
  int32_t others(InstanceId instance) const { return lives_[instance].others; }
  bool AreDone(int32_t others, const int32_t* done) const {
    for (; others >= 0; others = others_[others].next) {
      if (!others_[others].tick.DoneIn(done)) return false;
    }
    return true;
  }
  bool never_ends(InstanceId instance) const { return others(instance) == kNever; }
  // Whether a user does not come after the first one.
  bool has_other_starts(InstanceId instance) const { return lives_[instance].starts >= 0; }
  // What is done by the end of every user, as a row of clocks: that of a step, or `scratch`. For work submitted before
  // the first user, this is what is done before any user starts.
  const int32_t* DoneBefore(InstanceId instance, std::vector<int32_t>& scratch) const;

 private:
  static constexpr int32_t kNone = -1, kNever = -2;
  struct Life {
    StepId first{}, last{};
    Tick begin, end;  // of the first and last user
    int32_t others = kNone;  // users except the last, and except the first if another comes after it
    int32_t starts = kNone;  // users that do not come after the first
  };
  struct Other {
    Tick tick;
    int32_t next;
  };
  struct Start {
    StepId step;
    int32_t next;
  };

  // Prepends to a list in `items`.
  template <class Item, class Value>
  static void Add(std::vector<Item>& items, int32_t& list, const Value& value) {
    items.push_back({value, list});
    list = static_cast<int32_t>(items.size()) - 1;
  }
  void AddUser(InstanceId instance, StepId step);
  void SortByLast();

  const Ordered& ordered_;
  const Reduced& reduced_;
  Table<InstanceId, Life> lives_;
  std::vector<InstanceId> by_first_, by_last_;
  std::vector<Other> others_;  // lists
  std::vector<Start> starts_;
};

// Calls `f` with each instance that a step uses, possibly twice.
template <class F>
void ForEachInstance(const Ordered& ordered, const Step& step, F&& f) {
  if (step.decl < 0) f(step.src), f(step.dst);
  for (const Use& use : ordered.UsesOf(step)) f(use.instance);
}

}  // namespace penstock::graph
