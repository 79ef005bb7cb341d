// penstock plan: the plans of a profile as text, JSON, DOT and SVG.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/read_profile.h"
#include "tests/cli/equal_profiles.h"
#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"

namespace penstock::cli::plan_command_test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Every element that is opened is closed, in order, and attributes are in quotes: the part of XML that we write.
bool IsWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at)) {
    size_t end = at;
    for (bool quoted = false; end < xml.size() && (quoted || xml[end] != '>'); ++end) quoted ^= xml[end] == '"';
    if (end == xml.size()) return false;
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return false;
    const std::string name = tag.substr(0, tag.find_first_of(" \n"));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// Where a picture has the box of a node of its first graph.
std::pair<int, int> PlaceOf(const std::string& svg, int node) {
  int x = -1, y = -1;
  const size_t at = svg.find("<rect", svg.find("<title>node " + std::to_string(node) + " "));
  if (at != std::string::npos) std::sscanf(svg.c_str() + at, "<rect x=\"%d\" y=\"%d\"", &x, &y);
  return {x, y};
}

TEST(PlanCommand, ShowsNodesWithLanesEdgesBytesAndLines) {
  const TemporaryFolder folder;
  const Ran ran = RunPenstock({"plan", folder.Write("p", HostileProfile())});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.err, IsEmpty());
  ExpectPlain(ran.out);
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("graph 4 'first </title><script>\\x1b[2J': 3 nodes, 2 lanes, 2 slots"),
                    HasSubstr("graph 5 'second'"), HasSubstr("submitted on streams"),
                    ContainsRegex("parallel for +1 cuda:0 +0 +8 KiB +4 KiB +made\\.cu:30\n"),
                    ContainsRegex("look +host +host +1,0 +4 KiB +0 B +made\\.cu:31\n"), HasSubstr("note: a remark")));
}

TEST(PlanCommand, ShowsWhatPlacementCompared) {
  const TemporaryFolder folder;
  Profile profile = HostileProfile();
  profile.graphs[0].placement = {{.name = "one\x1b[2J", .why = "left out"},
                                 {.name = "HEFT",
                                  .taken = true,
                                  .makespan_us = 2000,
                                  .gain = 0.25,
                                  .work_us = {1500, 5, 5, 5, 5},
                                  .why = "taken"}};
  const Ran ran = RunPenstock({"plan", folder.Write("p", profile)});
  ExpectPlain(ran.out);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("  placement one\\x1b[2J: left out\n"),
                             HasSubstr("  placement HEFT: taken; 2.00 ms a run, gain 25 %; work cuda:0 1.50 ms,")));
}

TEST(PlanCommand, TakesGraphsByNameOrNumber) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("p", HostileProfile());
  for (const char* graph : {"second", "5"}) {
    EXPECT_THAT(RunPenstock({"plan", file, "--graph", graph}).out,
                AllOf(HasSubstr("graph 5"), Not(HasSubstr("graph 4"))));
  }
  const Ran none = RunPenstock({"plan", file, "--graph", "third"});
  EXPECT_EQ(none.code, kFailed);
  EXPECT_THAT(none.err, AllOf(HasSubstr("'third'"), HasSubstr("5 'second'")));
  EXPECT_EQ(RunPenstock({"plan", folder.Write("empty", Profile())}).code, kFailed);
}

TEST(PlanCommand, WritesAProfileWithoutSpansAsJson) {
  const TemporaryFolder folder;
  const Ran ran = RunPenstock({"plan", folder.Write("p", HostileProfile()), "--json"});
  const auto read = ParseProfile(ran.out, "out");
  ASSERT_OK(read.status());
  EXPECT_THAT(read->spans, IsEmpty());
  ExpectEqualLists(read->graphs, HostileProfile().graphs);
}

TEST(PlanCommand, DrawsEachNodeAndEdge) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("p", HostileProfile());
  const Ran svg = RunPenstock({"plan", file, "--svg"});
  EXPECT_TRUE(IsWellFormed(svg.out));
  EXPECT_EQ(CountOf(svg.out, "<path d=\"M"), 2u * 3 + 1);  // and the arrowhead
  EXPECT_EQ(CountOf(svg.out, "<title>node "), 6u);
  EXPECT_THAT(svg.out, AllOf(HasSubstr("axpy &amp; &quot;co&quot; &lt;b&gt;\\x1b[2J"),
                             HasSubstr("on cuda:0 lane 1 compute\nmade.cu:30\nreads 8 KiB, writes 4 KiB"),
                             Not(HasSubstr("<script")), Not(HasSubstr("\x1B"))));
  // A column for the host and one for each lane; below what it follows.
  const auto [x0, y0] = PlaceOf(svg.out, 0);
  const auto [x1, y1] = PlaceOf(svg.out, 1);
  const auto [x2, y2] = PlaceOf(svg.out, 2);
  EXPECT_TRUE(0 < x2 && x2 < x0 && x0 < x1) << x0 << ", " << x1 << ", " << x2;
  EXPECT_TRUE(0 < y0 && y0 < y1 && y1 < y2) << y0 << ", " << y1 << ", " << y2;
  const Ran dot = RunPenstock({"plan", file, "--dot"});
  EXPECT_EQ(CountOf(dot.out, " -> "), 6u);
  for (const char* edge : {"g4_n0 -> g4_n1;", "g4_n1 -> g4_n2;", "g4_n0 -> g4_n2;", "g5_n0 -> g5_n1;"}) {
    EXPECT_EQ(CountOf(dot.out, edge), 1u) << edge;
  }
  EXPECT_THAT(
      dot.out,
      AllOf(HasSubstr("digraph"), HasSubstr("g4_n1 [label=\"axpy & \\\"co\\\" <b>\\\\x1b[2J (parallel for)\""),
            HasSubstr("tooltip=\"made.cu:30\""), HasSubstr("label=\"cuda:0 lane 1 compute\""), Not(HasSubstr("\x1B"))));
  EXPECT_EQ(RunPenstock({"plan", file, "--dot", "--svg"}).code, kFailed);
}

TEST(PlanCommand, WritesToAFileWhole) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("p", HostileProfile());
  std::ofstream(folder.Path("out")) << std::string(1 << 20, 'x');
  const Ran ran = RunPenstock({"plan", file, "--out", folder.Path("out")});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_EQ(folder.Read("out"), RunPenstock({"plan", file}).out);
  EXPECT_EQ(RunPenstock({"plan", file, "--out", folder.Path("no/such/folder")}).code, kFailed);
}

// Nothing is written where something is wrong.
TEST(PlanCommand, LeavesTheOldFileWhereTheProfileIsDamaged) {
  const TemporaryFolder folder;
  std::ofstream(folder.Path("p")) << HostileProfile().Json().substr(0, 500);
  std::ofstream(folder.Path("out")) << "old";
  const Ran ran = RunPenstock({"plan", folder.Path("p"), "--svg", "--out", folder.Path("out")});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(folder.Path("p")), HasSubstr("ends after 500 bytes")));
  EXPECT_EQ(folder.Read("out"), "old");
}

}  // namespace
}  // namespace penstock::cli::plan_command_test
