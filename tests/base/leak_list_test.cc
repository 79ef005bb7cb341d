// The list of what is leaked on purpose, under every schedule: nothing that was kept is lost.
#include "src/base/leak_list.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/support/explored.h"

namespace penstock::base::leak_list_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::ModelAtomic;
using interleave::Scenario;

template <class List>
Scenario KeepOneEach(int threads) {
  struct State {
    List list;
    int things[3] = {};
  };
  auto state = std::make_shared<State>();
  Scenario scenario;
  for (int t = 0; t < threads; ++t)
    scenario.threads.push_back([state, t] { state->list.Keep(nullptr, &state->things[t]); });
  scenario.check = [state, threads]() -> std::string {
    std::set<const void*> kept;
    for (const auto* entry = state->list.first(); entry != nullptr; entry = entry->next) kept.insert(entry->raw);
    return kept.size() == static_cast<size_t>(threads) ? "" : "something kept was lost";
  };
  return scenario;
}

// Frees in the end what the list itself never does.
class FreedList : public LeakList<ModelAtomic> {
 public:
  ~FreedList() {
    for (const Entry* entry = first(); entry != nullptr;) delete std::exchange(entry, entry->next);
  }
};

TEST(LeakList, KeepsAllWhateverTheSchedule) {
  ExpectSound(Explore([] { return KeepOneEach<FreedList>(2); }));
  ExpectSound(Explore([] { return KeepOneEach<FreedList>(3); }));
}

// Puts its entry before what was first when it looked.
class StaleList {
 public:
  struct Entry {
    void* raw;
    Entry* next;
  };
  void Keep(const std::shared_ptr<void>&, void* raw) {
    Entry* const mine = &entries_[used_++];
    *mine = {raw, first_.load()};
    first_.store(mine);
  }
  const Entry* first() const { return first_.load(); }

 private:
  Entry entries_[3];
  size_t used_ = 0;
  ModelAtomic<Entry*> first_{nullptr};
};

TEST(LeakList, IsExploredCloselyEnoughToFindALostEntry) {
  ExpectFound(Explore([] { return KeepOneEach<StaleList>(2); }), "something kept was lost");
}

}  // namespace
}  // namespace penstock::base::leak_list_test
