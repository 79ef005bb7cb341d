// A stream holds at most 512 commands that the device has not done: behind about 1020 the submitter is stopped inside
// CUDA, and with it every thread that makes an event. What is above that is submitted as the device gets on, whether or
// not anybody waits for the run.
//
//   hold (a Launch, until its latch opens) -> on each of `width` buffers a chain of `length` fills
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

#include "penstock/graph.h"
#include "penstock/trace.h"
#include "tests/conformance/checked_runtimes.h"
#include "tests/support/latch.h"
#include "tests/support/status.h"

namespace penstock::conformance::outstanding_test {
namespace {

using driver::checked::Call;
using driver::checked::CallKind;
using driver::checked::CallLog;

constexpr int kLength = 900;  // more than may be outstanding, and less than stops the submitter of a host device

// With so many submission threads, which submit the chains where there are several.
class Outstanding : public testing::TestWithParam<int> {
 protected:
  // A run whose first node is on the device and stays there; all that was submitted meanwhile is in the record.
  void Start(int width, int length = kLength, bool traced = false) {
    runtime_.emplace(*checks_.CreateRuntime(
        {.devices = "host", .workers = 2, .host_device_threads = 2, .submission_threads = GetParam()}));
    Graph g("long");
    auto first = g.Buffer<int32_t>("first", 4);
    auto sum = g.Output<int32_t>("sum", 4, kPinned);
    g.Launch(
         "hold", [](LaunchContext&, int32_t*) {}, Write(first))
        .HostFallback([this](int32_t* v) {
          latch_.Arrive();
          std::fill(v, v + 4, 0);
        });
    std::vector<BufferHandle<int32_t>> chains;
    for (int w = 0; w < width; ++w) {
      chains.push_back(g.Buffer<int32_t>("chain " + std::to_string(w), 4));
      g.Copy("begin " + std::to_string(w), first, chains.back());
      for (int i = 0; i < length; ++i) g.Fill(std::to_string(w) + " " + std::to_string(i), chains.back(), i);
    }
    g.Copy("end", chains.back(), sum);
    CompileOptions options{.mode = Mode::kStream, .max_lanes = width};
    if (traced) options.trace = Trace::Create();
    exec_ = *runtime_->Compile(g, options);
    result_ = *runtime_->MakeHostBuffer<int32_t>(4);  // pinned: no worker has anything to do for the run
    checks_.witness().KeepCalls(true);
    if (fail_first_query_) checks_.witness().FailNth(CallKind::kQuery, 1, absl::UnavailableError("planned"));
    Bindings io = exec_.bindings();
    run_ = *exec_.Launch(io.Set(sum, result_));
    if (fail_first_query_) return;  // what a failed run has not begun is skipped
    ASSERT_TRUE(latch_.AwaitArrived());
  }
  void TearDown() override {
    latch_.Open();
    run_ = penstock::Run();
    exec_ = {};
    result_ = {};
    runtime_.reset();
    EXPECT_EQ(checks_.Complaints(), "");
  }

  // Of each stream: the commands that stand behind the held one.
  std::map<uint32_t, int> Submitted() {
    std::map<uint32_t, int> of_stream;
    const CallLog log = checks_.witness().log();
    for (const Call& call : log.calls()) of_stream[call.stream] += call.kind != CallKind::kQuery;
    of_stream.erase(0);
    return of_stream;
  }
  void ExpectFullButNotMore(size_t streams) {
    const std::map<uint32_t, int> submitted = Submitted();
    EXPECT_GE(submitted.size(), streams);
    int most = 0;
    for (const auto& [stream, commands] : submitted) {
      EXPECT_LE(commands, 512) << "stream " << stream;
      most = std::max(most, commands);
    }
    EXPECT_GE(most, 256) << "the device is not kept fed";
  }

  void ExpectResult() {
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(result_.data()[i], kLength - 1);
  }

  bool fail_first_query_ = false;
  CheckedRuntimes checks_;
  std::optional<Runtime> runtime_;
  Executable exec_;
  penstock::Run run_;
  driver::Latch latch_;
  HostBuffer<int32_t> result_;
};

TEST_P(Outstanding, AStreamHoldsAtMost512Commands) {
  Start(1);
  ExpectFullButNotMore(1);
  latch_.Open();
  ASSERT_OK(run_.Wait());
  EXPECT_EQ(checks_.witness().log().count(CallKind::kFill), kLength);
  ExpectResult();
}

TEST_P(Outstanding, AStreamOfATracedRunToo) {
  Start(1, kLength / 3, true);
  ExpectFullButNotMore(1);
  latch_.Open();
  ASSERT_OK(run_.Wait());
}

TEST_P(Outstanding, EachOfSeveralStreams) {
  Start(4);
  ExpectFullButNotMore(4);
  latch_.Open();
  ASSERT_OK(run_.Wait());
  EXPECT_EQ(checks_.witness().log().count(CallKind::kFill), 4 * kLength);
}

TEST_P(Outstanding, TheRestIsSubmittedThoughNobodyWaits) {
  Start(1);
  latch_.Open();
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto fills = [&] { return checks_.witness().log().count(CallKind::kFill); };
  while (fills() < kLength && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(fills(), kLength);
  ASSERT_OK(run_.Wait());
  ExpectResult();
}

TEST_P(Outstanding, ARunThatIsCancelledMeanwhileSubmitsNoMore) {
  Start(1);
  run_.Cancel();
  latch_.Open();
  EXPECT_EQ(run_.Wait().code(), absl::StatusCode::kCancelled);
  EXPECT_LE(checks_.witness().log().count(CallKind::kFill), 512);
}

// The first query of such a run is whether there is room.
TEST_P(Outstanding, ARunThatCannotTellWhetherThereIsRoomFails) {
  fail_first_query_ = true;
  Start(1);
  latch_.Open();
  EXPECT_EQ(run_.Wait(), absl::UnavailableError("graph 'long': planned"));
  EXPECT_LE(checks_.witness().log().count(CallKind::kFill), 512);
}

INSTANTIATE_TEST_SUITE_P(SubmissionThreads, Outstanding, testing::Values(0, 3));

}  // namespace
}  // namespace penstock::conformance::outstanding_test
