#include "graph/memory/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace penstock::graph {

Lifetimes::Lifetimes(const Ordered& ordered, const Reduced& reduced)
    : ordered_(ordered), reduced_(reduced), lives_(ordered.instances.size()) {
  by_first_.reserve(lives_.size());
  for (const StepId s : ordered.steps.ids()) {
    ForEachInstance(ordered, ordered.steps[s], [&](InstanceId instance) { AddUser(instance, s); });
  }
  SortByLast();
}

void Lifetimes::AddUser(InstanceId instance, StepId step) {
  Life& life = lives_[instance];
  const StepId first = ordered_.FirstOfBatch(step), last = ordered_.LastOfBatch(step);  // a batch counts as one user
  const Tick tick = reduced_.tick[last];
  if (life.last == last) return;  // so does a step that uses an instance twice
  if (life.first < 0) {
    life.first = first;
    life.begin = tick;
    by_first_.push_back(instance);
  } else {
    const bool follows = life.begin.DoneIn(reduced_.ClockOf(first));
    if (!follows) Add(starts_, life.starts, first);
    if (life.others != kNever && (!follows || life.last != life.first)) Add(others_, life.others, life.end);
  }
  life.last = last;
  life.end = tick;
  if (tick.column < 0) life.others = kNever;
}

void Lifetimes::SortByLast() {
  std::vector<int32_t> next(ordered_.steps.size() + 1);
  for (const InstanceId i : by_first_) ++next[last(i) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  by_last_.resize(by_first_.size());
  for (const InstanceId i : by_first_) by_last_[next[last(i)]++] = i;
}

const int32_t* Lifetimes::DoneBefore(InstanceId instance, std::vector<int32_t>& scratch) const {
  const Life& life = lives_[instance];
  const int32_t* done = reduced_.ClockOf(life.first);
  if (life.starts < 0) return done;
  scratch.assign(done, done + reduced_.columns);
  for (int32_t i = life.starts; i >= 0; i = starts_[i].next) {
    const int32_t* other = reduced_.ClockOf(starts_[i].step);
    for (size_t c = 0; c < scratch.size(); ++c) scratch[c] = std::min(scratch[c], other[c]);
  }
  return scratch.data();
}

}  // namespace penstock::graph
