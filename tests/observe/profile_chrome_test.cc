// Profile::ChromeJson: what viewers are shown of a profile that is made by hand: processes, threads in their order,
// arrows, counters and args; and the format, whatever the profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/profile.h"
#include "tests/observe/chrome_checker.h"
#include "tests/support/sanitized.h"

namespace penstock::profile_chrome_test {
namespace {

using chrome_checker::MistakesIn;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class ChromeProfiles : public testing::Test {
 protected:
  // Graph 0: upload x -> first -> second -> download x, and upload x -> second.
  ChromeProfiles() {
    profile_.devices = {{.name = "cuda:0", .description = "NVIDIA H200", .is_cuda = true}};
    profile_.graphs = {GraphOf(0)};
  }

  static Profile::Node NodeOf(const std::string& name, const std::string& kind, int lane, std::vector<int> after) {
    return {.name = name, .kind = kind, .where = "", .device = 0, .lane = lane, .after = std::move(after)};
  }
  static Profile::Graph GraphOf(int64_t executable) {
    Profile::Graph graph;
    graph.executable = executable;
    graph.name = "g";
    graph.lanes = {{0, "upload"}, {0, "compute"}, {0, "download"}};
    graph.nodes = {NodeOf("upload x", "upload", 0, {}), NodeOf("first", "kernel", 1, {0}),
                   NodeOf("second", "parallel for", 1, {0, 1}), NodeOf("download x", "download", 2, {2}),
                   NodeOf("solve", "conditional", 1, {1})};
    graph.nodes[1].where = "a.cc:7";
    graph.nodes[1].read_bytes = 8;
    return graph;
  }

  Span& Add(const std::string& name, const std::string& track, SpanKind kind, double begin, double end) {
    profile_.spans.push_back({.name = name,
                              .track = track,
                              .kind = kind,
                              .begin_us = begin,
                              .end_us = end,
                              .run = 0,
                              .executable = 0,
                              .slot = 1});
    return profile_.spans.back();
  }
  Span& AddNode(int node, SpanKind kind, double begin, double end) {
    const char* const lane = kind == SpanKind::kUpload ? "upload" : kind == SpanKind::kKernel ? "compute" : "download";
    Span& span = Add(profile_.graphs[0].nodes[static_cast<size_t>(node)].name,
                     std::string("cuda:0 slot 1 ") + lane + " lane", kind, begin, end);
    span.node = node;
    span.device = 0;
    return span;
  }

  // The events of a phase, or of it and a name.
  std::vector<json> Events(const std::string& phase, const std::string& name = "") {
    const std::string text = profile_.ChromeJson();
    EXPECT_THAT(MistakesIn(text), IsEmpty());
    const json trace = json::parse(text);
    std::vector<json> events;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] == phase && (name.empty() || event["name"] == name)) events.push_back(event);
    }
    return events;
  }
  std::vector<std::string> ThreadsOf(int pid) {
    std::map<int64_t, std::string> sorted;
    std::map<int64_t, int64_t> at;
    for (const json& event : Events("M", "thread_sort_index")) at[event["tid"]] = event["args"]["sort_index"];
    for (const json& event : Events("M", "thread_name")) {
      if (event["pid"] == pid) sorted[at[event["tid"]]] = event["args"]["name"];
    }
    std::vector<std::string> names;
    for (const auto& [index, name] : sorted) names.push_back(name);
    return names;
  }
  // The arrows of a name as the times at which they begin and end.
  std::vector<std::pair<double, double>> Arrows(const std::string& name) {
    std::map<int64_t, std::pair<double, double>> arrows;
    for (const json& event : Events("s", name)) arrows[event["id"]].first = event["ts"];
    for (const json& event : Events("f", name)) arrows[event["id"]].second = event["ts"];
    std::vector<std::pair<double, double>> times;
    for (const auto& [id, arrow] : arrows) times.push_back(arrow);
    return times;
  }

  Profile profile_;
};

TEST_F(ChromeProfiles, HaveAProcessForEachDeviceAndTheHost) {
  AddNode(1, SpanKind::kKernel, 0, 1);
  Add("a", "worker 1", SpanKind::kHost, 0, 1);
  AddNode(1, SpanKind::kKernel, 0, 1).device = 3;
  profile_.lost_spans = 12;
  std::map<int, std::string> names, labels;
  for (const json& event : Events("M", "process_name")) names[event["pid"]] = event["args"]["name"];
  for (const json& event : Events("M", "process_labels")) labels[event["pid"]] = event["args"]["labels"];
  using testing::Pair;
  EXPECT_THAT(names, ElementsAre(Pair(0, "host"), Pair(1, "cuda:0 (NVIDIA H200)"), Pair(4, "device 3")));
  EXPECT_EQ(labels[0], "12 older spans are not kept");
}

TEST_F(ChromeProfiles, ShowTheLanesOfASlotTogether) {
  for (const char* track : {"cuda:0 slot 10 upload lane 0", "cuda:0 slot 2 download lane 3",
                            "cuda:0 slot 2 compute lane 11", "cuda:0 slot 2 compute lane 2",
                            "cuda:0 slot 2 upload lane 0", "cuda:0 slot 2 compute lane 2 resident worker 1"}) {
    Span& span = Add("n", track, SpanKind::kKernel, 0, 1);
    span.device = 0;
    span.slot = std::string(track).starts_with("cuda:0 slot 10") ? 10 : 2;
  }
  Add("h", "worker 10", SpanKind::kHost, 0, 1);
  Add("h", "worker 9", SpanKind::kHost, 0, 1);
  Add("c", "small copies slot 1", SpanKind::kHost, 0, 1);
  Add("r", "runs slot 1", SpanKind::kRun, 0, 1);
  Add("l", "launches", SpanKind::kSubmit, 0, 1);
  EXPECT_THAT(ThreadsOf(1),
              ElementsAre("cuda:0 slot 2 upload lane 0", "cuda:0 slot 2 compute lane 2",
                          "cuda:0 slot 2 compute lane 2 resident worker 1", "cuda:0 slot 2 compute lane 11",
                          "cuda:0 slot 2 download lane 3", "cuda:0 slot 10 upload lane 0"));
  EXPECT_THAT(ThreadsOf(0), ElementsAre("launches", "runs slot 1", "small copies slot 1", "worker 9", "worker 10"));
}

TEST_F(ChromeProfiles, ShowSlotsOfSeveralExecutablesApart) {
  profile_.graphs.push_back(GraphOf(7));
  profile_.graphs[1].name = "other";
  profile_.graphs.push_back(GraphOf(8));
  for (const int64_t executable : {8, 0, 7}) {
    Add("r", "runs slot 1", SpanKind::kRun, 0, 1).executable = executable;
    Add("h", "worker 1", SpanKind::kHost, 2.0 * static_cast<double>(executable), 1).executable = executable;
  }
  EXPECT_THAT(ThreadsOf(0), ElementsAre("runs slot 1 of g, executable 0", "runs slot 1 of other",
                                        "runs slot 1 of g, executable 8", "worker 1"));
  EXPECT_EQ(Events("C", "other: slots").size(), 2u);
  EXPECT_EQ(Events("C", "g, executable 8: slots").size(), 2u);
}

TEST_F(ChromeProfiles, ShowIterationsOnATrackOfTheirOwn) {
  AddNode(4, SpanKind::kKernel, 0, 10);
  AddNode(4, SpanKind::kKernel, 1, 5).name = "solve iteration 0";
  AddNode(4, SpanKind::kKernel, 5, 11).name = "solve iteration 1";  // the clock of the loop's span is another
  AddNode(4, SpanKind::kKernel, 2, 3).name = "solve/inner iterations 0 to 7";
  EXPECT_THAT(ThreadsOf(1), ElementsAre("cuda:0 slot 1 compute lane", "cuda:0 slot 1 compute lane iterations"));
  EXPECT_EQ(Events("C", "busy").size(), 2u);  // iterations do no more than their loop
}

TEST_F(ChromeProfiles, KeepSlicesThatOverlapInPartWhole) {
  AddNode(1, SpanKind::kKernel, 0, 10);
  AddNode(2, SpanKind::kKernel, 5, 15);
  EXPECT_THAT(ThreadsOf(1), ElementsAre("cuda:0 slot 1 compute lane", "cuda:0 slot 1 compute lane #2"));
  EXPECT_EQ(Events("X", "first")[0]["dur"], 10);
  EXPECT_EQ(Events("X", "second")[0]["dur"], 10);
}

TEST_F(ChromeProfiles, HaveArrowsFromLaunchToDataToEnd) {
  Add("launch g", "launches", SpanKind::kSubmit, 0, 5);
  AddNode(0, SpanKind::kUpload, 3, 8);
  AddNode(1, SpanKind::kKernel, 20, 30);
  AddNode(2, SpanKind::kKernel, 9, 20);
  AddNode(3, SpanKind::kDownload, 30, 40);
  Add("run of g", "runs slot 1", SpanKind::kRun, 0, 42);
  EXPECT_THAT(Arrows("launch"), ElementsAre(std::pair(3.0, 3.0)));
  EXPECT_THAT(Arrows("data"), ElementsAre(std::pair(7.999, 9.0)));  // to `second`, which happened to be the first
  EXPECT_THAT(Arrows("end"), ElementsAre(std::pair(39.999, 41.999)));
  EXPECT_EQ(Events("f", "data")[0]["tid"], Events("X", "second")[0]["tid"]);
  EXPECT_EQ(Events("s", "data")[0]["tid"], Events("X", "upload x")[0]["tid"]);
  EXPECT_EQ(Events("f", "end")[0]["tid"], Events("X", "run of g")[0]["tid"]);
}

TEST_F(ChromeProfiles, HaveNoArrowFromOneRunToAnother) {
  AddNode(0, SpanKind::kUpload, 0, 1);
  AddNode(0, SpanKind::kUpload, 1, 2).run = 1;
  AddNode(1, SpanKind::kKernel, 3, 4).executable = 2;
  EXPECT_THAT(Arrows("data"), IsEmpty());
  AddNode(1, SpanKind::kKernel, 5, 6).run = 1;
  AddNode(1, SpanKind::kKernel, 7, 8);
  EXPECT_THAT(Arrows("data"), UnorderedElementsAre(std::pair(1.999, 5.0), std::pair(0.999, 7.0)));
}

// However many there are of both.
TEST_F(ChromeProfiles, LookForTheFirstFollowersOfACopyOnly) {
  for (int n = 5; n < 200; ++n) profile_.graphs[0].nodes.push_back(NodeOf("late", "kernel", 1, {0}));
  AddNode(0, SpanKind::kUpload, 0, 1);
  AddNode(199, SpanKind::kKernel, 2, 3);
  EXPECT_THAT(Arrows("data"), IsEmpty());
  AddNode(60, SpanKind::kKernel, 4, 5);
  EXPECT_THAT(Arrows("data"), ElementsAre(std::pair(0.999, 4.0)));
}

// The clocks of two devices differ a little.
TEST_F(ChromeProfiles, HaveNoArrowBackInTime) {
  AddNode(0, SpanKind::kUpload, 5, 10);
  AddNode(1, SpanKind::kKernel, 8, 20);
  EXPECT_THAT(Arrows("data"), ElementsAre(std::pair(8.0, 8.0)));
  profile_.spans[1].begin_us = 3;
  EXPECT_THAT(Arrows("data"), ElementsAre(std::pair(5.0, 5.0)));
  profile_.spans[1].end_us = 4;
  EXPECT_THAT(Arrows("data"), IsEmpty());
}

TEST_F(ChromeProfiles, CountSlotsAndBusyEngines) {
  Add("r", "runs slot 0", SpanKind::kRun, 0, 10).slot = 0;
  Add("r", "runs slot 1", SpanKind::kRun, 5, 10).run = 1;
  Add("r", "runs slot 1", SpanKind::kRun, 10, 12).run = 2;
  AddNode(1, SpanKind::kKernel, 2, 4);
  AddNode(2, SpanKind::kKernel, 3, 6).track = "other lane";
  AddNode(0, SpanKind::kUpload, 5, 6);
  std::vector<std::pair<double, int>> slots;
  for (const json& event : Events("C", "g: slots")) slots.emplace_back(event["ts"], event["args"]["in use"]);
  using testing::Pair;
  EXPECT_THAT(slots, ElementsAre(Pair(0, 1), Pair(5, 2), Pair(10, 1), Pair(12, 0)));
  std::vector<std::pair<double, std::string>> busy;
  for (const json& event : Events("C", "busy")) {
    const json& args = event["args"];
    EXPECT_EQ(event["pid"], 1);
    busy.emplace_back(event["ts"], args["upload"].dump() + args["compute"].dump() + args["download"].dump());
  }
  EXPECT_THAT(busy, ElementsAre(Pair(2, "010"), Pair(5, "110"), Pair(6, "000")));
}

TEST_F(ChromeProfiles, CountPinnedMemoryAndStagedCopies) {
  profile_.graphs[0].slot_pinned_bytes = 4096;
  profile_.graphs[0].nodes[2].kind = "stage in";
  Add("r", "runs slot 0", SpanKind::kRun, 0, 10).slot = 0;
  Add("r", "runs slot 1", SpanKind::kRun, 5, 10).run = 1;
  Span& staged = AddNode(2, SpanKind::kHost, 2, 4);
  staged.device = -1;
  staged.track = "worker 0";
  using testing::Pair;
  std::vector<std::pair<double, int>> bytes, copies;
  for (const json& event : Events("C", "pinned memory of runs"))
    bytes.emplace_back(event["ts"], event["args"]["bytes"]);
  for (const json& event : Events("C", "staged copies")) copies.emplace_back(event["ts"], event["args"]["under way"]);
  EXPECT_THAT(bytes, ElementsAre(Pair(0, 4096), Pair(5, 8192), Pair(10, 0)));
  EXPECT_THAT(copies, ElementsAre(Pair(2, 1), Pair(4, 0)));
}

TEST_F(ChromeProfiles, SayOfASliceWhoseItIs) {
  AddNode(1, SpanKind::kKernel, 0, 1);
  Add("mine", "t", SpanKind::kHost, 0, 1);
  profile_.spans[1] = {.name = "mine", .track = "t"};
  const json args = Events("X", "first")[0]["args"];
  EXPECT_EQ(args, (json{{"graph", "g"},
                        {"executable", 0},
                        {"run", 0},
                        {"slot", 1},
                        {"node", 1},
                        {"kind", "kernel"},
                        {"where", "a.cc:7"},
                        {"read_bytes", 8}}));
  EXPECT_EQ(Events("X", "mine")[0]["args"], json::object());
}

TEST_F(ChromeProfiles, HaveNamesAsTheyAre) {
  const std::string hostile = "</script>\"\\\n\x01\xff", escaped = "</script>\"\\\n\x01\xEF\xBF\xBD";
  profile_.graphs[0].name = profile_.graphs[0].nodes[1].name = profile_.devices[0].description = hostile;
  profile_.graphs[0].nodes[1].where = hostile;
  AddNode(1, SpanKind::kKernel, 0, 1).track = hostile;
  Add("run", hostile, SpanKind::kRun, 0, 1);
  const json args = Events("X", escaped)[0]["args"];
  EXPECT_EQ(args["graph"], escaped);
  EXPECT_EQ(args["where"], escaped);
  EXPECT_THAT(ThreadsOf(1), ElementsAre(escaped));
  EXPECT_EQ(Events("C", escaped + ": slots").size(), 2u);
}

// Whatever a file may say: places that are none, times that are none, executables that are unknown or there twice.
TEST_F(ChromeProfiles, KeepTheFormatWhateverIsInThem) {
  const uint32_t seed = 5;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  profile_.graphs[0].nodes[1].after = {0, 0, -5, 99, 1, 2};
  profile_.graphs = {profile_.graphs[0], GraphOf(0), GraphOf(1), GraphOf(-1)};
  const std::vector<std::string> tracks = {
      "cuda:0 slot 1 upload lane", "cuda:0 slot 0 compute lane 1", "runs slot 1", "", "launches", "slot 0", "worker 1"};
  for (int i = 0; i < (kSanitized ? 300 : 1000); ++i) {
    const double begin = below(2000) / 7.0;
    Span& span = Add("n iteration", tracks[static_cast<size_t>(below(7))], static_cast<SpanKind>(below(7)), begin,
                     begin + below(100) / 3.0 - 1);
    span.run = below(40) - 1;
    span.device = below(4) - 1;
    span.executable = below(4) - 1;
    span.node = below(7) - 1;
    span.slot = below(4) - 1;
    if (i % 100 == 0) span.begin_us = nan;
    if (i % 100 == 1) span.end_us = inf;
    if (i % 100 == 2) span.device = INT32_MAX;
    if (i % 100 == 3) span.node = INT32_MAX;
  }
  EXPECT_EQ(Events("X").size(), profile_.spans.size());
  EXPECT_GT(Events("s").size(), 20u);
}

}  // namespace
}  // namespace penstock::profile_chrome_test
