// Trace: what it writes is JSON in the trace event format, whatever the names, and appears whole or not at all.
#include "penstock/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/sanitized.h"

namespace penstock::trace_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Span MakeSpan(std::string name, std::string track, double begin, double end, int device = -1,
              SpanKind kind = SpanKind::kHost, int64_t run = -1) {
  return {.name = std::move(name),
          .track = std::move(track),
          .kind = kind,
          .begin_us = begin,
          .end_us = end,
          .run = run,
          .device = device};
}

TEST(Trace, AnEnginesTimeIsThatWithAtLeastOneSpan) {
  const auto trace = Trace::Create();
  trace->Add(MakeSpan("a", "lane 0", 0, 10, 0, SpanKind::kKernel));
  trace->Add(MakeSpan("b", "lane 1", 5, 12, 0, SpanKind::kKernel));
  trace->Add(MakeSpan("c", "lane 0", 20, 23, 0, SpanKind::kKernel));
  trace->Add(MakeSpan("d", "up", 0, 4, 0, SpanKind::kUpload));
  trace->Add(MakeSpan("e", "lane 2", 0, 2, 1, SpanKind::kKernel));
  trace->Add(MakeSpan("f", "worker 0", 0, 100));
  EXPECT_EQ(trace->BusyMicros(0, SpanKind::kKernel), 15);
  EXPECT_EQ(trace->BusyMicros(0, SpanKind::kUpload), 4);
  EXPECT_EQ(trace->BusyMicros(0, SpanKind::kDownload), 0);
  EXPECT_EQ(trace->BusyMicros(1, SpanKind::kKernel), 2);
  EXPECT_EQ(trace->BusyMicros(-1, SpanKind::kHost), 0);
}

TEST(Trace, KeepsTheNewestSpansAndCountsAll) {
  const auto trace = Trace::Create(2);
  for (int i = 0; i < 5; ++i) trace->Add(MakeSpan(std::to_string(i), "up", 2 * i, 2 * i + 1, 0, SpanKind::kUpload));
  const std::vector<Span> spans = trace->spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "3");
  EXPECT_EQ(spans[1].name, "4");
  EXPECT_EQ(trace->lost_spans(), 3);
  EXPECT_EQ(trace->BusyMicros(0, SpanKind::kUpload), 5);
}

std::string JsonOf(const std::vector<Span>& spans) {
  auto trace = Trace::Create();
  for (const Span& span : spans) trace->Add(span);
  return trace->ChromeJson();
}

// The events of one phase.
std::vector<json> Events(const json& trace, const std::string& phase, const std::string& name = "") {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase && (name.empty() || event.at("name") == name)) events.push_back(event);
  }
  return events;
}

// Checks what every reader of the format relies on: fields and their types, a name for every process and thread in
// use, and the events of one thread disjoint or nested.
void CheckFormat(const json& trace) {
  using Thread = std::pair<int, int>;
  std::map<Thread, std::string> threads;
  std::set<int> processes;
  for (const json& event : Events(trace, "M", "thread_name")) {
    const Thread thread{event.at("pid").get<int>(), event.at("tid").get<int>()};
    EXPECT_TRUE(threads.emplace(thread, event.at("args").at("name").get<std::string>()).second) << "named twice";
  }
  for (const json& event : Events(trace, "M", "process_name")) {
    EXPECT_TRUE(processes.insert(event.at("pid").get<int>()).second) << "named twice";
  }
  std::map<Thread, std::vector<std::pair<int64_t, int64_t>>> spans;  // nanoseconds
  for (const json& event : Events(trace, "X")) {
    const Thread thread{event.at("pid").get<int>(), event.at("tid").get<int>()};
    EXPECT_TRUE(threads.contains(thread)) << event;
    EXPECT_TRUE(processes.contains(thread.first)) << event;
    EXPECT_TRUE(event.at("name").is_string() && event.at("cat").is_string() && event.at("args").is_object()) << event;
    const auto begin = std::llround(event.at("ts").get<double>() * 1000);
    const auto length = std::llround(event.at("dur").get<double>() * 1000);
    EXPECT_GE(length, 0) << event;
    spans[thread].emplace_back(begin, begin + length);
  }
  for (const auto& [thread, intervals] : spans) {
    for (size_t i = 0; i < intervals.size(); ++i) {
      for (size_t k = i + 1; k < intervals.size(); ++k) {
        const auto [a, b] = intervals[i];
        const auto [c, d] = intervals[k];
        const bool disjoint = b <= c || d <= a;
        const bool nested = (a <= c && d <= b) || (c <= a && b <= d);
        EXPECT_TRUE(disjoint || nested) << threads[thread] << ": [" << a << "," << b << ") [" << c << "," << d << ")";
      }
    }
  }
}

// The thread name, begin and duration of the event called `name`.
std::tuple<std::string, double, double> Find(const json& trace, const std::string& name) {
  for (const json& event : Events(trace, "X", name)) {
    for (const json& thread : Events(trace, "M", "thread_name")) {
      if (thread.at("pid") == event.at("pid") && thread.at("tid") == event.at("tid")) {
        return {thread.at("args").at("name").get<std::string>(), event.at("ts").get<double>(),
                event.at("dur").get<double>()};
      }
    }
  }
  return {"not found", 0, 0};
}

TEST(Trace, EmptyTraceIsValid) {
  const json trace = json::parse(JsonOf({}));
  CheckFormat(trace);
  EXPECT_THAT(trace.at("traceEvents"), IsEmpty());
}

TEST(Trace, SpanBecomesOneCompleteEventOnItsTrack) {
  const json trace = json::parse(JsonOf({
      MakeSpan("up", "cuda:0 slot 1 upload", 1.5, 3.75, 0, SpanKind::kUpload, 7),
      MakeSpan("axpy", "cuda:0 slot 1 lane 0", 3.75, 1234567.001, 0, SpanKind::kKernel, 7),
      MakeSpan("decode", "worker 3", 0, 1),
  }));
  CheckFormat(trace);
  ASSERT_EQ(Events(trace, "X").size(), 3u);
  EXPECT_EQ(Find(trace, "up"), std::make_tuple(std::string("cuda:0 slot 1 upload"), 1.5, 2.25));
  EXPECT_EQ(Find(trace, "axpy"), std::make_tuple(std::string("cuda:0 slot 1 lane 0"), 3.75, 1234563.251));
  const json up = Events(trace, "X", "up").at(0), decode = Events(trace, "X", "decode").at(0);
  EXPECT_EQ(up.at("cat"), "upload");
  EXPECT_EQ(up.at("args").at("run"), 7);
  EXPECT_EQ(up.at("pid"), 1);
  EXPECT_EQ(decode.at("pid"), 0);
  EXPECT_FALSE(decode.at("args").contains("run"));
}

TEST(Trace, DevicesAreProcesses) {
  const json trace = json::parse(
      JsonOf({MakeSpan("a", "lane", 0, 1, 0), MakeSpan("b", "lane", 0, 1, 2), MakeSpan("c", "lane", 0, 1, -1)}));
  CheckFormat(trace);
  std::map<int, std::string> names;
  for (const json& event : Events(trace, "M", "process_name")) {
    names[event.at("pid").get<int>()] = event.at("args").at("name").get<std::string>();
  }
  EXPECT_THAT(names, ElementsAre(testing::Pair(0, "host"), testing::Pair(1, "device 0"), testing::Pair(3, "device 2")));
}

TEST(Trace, NestedSpansShareARow) {
  const json trace =
      json::parse(JsonOf({MakeSpan("inner", "t", 2, 3), MakeSpan("first", "t", 1, 2), MakeSpan("outer", "t", 1, 5),
                          MakeSpan("after", "t", 5, 6), MakeSpan("same", "t", 1, 5)}));
  CheckFormat(trace);
  EXPECT_EQ(Events(trace, "M", "thread_name").size(), 1u);
}

TEST(Trace, SpansThatOverlapInPartGoToAnotherRow) {
  const json trace =
      json::parse(JsonOf({MakeSpan("a", "t", 0, 10), MakeSpan("b", "t", 5, 15), MakeSpan("c", "t", 12, 20)}));
  CheckFormat(trace);
  EXPECT_EQ(std::get<0>(Find(trace, "a")), "t");
  EXPECT_EQ(std::get<0>(Find(trace, "b")), "t #2");
  EXPECT_EQ(std::get<0>(Find(trace, "c")), "t");
}

TEST(Trace, RandomSpansKeepTheFormat) {
  const uint32_t seed = 77;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::vector<Span> spans;
  for (int i = 0; i < (kSanitized ? 150 : 600); ++i) {
    const double begin = random() % 2000 / 7.0;
    spans.push_back(MakeSpan("n" + std::to_string(i), "track " + std::to_string(random() % 4), begin,
                             begin + random() % 100 / 3.0, static_cast<int>(random() % 3) - 1));
  }
  const json trace = json::parse(JsonOf(spans));
  CheckFormat(trace);
  ASSERT_EQ(Events(trace, "X").size(), spans.size());
  for (const Span& span : spans) {
    const auto [track, ts, dur] = Find(trace, span.name);
    EXPECT_EQ(track.substr(0, track.find(" #")), span.track);
    EXPECT_NEAR(ts, span.begin_us, 0.0006);
    EXPECT_NEAR(ts + dur, span.end_us, 0.0011);
  }
}

// Rounding begin and length apart would make these overlap by a nanosecond.
TEST(Trace, SpansThatTouchStillTouchAfterRounding) {
  std::vector<Span> spans;
  for (int i = 0; i < 1000; ++i) spans.push_back(MakeSpan("s", "t", i * 0.0016, (i + 1) * 0.0016));
  const json trace = json::parse(JsonOf(spans));
  CheckFormat(trace);
  EXPECT_EQ(Events(trace, "M", "thread_name").size(), 1u);
}

TEST(Trace, AnyNameStaysJson) {
  std::string every_byte;
  for (int c = 1; c < 128; ++c) every_byte += static_cast<char>(c);
  const std::vector<std::string> names = {every_byte, std::string("nul\0byte", 8),
                                          "line\nbreak\ttab \"quoted\" \\ back",
                                          "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x9A\xB0"};
  for (const std::string& name : names) {
    const json trace = json::parse(JsonOf({MakeSpan(name, name, 0, 1)}));
    CheckFormat(trace);
    EXPECT_EQ(std::get<0>(Find(trace, name)), name);
  }
}

TEST(Trace, BytesThatAreNoUtf8AreReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\xFFz", "a" + bad + "z"},
      {"\xC3", bad},                                // cut short
      {"\xC3(", bad + "("},                         // no continuation
      {"\xC0\xAF\x80\x80", bad + bad + bad + bad},  // overlong
      {"\xE0\x80\xAF", bad + bad + bad},            // overlong
      {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
      {"\xF0\x80\x80\x80", bad + bad + bad + bad},  // overlong
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // past U+10FFFF
      {"\xE2\x82", bad + bad},
  };
  for (const auto& [raw, expected] : cases) {
    const json trace = json::parse(JsonOf({MakeSpan(raw, "t", 0, 1)}));
    EXPECT_EQ(Events(trace, "X").at(0).at("name"), expected);
  }
}

TEST(Trace, AbsurdTimesStayNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const json trace = json::parse(
      JsonOf({MakeSpan("backwards", "a", 5, 4), MakeSpan("nan", "b", nan, nan), MakeSpan("inf", "c", -inf, inf),
              MakeSpan("huge", "d", -1e300, 1e300), MakeSpan("early", "e", -2.0005, -1)}));
  CheckFormat(trace);
  EXPECT_EQ(std::get<2>(Find(trace, "backwards")), 0);
  EXPECT_EQ(std::get<1>(Find(trace, "nan")), 0);
  EXPECT_DOUBLE_EQ(std::get<1>(Find(trace, "early")), -2.001);
}

TEST(Trace, ThreadsAddAtOnce) {
  auto trace = Trace::Create();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 250; ++i) trace->Add(MakeSpan("n", "thread " + std::to_string(t), i, i + 1));
      });
    }
  }
  EXPECT_EQ(trace->spans().size(), 1000u);
  CheckFormat(json::parse(trace->ChromeJson()));
}

TEST(Trace, NowCountsFromItsCreation) {
  const auto before = std::chrono::steady_clock::now();
  auto trace = Trace::Create();
  const auto after = std::chrono::steady_clock::now();
  EXPECT_LE(trace->ToMicros(before), 0);
  EXPECT_GE(trace->ToMicros(after), 0);
  EXPECT_GE(trace->Now(), 0);
}

TEST(Trace, TimesAtTheEndsOfTheClockAreFarAway) {
  using TimePoint = std::chrono::steady_clock::time_point;
  auto trace = Trace::Create();
  EXPECT_LT(trace->ToMicros(TimePoint::min()), -9.2e15);
  EXPECT_GT(trace->ToMicros(TimePoint::max()), 9e15);
}

class TraceFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("penstock_trace_" + std::to_string(std::random_device{}()) + std::to_string(std::random_device{}()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }
  static std::string Content(const std::filesystem::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(TraceFile, WritesWhatChromeJsonReturnsAndReplacesAnOldFile) {
  auto trace = Trace::Create();
  trace->Add(MakeSpan("a", "t", 0, 1));
  const auto path = folder_ / "trace.json";
  std::ofstream(path) << std::string(10000, 'x');
  ASSERT_TRUE(trace->WriteChrome(path).ok());
  EXPECT_EQ(Content(path), trace->ChromeJson());
  EXPECT_THAT(Files(), ElementsAre("trace.json"));
}

TEST_F(TraceFile, FailureNamesThePathAndLeavesNothing) {
  auto trace = Trace::Create();
  const absl::Status missing = trace->WriteChrome(folder_ / "none" / "trace.json");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("none/trace.json"));
  std::filesystem::create_directory(folder_ / "taken");
  std::ofstream(folder_ / "taken" / "file") << "x";
  EXPECT_FALSE(trace->WriteChrome(folder_ / "taken").ok());
  EXPECT_THAT(Files(), ElementsAre("taken"));
}

// A disk that fills up half-way: the old file stays as it was.
TEST_F(TraceFile, HalfWrittenFileNeverReplacesTheOldOne) {
  auto trace = Trace::Create();
  for (int i = 0; i < 1000; ++i) trace->Add(MakeSpan("a long enough name", "t", i, i + 1));
  const auto path = folder_ / "trace.json";
  std::ofstream(path) << "old";
  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit small{4096, old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status status = trace->WriteChrome(path);
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Content(path), "old");
  EXPECT_THAT(Files(), ElementsAre("trace.json"));
}

}  // namespace
}  // namespace penstock::trace_test
