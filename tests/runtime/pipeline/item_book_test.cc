// ItemBook against a model that is written to be obvious: one list of items in the order of their submission, walked
// from the front for every question. Random moves, every order, every in-order stage.
#include "src/runtime/pipeline/item_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

namespace penstock::runtime::item_book_test {
namespace {

using State = ItemBook::State;

struct Case {
  Order order;
  std::vector<bool> in_order;
  int items;
  int keys;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << "order " << static_cast<int>(c.order) << " stages " << c.in_order.size() << " items " << c.items << " keys "
       << c.keys;
}

// What is inside, oldest first.
class Model {
 public:
  struct Entry {
    int item;
    uint64_t key;
    State state;
    int stage = 0;
    int begun = -1;
    int64_t queued;  // a number for when it came into its queue; smaller comes first
    size_t batch = 0;  // 0: of none
  };

  explicit Model(const Case& c) : case_(c) {}

  void Submit(int item, uint64_t key, size_t batch) {
    entries_.push_back({item, key, State::kWaiting, 0, -1, ++clock_, batch});
  }

  bool Related(const Entry& a, const Entry& b) const {
    return case_.order == Order::kInOrder || (case_.order == Order::kPerKey && a.key == b.key);
  }

  // Ended, and nobody that it comes out behind is still to come out.
  bool IsReady(const Entry& e) const {
    if (e.state != State::kFinished) return false;
    for (const Entry& other : entries_) {
      if (&other == &e) return true;
      if (Related(other, e) && other.state != State::kFinished) return false;
    }
    return true;
  }
  bool MayBegin(const Entry& e) const {
    if (!case_.in_order[static_cast<size_t>(e.stage)]) return true;
    for (const Entry& other : entries_) {
      if (&other == &e) return true;
      if (Related(other, e) && other.begun < e.stage && other.state != State::kFinished) return false;
    }
    return true;
  }

  int Begin(int stage, int unfit) {
    Entry* first = nullptr;
    for (Entry& e : entries_) {
      if (e.state != State::kWaiting || e.stage != stage || !MayBegin(e) || e.item == unfit) continue;
      if (first == nullptr || e.queued < first->queued) first = &e;
    }
    if (first == nullptr) return ItemBook::kNone;
    first->state = State::kWorking;
    first->begun = stage;
    return first->item;
  }
  void PutBack(int item) {
    Entry& e = Of(item);
    e.state = State::kWaiting;
    e.begun = e.stage - 1;
    e.queued = -(++clock_);
  }
  void End(int item) {
    Entry& e = Of(item);
    const bool last = ++e.stage == static_cast<int>(case_.in_order.size());
    e.state = last ? State::kFinished : State::kWaiting;
    e.queued = ++clock_;
  }
  void Finish(int item) { Of(item).state = State::kFinished; }
  bool Has(int item) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.item == item; });
  }
  void Remove(int item) {
    std::erase_if(entries_, [&](const Entry& e) { return e.item == item; });
  }
  Entry& Of(int item) {
    return *std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.item == item; });
  }
  int OldestIdle() const {
    for (const Entry& e : entries_) {
      if (e.state != State::kWorking) return e.item;
    }
    return ItemBook::kNone;
  }
  int OldestUnbegun(int unfit) const {
    for (const Entry& e : entries_) {
      if (e.state == State::kWaiting && e.stage == 0 && e.item != unfit) return e.item;
    }
    return ItemBook::kNone;
  }
  int InsideOf(size_t batch) const {
    return static_cast<int>(
        std::count_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.batch == batch; }));
  }
  void Dissolve(size_t batch) {
    for (Entry& e : entries_) {
      if (e.batch == batch) e.batch = 0;
    }
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const Case case_;
  std::vector<Entry> entries_;
  int64_t clock_ = 0;
};

class ItemBookTest : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Cases, ItemBookTest,
    testing::Values(Case{Order::kInOrder, {false}, 1, 1}, Case{Order::kInOrder, {false, true, false}, 5, 2},
                    Case{Order::kInOrder, {true, true}, 12, 2}, Case{Order::kAsReady, {false, true}, 6, 3},
                    Case{Order::kPerKey, {false, true, false}, 6, 2}, Case{Order::kPerKey, {true}, 16, 5},
                    Case{Order::kPerKey, {false, true, true}, 9, 100}));

TEST_P(ItemBookTest, RandomMovesAgreeWithTheModel) {
  const Case& c = GetParam();
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
    ItemBook book(c.items, c.in_order, c.order);
    Model model(c);
    std::vector<int> held, taken;
    int free = c.items;
    std::array<ItemBook::Batch, 2> batches;
    // Of no batch and of each, the items in the order in which the model has seen them become ready.
    std::array<std::vector<int>, 3> ready;
    const auto see_ready = [&] {
      for (const Model::Entry& e : model.entries()) {
        std::vector<int>& of = ready.at(e.batch);
        const bool known = std::find(of.begin(), of.end(), e.item) != of.end();
        if (!known && model.IsReady(e)) of.push_back(e.item);
      }
    };
    const auto batch_of = [&](size_t batch) { return batch == 0 ? nullptr : &batches.at(batch - 1); };
    const auto of_state = [&](State state) {
      std::vector<int> items;
      for (const Model::Entry& e : model.entries()) {
        if (e.state == state) items.push_back(e.item);
      }
      return items;
    };
    for (int move = 0; move < 400 && !HasFailure(); ++move) {
      const int what = below(12);
      const auto working = of_state(State::kWorking);
      if (what <= 2) {
        const int item = book.Hold();
        ASSERT_EQ(item >= 0, free > 0);
        if (item >= 0) held.push_back(item), --free;
      } else if (what <= 4 && !held.empty()) {
        const int item = held[static_cast<size_t>(below(held.size()))];
        std::erase(held, item);
        const auto key = static_cast<uint64_t>(below(static_cast<size_t>(c.keys)));
        const auto batch = static_cast<size_t>(below(3));
        book.Submit(item, key, batch_of(batch));
        model.Submit(item, key, batch);
      } else if (what <= 6) {
        const int stage = below(c.in_order.size());
        const int unfit = below(3) == 0 ? below(static_cast<size_t>(c.items)) : -1;
        ASSERT_EQ(book.Begin(stage, [&](int item) { return item != unfit; }), model.Begin(stage, unfit));
      } else if (what == 7 && !working.empty()) {
        const int item = working[static_cast<size_t>(below(working.size()))];
        if (below(4) == 0) {
          book.PutBack(item);
          model.PutBack(item);
        } else {
          book.End(item);
          model.End(item);
        }
      } else if (what == 8 && below(3) == 0) {
        auto open = of_state(State::kWaiting);
        open.insert(open.end(), working.begin(), working.end());
        if (open.empty()) continue;
        const int item = open[static_cast<size_t>(below(open.size()))];
        book.Finish(item);
        model.Finish(item);
      } else if (what <= 10) {
        const auto batch = static_cast<size_t>(below(3));
        std::vector<int>& of = ready.at(batch);
        const int item = book.Take(batch_of(batch));
        ASSERT_EQ(item, of.empty() ? ItemBook::kNone : of.front());
        if (item < 0) continue;
        of.erase(of.begin());
        model.Remove(item);
        taken.push_back(item);
      } else if (below(4) == 0) {
        const int unfit = below(3) == 0 ? below(static_cast<size_t>(c.items)) : -1;
        const int unbegun = book.OldestUnbegun([&](int candidate) { return candidate != unfit; });
        ASSERT_EQ(unbegun, model.OldestUnbegun(unfit));
        const int idle = book.OldestIdle([](int) { return true; });
        ASSERT_EQ(idle, model.OldestIdle());
        const int item = below(2) == 0 ? unbegun : idle;
        if (item < 0) continue;
        book.Drop(item);
        for (std::vector<int>& of : ready) std::erase(of, item);
        model.Remove(item);
        taken.push_back(item);
      } else if (below(20) == 0) {
        const auto batch = static_cast<size_t>(1 + below(2));
        book.Dissolve(*batch_of(batch));
        model.Dissolve(batch);
        ready[0].insert(ready[0].end(), ready.at(batch).begin(), ready.at(batch).end());
        ready.at(batch).clear();
      } else if (!taken.empty()) {
        book.Free(taken.back());
        taken.pop_back();
        ++free;
      }
      see_ready();
      EXPECT_EQ(book.ready(), static_cast<int>(ready[0].size() + ready[1].size() + ready[2].size()));
      for (size_t b = 1; b <= batches.size(); ++b) EXPECT_EQ(batch_of(b)->inside, model.InsideOf(b));
      for (const Model::Entry& e : model.entries()) EXPECT_EQ(book.batch(e.item), batch_of(e.batch));
      EXPECT_EQ(book.inside(), static_cast<int>(model.entries().size()));
      EXPECT_EQ(book.open(), static_cast<int>(of_state(State::kWaiting).size() + of_state(State::kWorking).size()));
      for (int s = 0; s < book.stages(); ++s) {
        const auto waits = [&](const Model::Entry& e) { return e.state == State::kWaiting && e.stage == s; };
        EXPECT_EQ(book.waiting(s), std::count_if(model.entries().begin(), model.entries().end(), waits));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::runtime::item_book_test
