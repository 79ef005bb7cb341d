#include "graph/lifetimes.h"

#include <algorithm>

namespace penstock::graph {

Lifetimes::Lifetimes(const Draft& draft) : draft_(draft) {
  FindUsers();
  FindEnds();
}

void Lifetimes::FindUsers() {
  const size_t count = draft_.instances.size();
  begin_.assign(count + 1, 0);
  first_.assign(count, -1);
  last_.assign(count, -1);
  const auto for_each_user = [&](auto f) {
    std::fill(last_.begin(), last_.end(), -1);
    for (int32_t s = 0; s < draft_.step_count(); ++s) {
      ForEachInstance(draft_, draft_.steps[static_cast<size_t>(s)], [&](int32_t instance) {
        const auto i = static_cast<size_t>(instance);
        if (last_[i] != s) f(i, s);  // a step that uses an instance twice is one user
        last_[i] = s;
      });
    }
  };
  for_each_user([&](size_t i, int32_t s) {
    if (first_[i] < 0) first_[i] = s;
    ++begin_[i + 1];
  });
  for (size_t i = 0; i < count; ++i) begin_[i + 1] += begin_[i];
  users_.resize(static_cast<size_t>(begin_.back()));
  std::vector<int32_t> next(begin_.begin(), begin_.end() - 1);
  for_each_user([&](size_t i, int32_t s) { users_[static_cast<size_t>(next[i]++)] = s; });
}

void Lifetimes::FindEnds() {
  const auto count = static_cast<int32_t>(draft_.instances.size());
  ends_.Reserve(static_cast<size_t>(count), users_.size());
  for (int32_t i = 0; i < count; ++i) {
    const std::span<const int32_t> all = users(i);
    for (size_t u = all.size(); u > 0; --u) {
      const std::span<const int32_t> found = ends_.open();
      const bool covered =
          std::any_of(found.begin(), found.end(), [&](int32_t later) { return draft_.Before(all[u - 1], later); });
      if (!covered) ends_.Add(all[u - 1]);
    }
    ends_.Close();
  }
}

const int32_t* Lifetimes::DoneBefore(int32_t instance, std::vector<int32_t>& scratch) const {
  const std::span<const int32_t> all = users(instance);
  const int32_t* done = clock(all.front());
  for (const int32_t user : all.subspan(1)) {
    if (draft_.Before(all.front(), user)) continue;  // knows all that the first one does
    const auto columns = static_cast<size_t>(draft_.columns);
    if (done != scratch.data()) scratch.assign(done, done + columns);
    done = scratch.data();
    for (size_t c = 0; c < columns; ++c) scratch[c] = std::min(scratch[c], clock(user)[c]);
  }
  return done;
}

}  // namespace penstock::graph
