// penstock simulate.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "tests/cli/run_penstock.h"

namespace penstock::cli::simulate_command_test {
namespace {

using nlohmann::json;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// 40 runs in two slots of an upload of 10 us and a kernel of 30 us, which is the bound; and a graph that never ran.
Profile TwoStages(const std::string& kernel) {
  Profile profile;
  profile.devices.emplace_back().name = "cuda:0";
  Profile::Graph& graph = profile.graphs.emplace_back();
  graph.executable = 4;
  graph.name = "blur";
  graph.slots = 2;
  graph.launches = 40;
  graph.lanes = {{0, "upload"}, {0, "compute"}};
  graph.nodes.push_back({"upload x", "upload", "", 0, 0, {}, 1'000'000, 1'000'000});
  graph.nodes.push_back({kernel, "kernel", "a.cc:1", 0, 1, {0}});
  graph.report.mode = Mode::kGraph;
  for (int run = 0; run < 40; ++run) {
    const double end = 30.0 * run + 40, launched = run < 2 ? run : end - 60;
    const auto add = [&](SpanKind kind, int device, int node, double begin_us, double end_us) {
      profile.spans.push_back({.name = "a span",
                               .track = "a track",
                               .kind = kind,
                               .begin_us = begin_us,
                               .end_us = end_us,
                               .run = run,
                               .device = device,
                               .executable = 4,
                               .node = node,
                               .slot = run % 2});
    };
    add(SpanKind::kSubmit, -1, -1, launched, launched + 1);
    add(SpanKind::kUpload, 0, 0, launched + 1, launched + 11);
    add(SpanKind::kKernel, 0, 1, launched + 11, end);
    add(SpanKind::kRun, -1, -1, launched, end);
  }
  for (const int64_t executable : {5, 6}) {
    profile.graphs.emplace_back().executable = executable;
    profile.graphs.back().name = "idle";
  }
  return profile;
}

class SimulateCommand : public testing::Test {
 protected:
  SimulateCommand() { Write("smooth"); }
  ~SimulateCommand() override { std::filesystem::remove(path_); }

  void Write(const std::string& kernel) { ASSERT_TRUE(TwoStages(kernel).Write(path_).ok()); }
  Ran Simulated(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"simulate", path_});
    return RunPenstock(arguments);
  }
  json Parsed(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Ran ran = Simulated(std::move(arguments));
    EXPECT_EQ(ran.code, kDone) << ran.err;
    return json::parse(ran.out);
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("simulate_command_test." + std::to_string(getpid()))).string();
};

TEST_F(SimulateCommand, ComparesWhatItPredictsWithWhatWasMeasured) {
  const json found = Parsed({});
  EXPECT_EQ(found.at("graph"), "blur");
  EXPECT_EQ(found.at("measured_runs"), 30);
  EXPECT_THAT(found.at("measured_run_us").get<double>(), DoubleNear(30, 1e-3));
  EXPECT_THAT(found.at("predicted").at("run_us").get<double>(), DoubleNear(30, 0.1));
  EXPECT_THAT(found.at("error").get<double>(), DoubleNear(0, 0.01));
}

TEST_F(SimulateCommand, ShowsOneToFourSlotsBesideEachOther) {
  const json slots = Parsed({}).at("with_slots");
  ASSERT_EQ(slots.size(), 4u);
  EXPECT_THAT(slots[0].at("run_us").get<double>(), DoubleNear(41, 0.5));
  EXPECT_THAT(slots[3].at("run_us").get<double>(), DoubleNear(30, 0.1));
}

TEST_F(SimulateCommand, PredictsChanges) {
  EXPECT_FALSE(Parsed({}).contains("changed"));
  const auto changed = [&](std::vector<std::string> arguments) {
    return Parsed(std::move(arguments)).at("changed").at("run_us").get<double>();
  };
  EXPECT_THAT(changed({"--slots", "1"}), DoubleNear(41, 0.5));
  EXPECT_THAT(changed({"--scale", "smooth=0.5"}), DoubleNear(15, 0.1));
  EXPECT_THAT(changed({"--upload-gbs", "20"}), DoubleNear(50, 0.1));  // 1 MB in 50 us
  EXPECT_THAT(changed({"--scale", "smooth=0.5", "--slots", "1"}), DoubleNear(26, 0.5));
}

TEST_F(SimulateCommand, WritesTextForPeople) {
  const Ran ran = Simulated({"--scale", "smooth=0.5"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.err, IsEmpty());
  for (const char* words : {"graph 'blur', executable 4: 30 runs measured; 2 slots, graph mode", "time per run",
                            "cuda:0 kernels", "critical path", "slots   time per run us"}) {
    EXPECT_THAT(ran.out, HasSubstr(words));
  }
}

TEST_F(SimulateCommand, SaysHowFarItIsToBeTrusted) {
  EXPECT_THAT(Simulated({}).out, Not(HasSubstr("note:")));
  Profile profile = TwoStages("smooth");
  profile.spans.push_back(
      {.name = "wait for x", .track = "t", .kind = SpanKind::kWait, .run = 3, .device = 0, .executable = 4});
  ASSERT_TRUE(profile.Write(path_).ok());
  EXPECT_THAT(Simulated({}).out, HasSubstr("waited for a State"));
  std::erase_if(profile.spans, [](const Span& span) { return span.run > 5; });
  ASSERT_TRUE(profile.Write(path_).ok());
  EXPECT_THAT(Simulated({}).out, HasSubstr("says little"));
  EXPECT_EQ(Parsed({}).at("notes").size(), 2u);
}

TEST_F(SimulateCommand, HostileNamesDoNotReachTheTerminal) {
  Write("evil\x1b[2J\n" + std::string(500, 'x'));
  const Ran ran = Simulated({});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.out, Not(HasSubstr("\x1b")));
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST_F(SimulateCommand, RefusesWhatItDoesNotFind) {
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& why) {
    const Ran ran = Simulated(std::move(arguments));
    EXPECT_EQ(ran.code, kFailed);
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr(why));
  };
  refuses({"--graph", "blurr"}, "no graph 'blurr'; name one of these");
  refuses({"--graph", "idle"}, "several graphs 'idle'");
  refuses({"--graph", "5"}, "no spans of its nodes");
  refuses({"--scale", "smoth=2"}, "has no node 'smoth'");
  for (const char* scale : {"smooth", "smooth=", "smooth=x", "smooth=0", "smooth=-1", "smooth=nan", "smooth=inf"}) {
    refuses({"--scale", scale}, "is not NODE=FACTOR");
  }
  for (const char* slots : {"0", "-1", "1e9"}) refuses({"--slots", slots}, "--slots");
  refuses({"--mode", "sideways"}, "--mode");
  const Ran missing = RunPenstock({"simulate", path_ + ".missing"});
  EXPECT_EQ(missing.code, kFailed);
  EXPECT_THAT(missing.err, HasSubstr(".missing"));
}

}  // namespace
}  // namespace penstock::cli::simulate_command_test
