// Reading profiles: all that is written comes back, and what is not a profile, or is a damaged one, is refused with the
// place and a remedy.
#include "src/cli/read_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/graph.h"
#include "penstock/runtime.h"
#include "src/cli/read_file.h"
#include "tests/cli/equal_profiles.h"
#include "tests/support/status.h"

namespace penstock::cli::read_profile_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct AddOne {
  PENSTOCK_HOST_DEVICE void operator()(int64_t i, View<int32_t> x) const { ++x[i]; }
};

// Each member differs from its default and from its neighbours.
Profile WholeProfile() {
  Profile profile;
  profile.devices = {
      {.name = "cuda:0", .description = "GPU \"<b>\"", .is_cuda = true, .memory_bytes = int64_t{1} << 40},
      {.name = "host:0", .description = "2 CPU threads", .is_cuda = false, .memory_bytes = 2}};
  profile.open = {"runtime.workers", "graph \"a\".slots"};
  Profile::Graph graph;
  graph.executable = 7;
  graph.name = "line\nbreak";
  graph.where = "a.cc:3";
  graph.slots = 3;
  graph.slot_device_bytes = 4;
  graph.slot_pinned_bytes = 5;
  graph.lanes = {{0, "upload"}, {1, "compute"}};
  graph.nodes.resize(3);
  graph.nodes[0] = {"late", "host", "a.cc:1", -1, -1, {1, 2}, 0, 0};
  graph.nodes[1] = {"upload x", "upload", "", 0, 0, {}, 6, 7};
  graph.nodes[2] = {"\x01\xEF\xBF\xBD", "kernel", "b.cu:2", 1, 1, {1}, 0, 0, 3e12};
  graph.launches = 8;
  graph.report = {.mode = Mode::kGraph,
                  .stream_us = 1.5,
                  .graph_us = 2.5,
                  .notes = {"one", "two"},
                  .graphs = 9,
                  .graph_nodes = 10,
                  .regions = 11,
                  .region_nodes = 12,
                  .graph_launches = 13,
                  .nodes_set = 14,
                  .nodes_switched = 15,
                  .captures = 16,
                  .refreshes = 17,
                  .fused = {},
                  .loops = {{.name = "solve", .iterations = 18, .iteration_us = 3.5}},
                  .instantiating_us = 4.5,
                  .capturing_us = 5.5};
  profile.graphs.resize(2);
  graph.placement = {{.name = "one device", .makespan_us = 6.25, .why = "left out"},
                     {.name = "HEFT",
                      .taken = true,
                      .makespan_us = 7.5,
                      .gain = -0.25,
                      .work_us = {8.5, 0},
                      .between_bytes = 19,
                      .host_bytes = 20,
                      .why = "taken: \"fast\""}};
  profile.graphs[0] = graph;
  profile.graphs[1].executable = 2;
  profile.graphs[1].report.mode = Mode::kAuto;
  profile.pipelines.push_back(
      {.begin_us = 6.5,
       .end_us = 7.5,
       .stats = {.stages = {{"decode", 21, 22, 23, 24, 25, 0.25}, {"work on cuda:0", 26, 0, 0, 0, 0, 0.5}},
                 .engines = {{"cuda:0 upload", 0.75}},
                 .threads = {{"ps-decode", 0.125}},
                 .accepted = 27,
                 .delivered = 28,
                 .dropped = 29,
                 .refused = 30,
                 .failed = 31,
                 .retries = 32,
                 .inside = 33,
                 .ready = 34,
                 .window = 35,
                 .bottleneck = 1}});
  for (const SpanKind kind : {SpanKind::kUpload, SpanKind::kDownload, SpanKind::kKernel, SpanKind::kHost,
                              SpanKind::kSubmit, SpanKind::kWait, SpanKind::kRun}) {
    profile.spans.push_back({.name = "same",
                             .track = "track",
                             .kind = kind,
                             .begin_us = -1.25,
                             .end_us = 1e15 + 0.125,
                             .run = int64_t{1} << 40,
                             .device = 1,
                             .executable = 7,
                             .node = 2,
                             .slot = 1});
  }
  profile.spans.push_back({.name = "the application's", .track = "main"});
  profile.spans.push_back({.name = "of a graph that is lost", .track = "main", .executable = 1, .node = 1000});
  profile.lost_spans = 19;
  profile.lost_graphs = 20;
  profile.length_us = 1234.567;
  return profile;
}

// What is said about the whole profile after a change to its JSON.
template <class F>
std::string RefusalAfter(F change) {
  json document = json::parse(WholeProfile().Json());
  change(document);
  // As the format has them: what explains the spans before them.
  nlohmann::ordered_json ordered;
  for (const char* name : {"format", "version", "columns"}) {
    if (document.contains(name)) ordered[name] = document[name];
  }
  for (const auto& [name, value] : document.items()) ordered[name] = value;
  return Text(ParseProfile(ordered.dump(), "app.profile").status());
}

TEST(ReadProfile, ReturnsAllThatWasWritten) {
  const Profile profile = WholeProfile();
  const auto read = ParseProfile(profile.Json(), "app.profile");
  ASSERT_OK(read.status());
  ExpectEqual(*read, profile);
  EXPECT_EQ(read->Json(), profile.Json());
}

TEST(ReadProfile, ReturnsWhatARuntimeHasRecorded) {
  const std::string path = testing::TempDir() + "read_profile_test." + std::to_string(getpid());
  for (const Mode mode : {Mode::kStream, Mode::kGraph}) {
    Runtime runtime =
        *Runtime::Create({.devices = "host:2", .workers = 2, .host_device_threads = 1, .profile_spans = 1000});
    Graph graph("recorded");
    const auto x = graph.InOut<int32_t>("x", 100);
    graph.ParallelFor("add", 100, AddOne{}, ReadWrite(x));
    graph.Host("look", [](std::span<const int32_t>) {}, Read(x));
    Executable exec = *runtime.Compile(graph, {.slots = 1, .mode = mode});
    std::vector<int32_t> memory(100);
    for (int r = 0; r < 3; ++r) ASSERT_OK(exec.Launch(exec.bindings().Set(x, memory))->Wait());
    const Profile profile = runtime.Profile();
    ASSERT_OK(profile.Write(path));
    const auto read = ReadProfile(path);
    ASSERT_OK(read.status());
    ASSERT_FALSE(profile.spans.empty());
    ExpectEqual(*read, profile);
  }
  std::filesystem::remove(path);
}

TEST(ReadProfile, IgnoresWhatItDoesNotKnow) {
  json document = json::parse(WholeProfile().Json());
  const json surplus = {{"version", {{"deep", {1, {2, {3}}}}}}, {"spans", json::array()}};
  document["columns"].insert(document["columns"].begin() + 3, "surplus");
  for (json& row : document["spans"]) row.insert(row.begin() + 3, surplus);
  document["surplus"] = document["another"] = surplus;
  document["graphs"][0]["surplus"] = document["graphs"][0]["report"]["surplus"] = surplus;
  document["graphs"][0]["nodes"][1]["surplus"] = document["devices"][0]["surplus"] = surplus;
  const auto read = ParseProfile(document.dump(), "app.profile");
  ASSERT_OK(read.status());
  ExpectEqual(*read, WholeProfile());
}

// As the first versions wrote them.
TEST(ReadProfile, TakesProfilesWithoutPipelinesAndOpenChoices) {
  json document = json::parse(WholeProfile().Json());
  document.erase("pipelines");
  document.erase("open");
  const auto read = ParseProfile(document.dump(), "app.profile");
  ASSERT_OK(read.status());
  Profile expected = WholeProfile();
  expected.pipelines.clear();
  expected.open.reset();
  ExpectEqual(*read, expected);
}

// As versions before that member wrote them; and versions that do not know it find nothing new in such nodes.
TEST(ReadProfile, TakesNodesWithoutOperations) {
  json document = json::parse(WholeProfile().Json());
  EXPECT_FALSE(document["graphs"][0]["nodes"][1].contains("flops"));
  document["graphs"][0]["nodes"][2].erase("flops");
  const auto read = ParseProfile(document.dump(), "app.profile");
  ASSERT_OK(read.status());
  Profile expected = WholeProfile();
  expected.graphs[0].nodes[2].flops = 0;
  ExpectEqual(*read, expected);
}

// As versions before that member wrote them.
TEST(ReadProfile, TakesGraphsWithoutTheirLine) {
  json document = json::parse(WholeProfile().Json());
  EXPECT_FALSE(document["graphs"][1].contains("where"));
  document["graphs"][0].erase("where");
  const auto read = ParseProfile(document.dump(), "app.profile");
  ASSERT_OK(read.status());
  Profile expected = WholeProfile();
  expected.graphs[0].where = "";
  ExpectEqual(*read, expected);
  const auto refusal = RefusalAfter([](json& changed) { changed["graphs"][0]["where"] = 3; });
  EXPECT_THAT(refusal, HasSubstr("graphs[0].where: is not a"));
}

TEST(ReadProfile, RefusesOperationsThatCannotBe) {
  const auto refusal = [](const json& flops) {
    return RefusalAfter([&](json& document) { document["graphs"][0]["nodes"][2]["flops"] = flops; });
  };
  EXPECT_THAT(refusal(-1), HasSubstr("graphs[0].nodes[2].flops: is -1, less than 0"));
  EXPECT_THAT(refusal(1e18), HasSubstr("graphs[0].nodes[2].flops: is 1e+18, beyond 10^18"));
  EXPECT_THAT(refusal("many"), HasSubstr("graphs[0].nodes[2].flops: is not a number"));
  EXPECT_THAT(refusal(nullptr), HasSubstr("graphs[0].nodes[2].flops: is not a number"));
}

TEST(ReadProfile, CountsSpansOfUnknownKindsAsLost) {
  json document = json::parse(WholeProfile().Json());
  document["spans"][2][5] = "teleport";
  const auto read = ParseProfile(document.dump(), "app.profile");
  ASSERT_OK(read.status());
  Profile expected = WholeProfile();
  expected.spans.erase(expected.spans.begin() + 2);
  ++expected.lost_spans;
  ExpectEqual(*read, expected);
}

TEST(ReadProfile, RefusesNewerVersionsWhateverTheyHold) {
  const auto refused =
      ParseProfile(R"({"format":"penstock profile","version":2,"columns":5,"spans":{}})", "app.profile");
  EXPECT_TRUE(absl::IsUnimplemented(refused.status()));
  EXPECT_THAT(Text(refused.status()), AllOf(HasSubstr("'app.profile'"), HasSubstr("version 2"), HasSubstr("up to 1"),
                                            HasSubstr("use a newer")));
}

TEST(ReadProfile, RefusesWhatIsNoProfileAndSaysWhatItIs) {
  using Case = std::pair<std::string, std::string>;
  Profile profile = WholeProfile();
  const std::vector<Case> cases = {{"", "empty"},
                                   {profile.ChromeJson(), "chrome://tracing"},
                                   {R"([{"ph":"X"}])", "no JSON object"},
                                   {"17", "no JSON object"},
                                   {R"({"a":{"format":"penstock profile"}})", "has no \"format\""},
                                   {R"({"format":"another"})", "\"format\" is another"},
                                   {std::string("\x7F"
                                                "ELF\0\x01",
                                                6),
                                    "byte 1"},
                                   {"\x1B[2J", "byte 1"},
                                   {"{\"a", "ends after 3 bytes"}};
  for (const auto& [text, expected] : cases) {
    const absl::Status refused = ParseProfile(text, "app.profile").status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused));
    EXPECT_THAT(Text(refused), AllOf(HasSubstr("profile 'app.profile': is no profile: "), HasSubstr(expected),
                                     HasSubstr("; PENSTOCK_PROFILE=FILE records one"), Not(HasSubstr("\x1B"))));
  }
}

TEST(ReadProfile, RefusesATruncatedProfileWhereverItEnds) {
  const std::string whole = WholeProfile().Json();
  const size_t close = whole.rfind('}');
  for (size_t size = 40; size <= close; size += 23) {
    const absl::Status refused = ParseProfile(whole.substr(0, size), "app.profile").status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_THAT(Text(refused), HasSubstr("ends after " + std::to_string(size) + " bytes")) << size;
  }
}

// One member at a time is set to what it must not be.
TEST(ReadProfile, NamesTheMemberThatIsWrong) {
  struct Case {
    const char* pointer;
    json value;
    const char* problem;
  };
  const std::vector<Case> cases = {
      {"/version", 0, "version: is 0, less than 1"},
      {"/version", "1", "version: is not an integer"},
      {"/length_us", 1e300, "length_us: is 1e+300, beyond 10^18"},
      {"/length_us", "long", "length_us: is not a number"},
      {"/lost_spans", -1, "lost_spans: is -1, less than 0"},
      {"/lost_spans", UINT64_MAX, "lost_spans: is 18446744073709551615, more than"},
      {"/devices", 3, "devices: is not an array"},
      {"/devices/1", 3, "devices[1]: is not an object"},
      {"/devices/1/is_cuda", 1, "devices[1].is_cuda: is neither true nor false"},
      {"/devices/0/name", nullptr, "devices[0].name: is not a string"},
      {"/graphs/0/executable", 1.5, "graphs[0].executable: is not an integer"},
      {"/graphs/1/executable", 7, "graphs[1].executable: is 7, as that of graphs[0]"},
      {"/graphs/0/slots", int64_t{1} << 31, "graphs[0].slots: is 2147483648, more than 2147483647"},
      {"/graphs/0/lanes/1/device", 2, "graphs[0].lanes[1].device: is 2, and there are 2 devices"},
      {"/graphs/0/nodes/0/device", 2, "graphs[0].nodes[0].device: is 2, and there are 2 devices"},
      {"/graphs/0/nodes/0/device", -2, "graphs[0].nodes[0].device: is -2, less than -1"},
      {"/graphs/0/nodes/2/lane", 2, "graphs[0].nodes[2].lane: is 2, and there are 2 lanes"},
      {"/graphs/0/nodes/2/after/0", 3, "graphs[0].nodes[2].after: is 3, and there are 3 nodes"},
      {"/graphs/0/nodes/2/after/0", "1", "graphs[0].nodes[2].after[0]: is not an integer"},
      {"/graphs/0/nodes/2/after/0", 2, "graphs[0].nodes[0].after: leads in a circle"},
      {"/graphs/0/nodes/1/after", {0}, "after: leads in a circle"},
      {"/graphs/0/nodes/0/read_bytes", -1, "graphs[0].nodes[0].read_bytes: is -1, less than 0"},
      {"/graphs/0/report/mode", "warp", "graphs[0].report.mode: is none of"},
      {"/graphs/0/report/notes/1", 1, "graphs[0].report.notes[1]: is not a string"},
      {"/graphs/0/report/loops/0/iterations", -1, "graphs[0].report.loops[0].iterations: is -1, less than 0"},
      {"/pipelines/0/bottleneck", 2, "pipelines[0].bottleneck: is 2, and there are 2 stages"},
      {"/pipelines/0/stages/1/busy", "full", "pipelines[0].stages[1].busy: is not a number"},
      {"/pipelines/0/engines/0", 1, "pipelines[0].engines[0]: is not an object"},
      {"/columns", 7, "columns: is not an array"},
      {"/columns", {{"a", "executable"}}, "columns: is not an array"},
      {"/columns/9", "trick", "columns: has no \"track\""},
      {"/columns", json::array(), "columns: has no \"executable\""},
      {"/spans", json::object(), "spans: is not an array"},
      {"/spans/1", 7, "spans[1]: is not an array"},
      {"/spans/1", json::object(), "spans[1]: is not an array"},
      {"/spans/1", {1, 2}, "spans[1]: has 2 elements, and there are 10 columns"},
      {"/spans/1/10", 1, "spans[1]: has more elements than there are columns"},
      {"/spans/3/0", -2, "spans[3].executable: is -2, less than -1"},
      {"/spans/3/2", 3, "spans[3].node: is 3, and there are 3 nodes"},
      {"/spans/3/3", 1e3, "spans[3].slot: is not an integer"},
      {"/spans/3/4", 2, "spans[3].device: is 2, and there are 2 devices"},
      {"/spans/3/5", 3, "spans[3].kind: is not a string"},
      {"/spans/3/6", json::array(), "spans[3].begin_us: is not a number"},
      {"/spans/3/7", -1e18, "spans[3].end_us: is -1e+18, beyond 10^18"},
      {"/spans/3/8", 100, "spans[3].name: is 100, and there are 5 texts"},
      {"/spans/3/9", -1, "spans[3].track: is -1, less than 0"},
      {"/texts/0", 1, "texts[0]: is not a string"},
  };
  for (const Case& one : cases) {
    const std::string refusal =
        RefusalAfter([&](json& document) { document[json::json_pointer(one.pointer)] = one.value; });
    EXPECT_THAT(refusal, AllOf(HasSubstr(std::string("profile 'app.profile': ")), HasSubstr(one.problem),
                               HasSubstr("record it again")))
        << one.pointer;
  }
}

TEST(ReadProfile, NamesTheMemberThatIsMissingOrStandsTwice) {
  json whole = json::parse(WholeProfile().Json());
  whole["graphs"][0].erase("where");  // which may be missing
  for (const char* parent : {"/devices/0", "/graphs/0", "/graphs/0/lanes/0", "/graphs/0/nodes/1", "/graphs/0/report",
                             "/graphs/0/report/loops/0", "/graphs/0/placement/1", "/pipelines/0",
                             "/pipelines/0/stages/0", "/pipelines/0/threads/0"}) {
    for (const auto& [name, value] : whole[json::json_pointer(parent)].items()) {
      if (name == "placement") continue;  // may be missing too
      const std::string refusal =
          RefusalAfter([&, key = name](json& document) { document[json::json_pointer(parent)].erase(key); });
      EXPECT_THAT(refusal, HasSubstr("." + name + ": is missing")) << parent;
    }
  }
  for (const char* name :
       {"version", "length_us", "lost_spans", "lost_graphs", "devices", "graphs", "spans", "texts"}) {
    EXPECT_THAT(RefusalAfter([&](json& document) { document.erase(name); }),
                HasSubstr(std::string(name) + ": is missing"));
  }
  EXPECT_THAT(RefusalAfter([&](json& document) { document.erase("columns"); }), HasSubstr("before \"columns\""));
  EXPECT_THAT(Text(ParseProfile(R"({"format":"penstock profile","version":1,"version":1})", "").status()),
              HasSubstr("a member twice: \"version\""));
}

// Neither depth nor sizes that a text names take memory or stack.
TEST(ReadProfile, RefusesHostileDepthsNumbersAndSizes) {
  const std::string head = R"({"format":"penstock profile","version":1,)";
  constexpr size_t kDeep = 200'000;
  for (const char* name : {"unknown", "graphs"}) {
    EXPECT_THAT(Text(ParseProfile(head + '"' + name + "\":" + std::string(kDeep, '['), "p").status()),
                HasSubstr("nested more than"));
  }
  EXPECT_THAT(Text(ParseProfile(std::string(kDeep, '['), "p").status()), HasSubstr("no JSON object"));
  EXPECT_THAT(Text(ParseProfile(head + R"("length_us":1e999})", "p").status()), HasSubstr("1e999"));
  EXPECT_THAT(Text(ParseProfile(head + R"("length_us":NaN})", "p").status()), HasSubstr("byte"));
  EXPECT_THAT(Text(ParseProfile(head + "\"length_us\":" + std::string(kDeep, '9') + "}", "p").status()),
              AllOf(HasSubstr("999..."), testing::SizeIs(testing::Lt(300))));
  // A text of 1 MiB that 200 spans have.
  Profile profile;
  for (int s = 0; s < 200; ++s) profile.spans.push_back({.name = "x", .track = "y"});
  json document = json::parse(profile.Json());
  document["texts"][0] = std::string(size_t{1} << 20, 'x');
  const absl::Status refused = ParseProfile(document.dump(), "p").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

TEST(ReadProfile, RefusesFilesThatCannotBeReadOrAreTooLarge) {
  const std::string folder = testing::TempDir() + "read_profile_test.files." + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  EXPECT_THAT(Text(ReadProfile(folder).status()), HasSubstr("directory"));
  EXPECT_TRUE(absl::IsNotFound(ReadProfile(folder + "/no\nsuch").status()));
  EXPECT_THAT(Text(ReadProfile(folder + "/no\nsuch").status()), HasSubstr("no\\x0asuch"));
  const std::string large = folder + "/large";
  std::ofstream(large).close();
  ASSERT_EQ(truncate(large.c_str(), (off_t{1} << 30) + 1), 0);  // sparse
  EXPECT_TRUE(absl::IsResourceExhausted(ReadProfile(large).status()));
  // What is no regular file has no size that could be known before.
  EXPECT_TRUE(absl::IsResourceExhausted(ReadFile("profile", "/dev/zero", size_t{1} << 21).status()));
  EXPECT_EQ(ReadFile("profile", "/dev/null", 0).value(), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::cli::read_profile_test
