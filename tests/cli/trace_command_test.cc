// penstock trace: where the time of a profile went, as text and as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"

namespace penstock::cli::trace_command_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(TraceCommand, ShowsEnginesNodesWaitsAndPaths) {
  const TemporaryFolder folder;
  Profile profile = HostileProfile();
  profile.lost_spans = 12;
  const Ran ran = RunPenstock({"trace", folder.Write("p", profile)});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.err, IsEmpty());
  ExpectPlain(ran.out);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("4 launches, 4 runs and 24 spans"), HasSubstr("12 spans and 0 graphs are lost"),
                             HasSubstr("1.60 ms"),  // of kernels
                             HasSubstr("made.cu:30"), HasSubstr("waits for a free slot; all 4 together 760 us"),
                             HasSubstr("graph 5 'second': 2 runs of 2, 720 us to 720 us"),
                             HasSubstr("critical path of run 0, 720 us: 83.3 % in 3 steps, 16.7 % in gaps")));
}

TEST(TraceCommand, WritesTheSameFiguresAsJson) {
  const TemporaryFolder folder;
  const Ran ran = RunPenstock({"--json", "trace", folder.Write("p", HostileProfile())});
  const json read = json::parse(ran.out);
  EXPECT_EQ(read["launches"], 4);
  EXPECT_EQ(read["engines"][0]["device"], "cuda:0");
  EXPECT_EQ(read["engines"][0]["engine"], "kernel");
  EXPECT_EQ(read["engines"][0]["busy_us"], 1600);
  EXPECT_EQ(read["nodes"][0]["where"], "made.cu:30");
  EXPECT_EQ(read["nodes"][0]["median_us"], 400);
  EXPECT_EQ(read["waits"].size(), 4u);
  const json& path = read["graphs"][0]["median_run"];
  EXPECT_EQ(path["length_us"], 720);
  EXPECT_EQ(path["gaps_us"], 120);
  EXPECT_EQ(path["steps"].size(), 3u);
  EXPECT_EQ(path["steps"][2]["name"], "look");
  EXPECT_EQ(path["steps"][2]["gap_us"], 60);
}

// 400 us for 2e9 operations over 12 KiB.
TEST(TraceCommand, ShowsHowFastNodesComputeThatSayHowMuch) {
  const TemporaryFolder folder;
  Profile profile = HostileProfile();
  EXPECT_THAT(RunPenstock({"trace", folder.Write("p", profile)}).out, Not(HasSubstr("What nodes computed")));
  for (Profile::Graph& graph : profile.graphs) graph.nodes[1].flops = 2e9;
  profile.spans[profile.spans.size() - 3].name = "axpy and 5 more, a region";
  const std::string file = folder.Write("p", profile);
  const Ran ran = RunPenstock({"trace", file});
  ExpectPlain(ran.out);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("What nodes computed"), HasSubstr("2.00 GFLOP"), HasSubstr("5.00 TFLOP/s"),
                             HasSubstr("162760")));
  const json nodes = json::parse(RunPenstock({"trace", file, "--json"}).out)["nodes"];
  EXPECT_EQ(nodes[0]["flops"], 2e9);
  EXPECT_EQ(nodes[0]["gflops_per_second"], 5000);
  EXPECT_FALSE(nodes[1].contains("gflops_per_second"));  // the time of the region is not its own
  EXPECT_FALSE(nodes[2].contains("flops"));
}

TEST(TraceCommand, LimitsListsAndSaysHowMuchIsLeftOut) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("p", HostileProfile());
  const Ran ran = RunPenstock({"trace", file, "--top", "1"});
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("and 5 more nodes"), HasSubstr("and 3 more waits"), HasSubstr("and 1 more graphs"),
                    HasSubstr("(1 shorter step)"), Not(HasSubstr("'second'"))));
  EXPECT_EQ(json::parse(RunPenstock({"trace", file, "--top", "1", "--json"}).out)["nodes"].size(), 1u);
  EXPECT_EQ(RunPenstock({"trace", file, "--top", "0"}).code, kFailed);
}

TEST(TraceCommand, ShowsPipelinesWithTheirBottleneck) {
  const TemporaryFolder folder;
  Profile profile = HostileProfile();
  PipelineStats stats;
  stats.stages = {{.name = "read", .capacity = 2, .done = 9, .busy = 0.5}, {.name = "run"}};
  stats.accepted = 9;
  stats.bottleneck = 0;
  profile.pipelines = {{.begin_us = 0, .end_us = 10, .stats = stats}};
  const std::string file = folder.Write("p", profile);
  EXPECT_THAT(RunPenstock({"trace", file}).out,
              AllOf(HasSubstr("pipeline 1: 9 accepted"), HasSubstr("50.0 %  the bottleneck")));
  const json pipeline = json::parse(RunPenstock({"trace", file, "--json"}).out).at("pipelines").at(0);
  EXPECT_EQ(pipeline.at("bottleneck"), 0);
  EXPECT_EQ(pipeline.at("stages").at(0).at("busy"), 0.5);
}

TEST(TraceCommand, WritesAChromeTrace) {
  const TemporaryFolder folder;
  const Profile profile = HostileProfile();
  const Ran ran = RunPenstock({"trace", folder.Write("p", profile), "--chrome", folder.Path("chrome")});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_EQ(folder.Read("chrome"), profile.ChromeJson());
  const Ran refused = RunPenstock({"trace", folder.Path("chrome")});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("is a trace for chrome://tracing"));
}

TEST(TraceCommand, TakesAProfileWithoutAnything) {
  const TemporaryFolder folder;
  const Ran ran = RunPenstock({"trace", folder.Write("p", Profile())});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.out, HasSubstr("0 launches, 0 runs and 0 spans"));
}

}  // namespace
}  // namespace penstock::cli::trace_command_test
