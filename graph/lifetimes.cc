#include "graph/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace penstock::graph {

Lifetimes::Lifetimes(const Draft& draft) : draft_(draft), lives_(draft.instances.size()) {
  by_first_.reserve(lives_.size());
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    ForEachInstance(draft, draft.steps[static_cast<size_t>(s)], [&](int32_t instance) { AddUser(instance, s); });
  }
  SortByLast();
}

void Lifetimes::AddUser(int32_t instance, int32_t step) {
  Life& life = lives_[static_cast<size_t>(instance)];
  if (life.last == step) return;  // a step that uses an instance twice is one user
  const int32_t* clock = draft_.ClockOf(step);
  const bool follows = life.first < 0 || life.end.DoneIn(clock);
  if (life.first < 0) {
    life.first = step;
    by_first_.push_back(instance);
  }
  if (!follows) {
    ends_.push_back({life.end, life.other_ends});
    life.other_ends = static_cast<int32_t>(ends_.size()) - 1;
  }
  // What follows the last user follows the first, if all others do.
  if ((!follows || life.other_starts >= 0) && !draft_.Before(life.first, step)) {
    starts_.push_back({step, life.other_starts});
    life.other_starts = static_cast<int32_t>(starts_.size()) - 1;
  }
  for (int32_t* at = &life.other_ends; *at >= 0;) {
    End& end = ends_[static_cast<size_t>(*at)];
    if (end.tick.DoneIn(clock)) {
      *at = end.next;
    } else {
      at = &end.next;
    }
  }
  life.last = step;
  life.end = draft_.tick[static_cast<size_t>(step)];
}

void Lifetimes::SortByLast() {
  std::vector<int32_t> next(static_cast<size_t>(draft_.step_count()) + 1);
  for (const int32_t i : by_first_) ++next[static_cast<size_t>(last(i)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  by_last_.resize(by_first_.size());
  for (const int32_t i : by_first_) by_last_[static_cast<size_t>(next[static_cast<size_t>(last(i))]++)] = i;
}

bool Lifetimes::HasEndWithoutColumn(int32_t instance) const {
  const Life& life = lives_[static_cast<size_t>(instance)];
  bool found = life.end.column < 0;
  for (int32_t i = life.other_ends; i >= 0; i = ends_[static_cast<size_t>(i)].next) {
    found = found || ends_[static_cast<size_t>(i)].tick.column < 0;
  }
  return found;
}

bool Lifetimes::AreDone(int32_t ends, const int32_t* done) const {
  for (int32_t i = ends; i >= 0; i = ends_[static_cast<size_t>(i)].next) {
    if (!ends_[static_cast<size_t>(i)].tick.DoneIn(done)) return false;
  }
  return true;
}

const int32_t* Lifetimes::DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const {
  const Life& life = lives_[static_cast<size_t>(instance)];
  const int32_t* done = draft_.ClockOf(life.first);
  if (life.other_starts < 0) return done;
  scratch.assign(done, done + draft_.columns);
  for (int32_t i = life.other_starts; i >= 0; i = starts_[static_cast<size_t>(i)].next) {
    const int32_t* other = draft_.ClockOf(starts_[static_cast<size_t>(i)].step);
    for (size_t c = 0; c < scratch.size(); ++c) scratch[c] = std::min(scratch[c], other[c]);
  }
  return scratch.data();
}

}  // namespace penstock::graph
