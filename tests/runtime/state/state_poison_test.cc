// What becomes of a State, and of the runs behind, when a run that uses it fails, is cancelled or is abandoned.
#include <thread>

#include "tests/support/state_fixture.h"

namespace penstock::state_poison_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StatePoisonTest : public StateFixture {
 protected:
  // Adds one to `s`; then fails on the device, if told to.
  Executable Failing(const State<int64_t>& s, const bool& fail) {
    Graph g("bad");
    Twin(
        g, Name("boom", "a.cc", 5),
        [&fail](int64_t* v) {
          ++v[0];
          return fail ? absl::InternalError("boom") : absl::OkStatus();
        },
        ReadWrite(s));
    return Compiled(g);
  }
  // Copies `s` to its output.
  Graph Reader(const State<int64_t>& s, BufferHandle<int64_t>* y) {
    Graph g("reader");
    *y = g.Output<int64_t>("y", 1);
    g.ParallelFor(Name("get", "a.cc", 9), 1, CopyOut<int64_t>{}, Read(s), Write(*y));
    return g;
  }
};

const char* const kPoisoned =
    "state 's' (a.cc:7): poisoned by graph 'bad' node 'boom' (a.cc:5) on host:0: boom; its contents are unspecified; "
    "Set "
    "or Reset it";

TEST_F(StatePoisonTest, AFailedRunPoisonsWhatItMayHaveWrittenUntilItIsSetOrReset) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  bool fail = true;
  Executable bad = Failing(s, fail);
  BufferHandle<int64_t> y;
  Executable reader = Compiled(Reader(s, &y));
  Bindings io = reader.bindings();
  std::vector<int64_t> hy(1);
  for (int way = 0; way < 2; ++way) {
    fail = true;
    auto run = bad.Launch(bad.bindings());
    ASSERT_OK(run.status());
    EXPECT_EQ(run->Wait().ToString(), "INTERNAL: graph 'bad' node 'boom' (a.cc:5) on host:0: boom");
    EXPECT_EQ(s.status().ToString(), std::string("FAILED_PRECONDITION: ") + kPoisoned);
    EXPECT_EQ(s.Read(hy).ToString(), std::string("FAILED_PRECONDITION: ") + kPoisoned);
    EXPECT_EQ(reader.Launch(io.Set(y, hy)).status().ToString(),
              std::string("FAILED_PRECONDITION: graph 'reader': ") + kPoisoned);
    EXPECT_EQ(bad.Launch(bad.bindings()).status().ToString(),
              std::string("FAILED_PRECONDITION: graph 'bad': ") + kPoisoned);
    EXPECT_OK(way == 0 ? s.Set(std::vector<int64_t>{40}) : s.Reset());
    EXPECT_OK(s.status());
    fail = false;
    ASSERT_OK(bad.Launch(bad.bindings())->Wait());
    ASSERT_OK(reader.Launch(io.Set(y, hy))->Wait());
    EXPECT_EQ(hy[0], way == 0 ? 41 : 1);
  }
}

TEST_F(StatePoisonTest, ARefusedLaunchTakesNoSlotAndCountsAsNone) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  bool fail = true;
  Executable bad = Failing(s, fail);
  EXPECT_FALSE(bad.Launch(bad.bindings())->Wait().ok());
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(bad.TryLaunch(bad.bindings()).ok());
  EXPECT_EQ(bad.launches(), 1);
  EXPECT_OK(s.Reset());
  fail = false;
  EXPECT_OK(bad.Launch(bad.bindings())->Wait());
}

TEST_F(StatePoisonTest, AFailureBeforeAnythingIsWrittenPoisonsNothing) {
  State<int64_t> s = Made("s", 1, std::vector<int64_t>{5}), read = Made("read", 1);
  Graph g("g");
  auto t = g.Buffer<int64_t>("t", 1);
  Twin(
      g, "look", [](const int64_t* from, const int64_t*, int64_t* to) { to[0] = from[0]; }, Read(s), Read(read),
      Write(t));
  auto fail = g.Host("fail", [](std::span<const int64_t>) { return absl::InternalError("boom"); }, Read(t));
  Twin(g, "write", [](int64_t* to) { to[0] = 9; }, Write(s)).After(fail);
  Executable exec = Compiled(g);
  EXPECT_EQ(exec.Launch(exec.bindings())->Wait().code(), absl::StatusCode::kInternal);
  EXPECT_OK(s.status());
  EXPECT_OK(read.status());
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{5});
}

TEST_F(StatePoisonTest, AStateThatIsOnlyReadIsNotPoisoned) {
  State<int64_t> s = Made("s", 1, std::vector<int64_t>{5});
  Graph g("g");
  Twin(g, "fail", [](const int64_t*) { return absl::InternalError("boom"); }, Read(s));
  Executable exec = Compiled(g);
  EXPECT_FALSE(exec.Launch(exec.bindings())->Wait().ok());
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{5});
}

// Everything is queued on the device before the failure: nothing can be held back, so it shows at the end of each run.
TEST_F(StatePoisonTest, RunsAlreadyAfterAFailureFailAndPoisonWhatTheyWrite) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1), out = Made(Name("out", "a.cc", 8), 1);
  Meeting release;
  Graph first("bad");
  Twin(
      first, Name("boom", "a.cc", 5),
      [&](int64_t* v) {
        v[0] = 1;
        release.Await(1);
        return absl::InternalError("boom");
      },
      Write(s));
  Graph second("second");
  second.ParallelFor("on", 1, CopyOut<int64_t>{}, Read(s), Write(out));
  BufferHandle<int64_t> y;
  Executable a = Compiled(first), b = Compiled(second), c = Compiled(Reader(out, &y));
  Bindings io = c.bindings();
  std::vector<int64_t> hy(1);
  auto run_a = a.Launch(a.bindings()), run_b = b.Launch(b.bindings()), run_c = c.Launch(io.Set(y, hy));
  ASSERT_OK(run_a.status());
  ASSERT_OK(run_b.status());
  ASSERT_OK(run_c.status());
  release.Arrive();
  // The last first: nobody has looked at the others yet.
  const std::string of_out =
      "state 'out' (a.cc:8): poisoned by graph 'bad' node 'boom' (a.cc:5) on host:0: boom; its contents are "
      "unspecified; Set or Reset it";
  EXPECT_EQ(run_c->Wait().ToString(), "FAILED_PRECONDITION: graph 'reader': " + of_out);
  EXPECT_EQ(run_b->Wait().ToString(), std::string("FAILED_PRECONDITION: graph 'second': ") + kPoisoned);
  EXPECT_EQ(run_a->Wait().ToString(), "INTERNAL: graph 'bad' node 'boom' (a.cc:5) on host:0: boom");
  EXPECT_EQ(s.status().ToString(), std::string("FAILED_PRECONDITION: ") + kPoisoned);
  EXPECT_EQ(out.status().ToString(), "FAILED_PRECONDITION: " + of_out);
}

// A pipeline without a reset ends with such words, and a host node may add others.
TEST_F(StatePoisonTest, APoisoningThatAHostNodePassesOnInItsOwnWordsIsToldOnce) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1), out = Made(Name("out", "a.cc", 8), 1);
  bool fail = true;
  Executable bad = Failing(s, fail);
  EXPECT_FALSE(bad.Launch(bad.bindings())->Wait().ok());
  Graph g("passes on");
  Twin(
      g, "tell",
      [&s](int64_t*) {
        return absl::InternalError("no weights: " + std::string(s.status().message()) + "; the pipeline ends");
      },
      ReadWrite(out));
  Executable exec = Compiled(g);
  EXPECT_FALSE(exec.Launch(exec.bindings())->Wait().ok());
  EXPECT_EQ(out.status().ToString(),
            "FAILED_PRECONDITION: state 'out' (a.cc:8): poisoned by graph 'bad' node 'boom' (a.cc:5) on host:0: boom; "
            "its contents are unspecified; Set or Reset it");
}

// Both have written it when they fail, one after the other in either order of time; the order of the State counts.
TEST_F(StatePoisonTest, OfTwoFailuresTheFirstInTheOrderCounts) {
  for (const bool first_fails_first : {true, false}) {
    State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
    Meeting first_release, second_release;
    Graph first("first"), second("second");
    auto t = first.Buffer<int64_t>("t", 1), u = second.Buffer<int64_t>("u", 1);
    const auto fail_once = [](Meeting& release) {
      return [&release](const int64_t*) { return release.Await(1) ? absl::InternalError("boom") : absl::OkStatus(); };
    };
    Twin(first, "touch", [](int64_t*, int64_t*) {}, ReadWrite(s), Write(t));
    Twin(first, "boom", fail_once(first_release), Read(t));
    Twin(second, "touch", [](int64_t*, int64_t*) {}, ReadWrite(s), Write(u));
    Twin(second, "boom", fail_once(second_release), Read(u));
    Executable a = Compiled(first), b = Compiled(second);
    auto run_a = a.Launch(a.bindings()), run_b = b.Launch(b.bindings());
    ASSERT_OK(run_a.status());
    ASSERT_OK(run_b.status());
    const auto fail = [](Meeting& release, const penstock::Run& run) {
      release.Arrive();
      EXPECT_EQ(run.Wait().code(), absl::StatusCode::kInternal);
    };
    const auto expect_by = [&s](const std::string& graph) {
      EXPECT_NE(s.status().ToString().find("poisoned by graph '" + graph + "' node 'boom'"), std::string::npos)
          << s.status();
    };
    if (first_fails_first) {
      fail(first_release, *run_a);
      expect_by("first");
      fail(second_release, *run_b);
    } else {
      fail(second_release, *run_b);
      expect_by("second");
      fail(first_release, *run_a);
    }
    expect_by("first");
  }
}

// The run ahead fails with its last touch not yet submitted: the one behind has not touched the State, and never does.
TEST_F(StatePoisonTest, RunsAfterAFailureThatHaveNotTouchedTheStateAreStoppedBefore) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  Meeting release, touched;
  Graph first("bad");
  auto t = first.Buffer<int64_t>("t", 1);
  Twin(first, "write", [](int64_t* v, int64_t* to) { to[0] = v[0] = 1; }, Write(s), Write(t));
  auto boom = first.Host(
      Name("boom", "a.cc", 5),
      [&](std::span<const int64_t>) {
        release.Await(1);
        return absl::InternalError("boom");
      },
      Read(t));
  Twin(first, "again", [](int64_t* v) { v[0] = 2; }, ReadWrite(s)).After(boom);
  Graph second("second");
  Twin(second, "touch", [&](int64_t*) { touched.Arrive(); }, ReadWrite(s));
  Executable a = Compiled(first), b = Compiled(second);
  auto run_a = a.Launch(a.bindings()), run_b = b.Launch(b.bindings());
  ASSERT_OK(run_a.status());
  ASSERT_OK(run_b.status());
  release.Arrive();
  const std::string poisoned =
      "state 's' (a.cc:7): poisoned by graph 'bad' node 'boom' (a.cc:5) on host: boom; its contents are unspecified; "
      "Set or Reset it";
  EXPECT_EQ(run_b->Wait().ToString(), "FAILED_PRECONDITION: graph 'second': " + poisoned);
  EXPECT_EQ(touched.count(), 0);
  EXPECT_EQ(run_a->Wait().ToString(), "INTERNAL: graph 'bad' node 'boom' (a.cc:5) on host: boom");
  EXPECT_EQ(s.status().ToString(), "FAILED_PRECONDITION: " + poisoned);
}

TEST_F(StatePoisonTest, ARunThatFailedAndIsNotWaitedForHoldsNobodyUp) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  Graph g("g");
  auto t = g.Buffer<int64_t>("t", 1);
  Twin(g, "look", [](const int64_t* v, int64_t* to) { to[0] = v[0]; }, Read(s), Write(t));
  auto fail = g.Host("fail", [](std::span<const int64_t>) { return absl::InternalError("boom"); }, Read(t));
  Twin(g, "write", [](int64_t* v) { v[0] = 9; }, ReadWrite(s)).After(fail);
  Executable exec = Compiled(g, {.slots = 4});
  std::vector<penstock::Run> runs;
  for (int i = 0; i < 4; ++i) {
    auto run = exec.Launch(exec.bindings());
    ASSERT_OK(run.status());
    runs.push_back(*std::move(run));
  }
  EXPECT_EQ(runs[3].Wait(seconds(60)).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{0});
}

TEST_F(StatePoisonTest, ACancelledRunPoisonsWhatItMayHaveWritten) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  Meeting begun, release;
  Graph g("g");
  Twin(g, "hold", [&](int64_t*) { begun.Arrive(), release.Await(1); }, ReadWrite(s));
  Executable exec = Compiled(g);
  auto run = exec.Launch(exec.bindings());
  ASSERT_OK(run.status());
  ASSERT_TRUE(begun.Await(1));
  run->Cancel();
  release.Arrive();
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(s.status().ToString(),
            "FAILED_PRECONDITION: state 's' (a.cc:7): poisoned by graph 'g': cancelled; its contents are unspecified; "
            "Set or Reset it");
}

TEST_F(StatePoisonTest, ARunCancelledAfterAnotherTouchesNothing) {
  State<int64_t> s = Made("s", 1);
  Meeting begun, release;
  Graph g("g");
  auto t = g.Buffer<int64_t>("t", 1);
  Twin(g, "one", [](int64_t* v, int64_t* to) { ++v[0], to[0] = 0; }, ReadWrite(s), Write(t));
  auto hold = g.Host("hold", [&](std::span<const int64_t>) { begun.Arrive(), release.Await(1); }, Read(t));
  Twin(g, "two", [](int64_t* v) { ++v[0]; }, ReadWrite(s)).After(hold);
  Executable exec = Compiled(g, {.slots = 2});
  auto first = exec.Launch(exec.bindings()), second = exec.Launch(exec.bindings());
  ASSERT_OK(first.status());
  ASSERT_OK(second.status());
  ASSERT_TRUE(begun.Await(1));
  second->Cancel();
  EXPECT_EQ(second->Wait(seconds(60)).code(), absl::StatusCode::kCancelled);
  release.Arrive();
  EXPECT_OK(first->Wait());
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{2});
}

TEST_F(StatePoisonTest, AnAbandonedRunKeepsItsPlaceAndThoseAfterSayWhy) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1, std::vector<int64_t>{5});
  Meeting begun, release;
  Graph reads("reads");
  Twin(reads, "hold", [&](const int64_t*) { begun.Arrive(), release.Await(1); }, Read(s));
  Graph writes("writes");
  Twin(writes, "set", [&](int64_t* v) { v[0] = 6; }, Write(s));
  Executable reader = Compiled(reads), writer = Compiled(writes);
  auto run = reader.Launch(reader.bindings(), milliseconds(300));
  ASSERT_OK(run.status());
  ASSERT_TRUE(begun.Await(1));
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_OK(s.status());  // it only reads
  auto behind = writer.Launch(writer.bindings(), milliseconds(5));
  ASSERT_OK(behind.status());
  EXPECT_EQ(behind->Wait().ToString(),
            "DEADLINE_EXCEEDED: graph 'writes': the run's deadline passed before its work had drained; it is abandoned "
            "and its slot comes back when the work ends; it waits for a run of graph 'reads' in the order of state "
            "'s' (a.cc:7), which has not drained");
  release.Arrive();
  EXPECT_OK(s.Reset());
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{0});
}

TEST_F(StatePoisonTest, AnAbandonedWriterPoisonsAtOnce) {
  State<int64_t> s = Made(Name("s", "a.cc", 7), 1);
  Meeting release;
  Graph g("g");
  Twin(g, "hold", [&](int64_t*) { release.Await(1); }, ReadWrite(s));
  Executable exec = Compiled(g, {.slots = 2});
  auto run = exec.Launch(exec.bindings(), milliseconds(5));
  ASSERT_OK(run.status());
  EXPECT_EQ(run->Wait().code(), absl::StatusCode::kDeadlineExceeded);
  const std::string poisoned =
      "state 's' (a.cc:7): poisoned by graph 'g': the run's deadline passed before its work had drained; its contents "
      "are unspecified; Set or Reset it";
  EXPECT_EQ(s.status().ToString(), "FAILED_PRECONDITION: " + poisoned);
  EXPECT_EQ(exec.Launch(exec.bindings()).status().ToString(), "FAILED_PRECONDITION: graph 'g': " + poisoned);
  release.Arrive();
  EXPECT_OK(s.Reset());
  EXPECT_EQ(Contents(s, 1), std::vector<int64_t>{0});
}

}  // namespace
}  // namespace penstock::state_poison_test
