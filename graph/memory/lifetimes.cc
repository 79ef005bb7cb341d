#include "graph/memory/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace penstock::graph {

Lifetimes::Lifetimes(const Draft& draft) : draft_(draft), lives_(draft.instances.size()) {
  by_first_.reserve(lives_.size());
  for (int32_t s = 0; s < draft.step_count(); ++s) {
    ForEachInstance(draft, draft.steps[s], [&](int32_t instance) { AddUser(instance, s); });
  }
  SortByLast();
}

void Lifetimes::AddUser(int32_t instance, int32_t step) {
  Life& life = lives_[instance];
  const int32_t first = draft_.FirstOfBatch(step), last = draft_.LastOfBatch(step);  // a batch counts as one user
  const Tick tick = draft_.tick[last];
  if (life.last == last) return;  // so does a step that uses an instance twice
  if (life.first < 0) {
    life.first = first;
    life.begin = tick;
    by_first_.push_back(instance);
  } else {
    const bool follows = life.begin.DoneIn(draft_.ClockOf(first));
    if (!follows) Add(starts_, life.starts, first);
    if (life.others != kNever && (!follows || life.last != life.first)) Add(others_, life.others, life.end);
  }
  life.last = last;
  life.end = tick;
  if (tick.column < 0) life.others = kNever;
}

void Lifetimes::SortByLast() {
  std::vector<int32_t> next(static_cast<size_t>(draft_.step_count()) + 1);
  for (const int32_t i : by_first_) ++next[static_cast<size_t>(last(i)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  by_last_.resize(by_first_.size());
  for (const int32_t i : by_first_) by_last_[next[last(i)]++] = i;
}

const int32_t* Lifetimes::DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const {
  const Life& life = lives_[instance];
  const int32_t* done = draft_.ClockOf(life.first);
  if (life.starts < 0) return done;
  scratch.assign(done, done + draft_.columns);
  for (int32_t i = life.starts; i >= 0; i = starts_[i].next) {
    const int32_t* other = draft_.ClockOf(starts_[i].step);
    for (size_t c = 0; c < scratch.size(); ++c) scratch[c] = std::min(scratch[c], other[c]);
  }
  return scratch.data();
}

}  // namespace penstock::graph
