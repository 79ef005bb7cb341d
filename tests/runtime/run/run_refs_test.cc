// Who needs a run, under every schedule: it is deleted once, by the last; an unfinished one that nobody holds any more
// is watched, and no run twice. With mistakes planted that the exploration must find.
#include "src/runtime/run/run_refs.h"

#include <memory>
#include <string>

#include "tests/support/explored.h"

namespace penstock::runtime::run_refs_test {
namespace {

using interleave::ExpectFound;
using interleave::ExpectSound;
using interleave::Explore;
using interleave::ModelAtomic;
using interleave::Scenario;

// A run as RunCore has it, with the completion thread's list. Nothing may be asked of it once it is deleted.
template <class Life>
struct ModelRun {
  Life life;
  int deleted = 0, watches = 0;
  std::string problem;

  void Alive() {
    if (deleted > 0 && problem.empty()) problem = "used after it was deleted";
  }
  void AddHandle() { Alive(), life.AddHandle(); }
  void DropHandle() {
    Alive();
    if (life.DropHandle()) Watch();
    Unref();
  }
  void Watch() {
    Alive();
    if (!life.BeginWatch()) return;
    Alive();
    life.Ref();
    ++watches;
  }
  void Unref() {
    Alive();
    if (life.Unref()) ++deleted;
  }
  void Complete() {
    Alive();
    life.SetDrained();
    Unref();
  }
  // The completion thread gives back what it was given; then everybody has gone.
  std::string End(bool drained) {
    if (!problem.empty()) return problem;
    if (watches > 1) return "watched twice";
    if (!drained && watches == 0) return "nobody holds or watches it";
    if (!drained) Complete();
    if (watches > 0) Unref();
    return deleted == 1 && problem.empty() ? "" : "deleted " + std::to_string(deleted) + " times; " + problem;
  }
};

// The run completes while its handle is copied and both go.
template <class Life>
Scenario CopiedWhileItCompletes() {
  auto run = std::make_shared<ModelRun<Life>>();
  Scenario scenario;
  scenario.threads = {[run] { run->Complete(); },
                      [run] {
                        run->AddHandle();
                        run->DropHandle();
                        run->DropHandle();
                      }};
  scenario.check = [run] { return run->End(true); };
  return scenario;
}

// The run completes while two threads drop a handle each.
template <class Life>
Scenario DroppedWhileItCompletes() {
  auto run = std::make_shared<ModelRun<Life>>();
  run->AddHandle();
  Scenario scenario;
  scenario.threads = {[run] { run->Complete(); }, [run] { run->DropHandle(); }, [run] { run->DropHandle(); }};
  scenario.check = [run] { return run->End(true); };
  return scenario;
}

// Both handles go while the run has not drained; their holders may have asked for callbacks, and so for a watch,
// before.
template <class Life>
Scenario DroppedUnfinished(bool watched_before) {
  auto run = std::make_shared<ModelRun<Life>>();
  run->AddHandle();
  Scenario scenario;
  for (int holder = 0; holder < 2; ++holder) {
    scenario.threads.push_back([run, watched_before] {
      if (watched_before) run->Watch();
      run->DropHandle();
    });
  }
  scenario.check = [run] { return run->End(false); };
  return scenario;
}

TEST(RunRefs, EndsOnceByTheLastWhateverTheSchedule) {
  ExpectSound(Explore([] { return CopiedWhileItCompletes<RunRefs<ModelAtomic>>(); }));
  EXPECT_EQ(Explore([] { return DroppedWhileItCompletes<RunRefs<ModelAtomic>>(); }, 1000).problem, "");
}

TEST(RunRefs, AnUnfinishedRunThatNobodyHoldsIsWatchedOnceWhateverTheSchedule) {
  ExpectSound(Explore([] { return DroppedUnfinished<RunRefs<ModelAtomic>>(false); }));
  ExpectSound(Explore([] { return DroppedUnfinished<RunRefs<ModelAtomic>>(true); }));
}

// Looks whether its handle is the last, and drops it then.
class TwoStepLife : public RunRefs<ModelAtomic> {
 public:
  void AddHandle() { handles_.fetch_add(1), RunRefs::AddHandle(); }
  bool DropHandle() {
    const bool last = handles_.load() == 1;
    handles_.fetch_sub(1);
    return last && !drained();
  }

 private:
  ModelAtomic<int> handles_{1};
};

TEST(RunRefs, IsExploredCloselyEnoughToFindTwoWhoThinkTheOtherIsLast) {
  ExpectFound(Explore([] { return DroppedUnfinished<TwoStepLife>(false); }), "nobody holds or watches it");
}

// Looks whether it is watched, and says so then.
class TwiceWatchedLife : public RunRefs<ModelAtomic> {
 public:
  bool BeginWatch() {
    if (watched_.load()) return false;
    watched_.store(true);
    return true;
  }

 private:
  ModelAtomic<bool> watched_{false};
};

TEST(RunRefs, IsExploredCloselyEnoughToFindTwoWatches) {
  ExpectFound(Explore([] { return DroppedUnfinished<TwiceWatchedLife>(true); }), "watched twice");
}

// A new handle comes without a count.
class CountlessLife : public RunRefs<ModelAtomic> {
 public:
  void AddHandle() {}
};

TEST(RunRefs, IsExploredCloselyEnoughToFindAUseAfterTheEnd) {
  ExpectFound(Explore([] { return CopiedWhileItCompletes<CountlessLife>(); }), "used after it was deleted");
}

}  // namespace
}  // namespace penstock::runtime::run_refs_test
