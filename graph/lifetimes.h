// When instances are used: by which steps, and what lane clocks know to be done before the first use and after the
// last.
//
// Threads: immutable once made; borrows the draft, whose clocks must be there.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/passes.h"

namespace penstock::graph {

class Lifetimes {
 public:
  explicit Lifetimes(const Draft& draft);

  // All instances that anybody uses, by their first and by their last user.
  const std::vector<int32_t>& by_first() const { return by_first_; }
  const std::vector<int32_t>& by_last() const { return by_last_; }
  // The first and the last user in submission order; -1: nobody.
  int32_t first(int32_t instance) const { return lives_[static_cast<size_t>(instance)].first; }
  int32_t last(int32_t instance) const { return lives_[static_cast<size_t>(instance)].last; }

  // Once all users are done, by a row of clocks, its bytes are free. `end` is where the last one stands; the others are
  // looked at apart, since that answers most questions.
  Tick end(int32_t instance) const { return lives_[static_cast<size_t>(instance)].end; }
  bool OthersAreDone(int32_t instance, const int32_t* done) const {
    for (int32_t i = lives_[static_cast<size_t>(instance)].others; i >= 0; i = others_[static_cast<size_t>(i)].next) {
      if (!others_[static_cast<size_t>(i)].tick.DoneIn(done)) return false;
    }
    return true;
  }
  // What has a user without a column is never known to be done with.
  bool never_ends(int32_t instance) const { return lives_[static_cast<size_t>(instance)].never_ends; }
  // What is done by the end of every user, as a row of clocks: of a step, or `scratch`. For all that was submitted
  // before the first user this is what is done before any user starts.
  const int32_t* DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const;

 private:
  struct Life {
    int32_t first = -1, last = -1;
    Tick end;
    int32_t others = -1;  // users but the last, and the first where another comes after it
    int32_t starts = -1;  // users that do not come after the first
    bool never_ends = false;
  };
  struct Other {
    Tick tick;
    int32_t next;
  };
  struct Start {
    int32_t step, next;
  };

  void AddUser(int32_t instance, int32_t step);
  void SortByLast();

  const Draft& draft_;
  std::vector<Life> lives_;
  std::vector<int32_t> by_first_, by_last_;
  std::vector<Other> others_;  // lists
  std::vector<Start> starts_;
};

// Calls `f` with each instance a step uses; with some twice.
template <class F>
void ForEachInstance(const Draft& draft, const Step& step, F&& f) {
  if (step.decl < 0) f(step.src), f(step.dst);
  for (int32_t u = step.first_use; u < step.first_use + step.uses; ++u) {
    f(draft.uses[static_cast<size_t>(u)].instance);
  }
}

}  // namespace penstock::graph
