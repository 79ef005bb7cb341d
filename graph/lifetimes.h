// When instances are used: by which steps, and what lane clocks know to be done before the first use and after the
// last.
//
// Threads: immutable once made; borrows the draft, whose clocks must be there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/passes.h"

namespace penstock::graph {

class Lifetimes {
 public:
  explicit Lifetimes(const Draft& draft);

  // The first and the last user in submission order; -1: nobody.
  int32_t first(int32_t instance) const { return first_[static_cast<size_t>(instance)]; }
  int32_t last(int32_t instance) const { return last_[static_cast<size_t>(instance)]; }

  // The users that no later one is known to come after: once they are done all are.
  std::span<const int32_t> ends(int32_t instance) const { return ends_[instance]; }
  // What is done by the end of every user, as a row of clocks: of a step, or `scratch`. For all that was submitted
  // before the first user this is what is done before any user starts.
  const int32_t* DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const;

 private:
  std::span<const int32_t> users(int32_t instance) const {
    const auto i = static_cast<size_t>(instance);
    return {users_.data() + begin_[i], users_.data() + begin_[i + 1]};
  }
  const int32_t* clock(int32_t step) const {
    return draft_.clock.data() + static_cast<size_t>(step) * static_cast<size_t>(draft_.columns);
  }
  void FindUsers();
  void FindEnds();

  const Draft& draft_;
  std::vector<int32_t> begin_, users_;  // users of instance i: users_ from begin_[i] to begin_[i + 1], ascending
  std::vector<int32_t> first_, last_;
  Rows ends_;
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
