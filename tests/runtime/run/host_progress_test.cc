// How a run finds the host steps that may begin: each is let go once, by what it waited for last, and what that costs
// is counted: as many looks as there are steps and edges, whatever their order is.
#include "src/runtime/run/host_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/explored.h"

namespace penstock::runtime::host_progress_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::ModelAtomic;
using interleave::Scenario;

// Steps that wait for steps, `edges` from earlier to later ones, and for events, on lanes.
struct Steps {
  explicit Steps(int32_t count) { program.hosts.resize(static_cast<size_t>(count)); }

  void After(int32_t step, int32_t before) { edges.push_back({step, before}), ++waits(step); }
  void AfterEvent(int32_t step, int32_t event) { events.push_back({step, event}), ++waits(step); }
  void SegmentAfter(int32_t segment, int32_t step) {
    segments.push_back({segment, step});
    auto& of = program.host_waits.of_segment;
    of.resize(std::max(of.size(), static_cast<size_t>(segment) + 1));
    ++of[static_cast<size_t>(segment)];
  }
  HostProgress Begun(int32_t count_of_events = 0) {
    const auto count = static_cast<int32_t>(program.hosts.size());
    program.host_waits.of_step.resize(program.hosts.size());
    program.host_waits.after_step = graph::MakeEdges(count, edges);
    program.host_waits.segments_after = graph::MakeEdges(count, segments);
    program.host_waits.after_event = graph::MakeEdges(count_of_events, events);
    for (int32_t s = 0; s < count; ++s) {
      if (waits(s) == 0) program.host_waits.first.push_back(s);
    }
    return HostProgress(program);
  }
  int32_t& waits(int32_t step) {
    program.host_waits.of_step.resize(program.hosts.size());
    return program.host_waits.of_step[static_cast<size_t>(step)];
  }

  Program program;
  std::vector<graph::Edge> edges, events, segments;
};

std::vector<int32_t> TakeAllFresh(HostProgress& hosts) {
  std::vector<int32_t> fresh;
  for (int32_t task = hosts.TakeFresh(); task >= 0; task = hosts.TakeFresh()) fresh.push_back(task);
  return fresh;
}

TEST(HostProgress, LetsAStepGoAfterTheLastOfThoseItWaitsFor) {
  Steps steps(4);
  for (const int32_t before : {0, 1, 2}) steps.After(3, before);
  steps.SegmentAfter(1, 3);
  HostProgress hosts = steps.Begun();
  hosts.Begin(steps.program.stream, 4);
  EXPECT_EQ(TakeAllFresh(hosts), (std::vector<int32_t>{0, 1, 2}));
  for (const int32_t s : {2, 0}) hosts.End(s, true);
  hosts.TakeEnded();
  EXPECT_EQ(TakeAllFresh(hosts), std::vector<int32_t>());
  hosts.End(1, true);
  hosts.TakeEnded();
  EXPECT_EQ(TakeAllFresh(hosts), std::vector<int32_t>{3});
  EXPECT_FALSE(hosts.MayBegin(1));
  EXPECT_FALSE(hosts.all_settled());
  EXPECT_EQ(hosts.work_left(), 1);
  hosts.End(3, true);
  hosts.TakeEnded();
  EXPECT_TRUE(hosts.MayBegin(0) && hosts.MayBegin(1) && hosts.all_settled());
  EXPECT_EQ(hosts.work_left(), 0);
}

// Each step is looked at once, where a run that looked at all that are left would look 200 million times.
TEST(HostProgress, LooksAtEachStepOfALongChainOnce) {
  constexpr int32_t kSteps = 20000;
  Steps steps(kSteps);
  for (int32_t s = 1; s < kSteps; ++s) steps.After(s, s - 1);
  HostProgress hosts = steps.Begun();
  hosts.Begin(steps.program.stream, kSteps);
  int64_t looks = 0, expected = 0;
  while (!hosts.all_settled() && looks <= kSteps) {
    for (const int32_t task : TakeAllFresh(hosts)) hosts.Keep(task);
    hosts.BeginKept(1, [&](int32_t task) {
      ++looks;
      EXPECT_EQ(task, expected++);
      hosts.End(task, true);
      return true;
    });
    hosts.TakeEnded();
  }
  EXPECT_EQ(looks, kSteps);
}

TEST(HostProgress, AsksAboutOneEventInVainOnEachLane) {
  constexpr int32_t kEvents = 100;
  Steps steps(2 * kEvents);
  for (int32_t s = 0; s < 2 * kEvents; ++s) steps.AfterEvent(s, s);
  std::vector<std::vector<WatchedEvent>>& watched = steps.program.stream.watched;
  watched.resize(2);
  for (int32_t e = 0; e < 2 * kEvents; ++e) watched[static_cast<size_t>(e % 2)].push_back({e, e / 20});
  HostProgress hosts = steps.Begun(2 * kEvents);
  hosts.Begin(steps.program.stream, 2 * kEvents);
  int asked = 0;
  int32_t complete = 0;  // so many of the first
  const auto is_complete = [&](int32_t event) { return ++asked, event < complete; };
  hosts.LookAtEvents(0, is_complete);
  EXPECT_EQ(asked, 0) << "what has not been recorded";
  hosts.LookAtEvents(2, is_complete);
  EXPECT_EQ(asked, 2);
  complete = 60;
  hosts.LookAtEvents(2, is_complete);
  EXPECT_EQ(asked, 2 + 40) << "no event of a segment that has not been submitted";
  EXPECT_EQ(TakeAllFresh(hosts).size(), 40u);
  hosts.LookAtEvents(10, is_complete);
  EXPECT_EQ(asked, 42 + 20 + 2);
}

// So many nodes may be found running elsewhere before a look ends; what stands behind keeps its place.
TEST(HostProgress, EndsALookAtTheMostThatAreRefused) {
  Steps steps(10);
  HostProgress hosts = steps.Begun();
  hosts.Begin(steps.program.stream, 10);
  for (const int32_t task : TakeAllFresh(hosts)) hosts.Keep(task);
  std::vector<int32_t> asked;
  const auto odd_begin = [&](int32_t task) { return asked.push_back(task), task % 2 != 0; };
  hosts.BeginKept(3, odd_begin);
  EXPECT_EQ(asked, (std::vector<int32_t>{0, 1, 2, 3, 4}));
  asked.clear();
  hosts.BeginKept(100, odd_begin);
  EXPECT_EQ(asked, (std::vector<int32_t>{0, 2, 4, 5, 6, 7, 8, 9}));
  hosts.Keep(1);
  asked.clear();
  hosts.BeginKept(100, odd_begin);
  EXPECT_EQ(asked, (std::vector<int32_t>{0, 2, 4, 6, 8, 1})) << "the end of the list is still known";
}

TEST(HostProgress, LetsNothingGoOnceStepsAreSkipped) {
  Steps steps(3);
  steps.After(1, 0);
  HostProgress hosts = steps.Begun();
  hosts.Begin(steps.program.stream, 2);  // step 2 has nothing to do
  EXPECT_EQ(TakeAllFresh(hosts), (std::vector<int32_t>{0, 2}));
  hosts.SkipAll();
  hosts.Skip(true);
  hosts.Skip(false);
  EXPECT_EQ(hosts.work_left(), 1);
  hosts.End(0, true);
  hosts.TakeEnded();
  EXPECT_EQ(TakeAllFresh(hosts), std::vector<int32_t>());
  EXPECT_TRUE(hosts.all_settled());
  EXPECT_EQ(hosts.work_left(), 0);
  hosts.Begin(steps.program.stream, 3);
  EXPECT_FALSE(hosts.skips() || hosts.all_settled()) << "another run";
  EXPECT_EQ(TakeAllFresh(hosts), (std::vector<int32_t>{0, 2}));
}

// --- the list of what has ended, under every schedule ---

// As EndedList, but that whoever pushes beside another does not look again.
class PushesOnce {
 public:
  explicit PushesOnce(size_t items) : next_(items) {}
  void Push(int32_t item) {
    next_[static_cast<size_t>(item)] = first_.load();
    first_.store(item);
  }
  template <class F>
  void TakeAll(F&& f) {
    for (int32_t item = first_.exchange(-1); item >= 0; item = next_[static_cast<size_t>(item)]) f(item);
  }

 private:
  std::vector<int32_t> next_;
  ModelAtomic<int32_t> first_{-1};
};

// Two workers that end a step each, and the owner of the machine, which looks beside them and once more at the end.
template <class List>
Scenario StepsEndBesideALook() {
  struct Run {
    List list{2};
    std::vector<int> taken = std::vector<int>(2);
    void Look() {
      list.TakeAll([this](int32_t item) { ++taken[static_cast<size_t>(item)]; });
    }
  };
  auto run = std::make_shared<Run>();
  Scenario scenario;
  for (const int32_t step : {0, 1}) {
    scenario.threads.push_back([run, step] { run->list.Push(step); });
  }
  scenario.threads.push_back([run] { run->Look(); });
  scenario.check = [run] {
    run->Look();
    for (const int times : run->taken) {
      if (times != 1) return "a step was taken " + std::to_string(times) + " times";
    }
    return std::string();
  };
  return scenario;
}

TEST(EndedList, GivesEachStepOnceWhateverTheSchedule) {
  ExpectSound(Explore([] { return StepsEndBesideALook<EndedList<ModelAtomic>>(); }, 200000));
}

TEST(EndedList, IsExploredCloselyEnoughToFindAStepThatIsNotTakenOnce) {
  ExpectFound(Explore([] { return StepsEndBesideALook<PushesOnce>(); }), "a step was taken");
}

TEST(EndedList, GivesStepsInTheOrderInWhichTheyEnded) {
  EndedList<> list(5);
  std::vector<int32_t> taken;
  const auto take = [&] { list.TakeAll([&](int32_t item) { taken.push_back(item); }); };
  for (const int32_t item : {3, 0, 4}) list.Push(item);
  take();
  for (const int32_t item : {1, 2}) list.Push(item);
  take(), take();
  EXPECT_EQ(taken, (std::vector<int32_t>{3, 0, 4, 1, 2}));
}

}  // namespace
}  // namespace penstock::runtime::host_progress_test
