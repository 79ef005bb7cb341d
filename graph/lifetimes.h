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

  // An instance ends with the users that no later one is known to come after: once they are done all are. The last one
  // is an end. `done` is a row of clocks.
  Tick end(int32_t instance) const { return lives_[static_cast<size_t>(instance)].end; }
  bool OtherEndsAreDone(int32_t instance, const int32_t* done) const {
    const int32_t others = lives_[static_cast<size_t>(instance)].other_ends;
    return others < 0 || AreDone(others, done);
  }
  bool HasEndWithoutColumn(int32_t instance) const;
  // What is done by the end of every user, as a row of clocks: of a step, or `scratch`. For all that was submitted
  // before the first user this is what is done before any user starts.
  const int32_t* DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const;

 private:
  struct Life {
    int32_t first = -1, last = -1;
    Tick end;  // of the last user
    int32_t other_ends = -1, other_starts = -1;  // lists
  };
  struct End {
    Tick tick;
    int32_t next;
  };
  struct Start {
    int32_t step, next;
  };

  void AddUser(int32_t instance, int32_t step);
  void SortByLast();
  bool AreDone(int32_t ends, const int32_t* done) const;

  const Draft& draft_;
  std::vector<Life> lives_;
  std::vector<int32_t> by_first_, by_last_;
  std::vector<End> ends_;
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
