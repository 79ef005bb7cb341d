// penstock simulate --devices.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "penstock/profile.h"
#include "src/analysis/over_devices.h"
#include "src/cli/device_list.h"
#include "src/cli/machine_file.h"
#include "tests/cli/profile_file.h"
#include "tests/cli/run_penstock.h"
#include "tests/support/status.h"

namespace penstock::cli::simulate_devices_test {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kChains = 4;
constexpr int64_t kMega = 1'000'000;

Profile::Node KernelNode(std::string name, std::vector<int> after) {
  return {std::move(name), "kernel", "a.cc:1", 0, 0, std::move(after), kMega, 2 * kMega};
}

// Four chains of an upload of 1 us and two kernels of 30 us, of which each run takes one after the other; and if
// `joined`, a kernel of 30 us that reads what the chains write, and a download.
Profile Chains(bool joined) {
  Profile profile;
  profile.devices = {{.name = "cuda:0", .description = "made", .is_cuda = true}};
  Profile::Graph& graph = profile.graphs.emplace_back();
  graph.executable = 4;
  graph.name = "chains";
  graph.slots = 1;
  graph.launches = 40;
  graph.lanes = {{0, "compute"}, {0, "upload"}};
  std::vector<int> ends;
  for (int c = 0; c < kChains; ++c) {
    const auto first = static_cast<int>(graph.nodes.size());
    graph.nodes.push_back({"upload x", "upload", "", 0, 1, {}, kMega, kMega});
    graph.nodes.push_back(KernelNode("a", {first}));
    graph.nodes.push_back(KernelNode("b", {first + 1}));
    ends.push_back(first + 2);
  }
  if (joined) {
    graph.nodes.push_back(KernelNode("join", ends));
    graph.nodes.push_back({"download y", "download", "", 0, 1, {ends.back() + 1}, kMega, kMega});
  }
  graph.report.mode = Mode::kGraph;
  double begin = 0;
  for (int run = 0; run < 40; ++run) {
    double at = begin;
    const auto add = [&](SpanKind kind, int device, int node, double from, double to) {
      profile.spans.push_back({.name = "a span",
                               .track = "a track",
                               .kind = kind,
                               .begin_us = from,
                               .end_us = to,
                               .run = run,
                               .device = device,
                               .executable = 4,
                               .node = node,
                               .slot = 0});
    };
    add(SpanKind::kSubmit, -1, -1, at, at + 1);
    at += 1;
    for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
      const std::string& kind = graph.nodes[static_cast<size_t>(n)].kind;
      const double us = kind == "kernel" ? 30 : 1;
      add(kind == "kernel"   ? SpanKind::kKernel
          : kind == "upload" ? SpanKind::kUpload
                             : SpanKind::kDownload,
          0, n, at, at + us);
      at += us;
    }
    add(SpanKind::kRun, -1, -1, begin, at);
    begin = at;
  }
  return profile;
}

analysis::Machine MachineOf(int devices, std::vector<std::vector<double>> peers) {
  analysis::Machine machine;
  machine.host = "made";
  for (int d = 0; d < devices; ++d) {
    machine.devices.push_back({.name = "cuda:" + std::to_string(d),
                               .description = "made",
                               .is_cuda = true,
                               .upload = 50,
                               .download = 20,
                               .copy_us = 4});
  }
  machine.peers = std::move(peers);
  return machine;
}

class SimulateDevices : public testing::Test {
 protected:
  Ran Simulated(const Profile& profile, const std::vector<std::string>& options) {
    std::vector<std::string> arguments{"simulate", folder_.Write("a.profile", profile)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return RunPenstock(arguments);
  }
  json Over(const Profile& profile, std::vector<std::string> options) {
    options.emplace_back("--json");
    const Ran ran = Simulated(profile, options);
    EXPECT_EQ(ran.code, kDone) << ran.err;
    return ran.code == kDone ? json::parse(ran.out).at("over_devices") : json();
  }
  std::string Written(const analysis::Machine& machine) {
    EXPECT_OK(WriteMachine(folder_.Path("machine.json"), machine, "2026-11-29"));
    return folder_.Path("machine.json");
  }
  static const json& Best(const json& count) {
    for (const json& way : count.at("ways")) {
      if (way.at("way") == count.at("best")) return way;
    }
    return count;
  }

  TemporaryFolder folder_;
};

TEST_F(SimulateDevices, ChainsTakeAQuarterOnFourDevicesAndNoLessOnEight) {
  const json over = Over(Chains(false), {"--devices", "1..8", "--peer-gbs", "100"});
  const json& counts = over.at("counts");
  ASSERT_EQ(counts.size(), 4u);
  // A launch of 1 us, an upload of 1 us, and the kernels.
  const double expected_us[] = {242, 122, 62, 62};
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(counts[c].at("devices"), 1 << c);
    const json& best = Best(counts[c]);
    EXPECT_THAT(best.at("run_us").get<double>(), DoubleNear(expected_us[c], 0.1));
    EXPECT_THAT(best.at("times_as_fast").get<double>(), DoubleNear(242 / expected_us[c], 0.01));
    EXPECT_EQ(best.at("copied_bytes"), 0);
    EXPECT_THAT(best.at("busy").get<double>(), DoubleNear(240 / expected_us[c] / (1 << c), 0.01));
  }
  EXPECT_EQ(counts[0].at("ways").size(), 1u);
  EXPECT_EQ(counts[0].at("best"), "one");
  EXPECT_EQ(counts[1].at("ways").size(), 3u);
}

TEST_F(SimulateDevices, CountsTheCopiesToWhereResultsAreNeeded) {
  const json over =
      Over(Chains(true), {"--devices", "4", "--peer-gbs", "100", "--crossing-us", "7", "--mode", "graph"});
  const json& best = Best(over.at("counts")[0]);
  // Three of the four results are copied, of which the last reader takes a megabyte each, all at the same time.
  EXPECT_EQ(best.at("copied_bytes"), 3 * kMega);
  EXPECT_EQ(best.at("copies"), 3);
  EXPECT_EQ(best.at("crossings"), 3);
  const double copy_us = 2.3 + 10;
  EXPECT_THAT(best.at("run_us").get<double>(), DoubleNear(1 + 3 * 2 + 1 + 60 + 7 + copy_us + 30 + 1, 0.1));
}

TEST_F(SimulateDevices, TakesOneDeviceWhereCopiesCostMoreThanTheyGain) {
  const json over = Over(Chains(true), {"--devices", "2,4", "--peer-gbs", "0.001"});
  for (const json& count : over.at("counts")) EXPECT_EQ(count.at("best"), "one");
}

TEST_F(SimulateDevices, TakesLinksFromTheMachineFile) {
  const auto gbs = [&](const analysis::Machine& machine) {
    return Over(Chains(false), {"--devices", "2", "--machine", Written(machine)}).at("peer_gbs").get<double>();
  };
  EXPECT_EQ(gbs(MachineOf(2, {{0, 200}, {300, 0}})), 200);
  EXPECT_NEAR(gbs(MachineOf(1, {{0}})), 1 / (1. / 20 + 1. / 50), 1e-9);
  EXPECT_EQ(gbs(MachineOf(3, {{0, 0, 0}, {0, 0, 70}, {0, 0, 0}})), 70);
  const auto text = [&](const analysis::Machine& machine) {
    return Simulated(Chains(false), {"--devices", "2", "--machine", Written(machine)}).out;
  };
  EXPECT_THAT(text(MachineOf(2, {{0, 200}, {300, 0}})), Not(HasSubstr("through the host")));
  EXPECT_THAT(text(MachineOf(1, {{0}})), HasSubstr("no pair of devices was measured"));
  EXPECT_THAT(text(MachineOf(3, {{0, 0, 0}, {0, 0, 70}, {0, 0, 0}})), HasSubstr("some pairs of devices were not"));
}

// The pair that was measured, the one that was not, and one beyond the file.
TEST_F(SimulateDevices, EachPairHasItsOwnLink) {
  const Profile profile = Chains(true);
  const auto links = analysis::PeerLinksOf(profile, profile.graphs[0], nullptr, 0);
  EXPECT_EQ(links.status().code(), absl::StatusCode::kFailedPrecondition);
  const analysis::Machine machine = MachineOf(2, {{0, 200}, {0, 0}});
  const auto known = analysis::PeerLinksOf(profile, profile.graphs[0], &machine, 0);
  ASSERT_OK(known.status());
  EXPECT_EQ(known->Between(0, 1).gbs, 200);
  EXPECT_NEAR(known->Between(1, 0).gbs, 1 / (1. / 20 + 1. / 50), 1e-9);
  EXPECT_EQ(known->Between(1, 0).us, 8);  // up and down
  EXPECT_EQ(known->Between(5, 1).gbs, 200);
  // A pair that is no faster than through the host has no link of its own.
  const analysis::Machine slow = MachineOf(2, {{0, 200}, {14, 0}});
  const auto mixed = analysis::PeerLinksOf(profile, profile.graphs[0], &slow, 0);
  ASSERT_OK(mixed.status());
  EXPECT_LT(mixed->Between(0, 1).us, 8);
  EXPECT_EQ(mixed->Between(1, 0).us, 8);
  EXPECT_EQ(mixed->Between(1, 0).gbs, 14);
}

TEST_F(SimulateDevices, WarnsOfAnotherMachinesFile) {
  analysis::Machine other = MachineOf(2, {{0, 200}, {200, 0}});
  for (analysis::Machine::Device& device : other.devices) device.description = "another";
  const Ran ran = Simulated(Chains(false), {"--devices", "2", "--machine", Written(other)});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.err, HasSubstr("it is of another machine"));
}

TEST_F(SimulateDevices, EstimatesAGraphThatHasNotRun) {
  Profile profile = Chains(false);
  profile.spans.clear();
  analysis::Machine machine = MachineOf(1, {{0}});
  machine.devices[0].memory = 100;  // three megabytes in 30 us
  const json over = Over(profile, {"--devices", "4", "--machine", Written(machine)});
  const json& count = over.at("counts")[0];
  EXPECT_THAT(count.at("ways")[0].at("run_us").get<double>(), DoubleNear(4 * 60 + 24, 1));  // and the first upload
  EXPECT_THAT(Best(count).at("run_us").get<double>(), DoubleNear(60 + 24, 1));
}

TEST_F(SimulateDevices, WritesATableAndWhatItStandsOn) {
  const Ran ran = Simulated(Chains(true), {"--devices", "1,2,4", "--peer-gbs", "100", "--slots", "2"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  ExpectPlain(ran.out);
  for (const char* words : {"changed: 2 slots", "one device", "affinity", "HEFT", "as fast", "moved", "busy",
                            "at 100 GB/s", "note: a profile does not say what a node takes from another"}) {
    EXPECT_THAT(ran.out, HasSubstr(words));
  }
  EXPECT_THAT(ran.out, Not(HasSubstr("runs a s")));  // no table of slots
}

TEST_F(SimulateDevices, SaysWhereLinksWouldHaveToDoMoreThanTheyCan) {
  // One kernel's result is read on as many devices as there are: its links have more to do than one can.
  Profile profile = Chains(false);
  Profile::Graph& graph = profile.graphs[0];
  graph.nodes[0] = {"root", "kernel", "a.cc:1", 0, 0, {}, kMega, 2 * kMega};
  for (size_t n = 1; n < graph.nodes.size(); ++n) graph.nodes[n].after = {0};
  const Ran ran = Simulated(profile, {"--devices", "8", "--peer-gbs", "30"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("times what one link can do"));
}

TEST_F(SimulateDevices, ReadsListsAndRanges) {
  EXPECT_THAT(*ParseDeviceList("1,2,4"), ElementsAre(1, 2, 4));
  EXPECT_THAT(*ParseDeviceList("4,1,4"), ElementsAre(1, 4));
  EXPECT_THAT(*ParseDeviceList("1..10"), ElementsAre(1, 2, 4, 8, 10));
  EXPECT_THAT(*ParseDeviceList("3..12"), ElementsAre(3, 6, 12));
  EXPECT_THAT(*ParseDeviceList("7..7,1"), ElementsAre(1, 7));
  EXPECT_EQ(ParseDeviceList("1..1024")->size(), 11u);
}

TEST_F(SimulateDevices, RefusesWhatMakesNoSense) {
  const auto refuses = [&](const Profile& profile, const std::vector<std::string>& options, const std::string& why) {
    const Ran ran = Simulated(profile, options);
    EXPECT_EQ(ran.code, kFailed);
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr(why));
  };
  for (const char* list : {"0", "1025", "1,", ",1", "1..", "..4", "4..1", "1...4", "1..2..4", "-1", "1e3", "x", " 2",
                           "2 ", "1..9999999999999999999", "0..4", "1,2,1025", "+1", ""}) {
    EXPECT_EQ(ParseDeviceList(list).status().code(), absl::StatusCode::kInvalidArgument) << list;
  }
  const Profile chains = Chains(false);
  refuses(chains, {"--devices", "0", "--peer-gbs", "1"}, "--devices 0 is not a list of numbers from 1 to 1024");
  refuses(chains, {"--devices", "2\x1b[2J", "--peer-gbs", "1"}, "is not a list of numbers");
  refuses(chains, {"--devices", "2"}, "say --peer-gbs");
  refuses(chains, {"--peer-gbs", "2"}, "say --devices too");
  refuses(chains, {"--crossing-us", "0"}, "say --devices too");
  refuses(chains, {"--devices", "2", "--peer-gbs", "0"}, "--peer-gbs");
  refuses(chains, {"--devices", "2", "--peer-gbs", "1", "--crossing-us", "-1"}, "--crossing-us");
  Profile two = chains;
  two.devices.push_back(two.devices[0]);
  two.graphs[0].nodes[1].device = 1;
  refuses(two, {"--devices", "2", "--peer-gbs", "1"}, "runs on several devices already");
  Profile copied = chains;
  copied.graphs[0].nodes[1].kind = "peer copy";
  refuses(copied, {"--devices", "2", "--peer-gbs", "1"}, "runs on several devices already");
  Profile host = chains;
  for (Profile::Node& node : host.graphs[0].nodes) node.kind = "host", node.device = node.lane = -1;
  refuses(host, {"--devices", "2", "--peer-gbs", "1"}, "has no node on a device");
}

// Exact where the order of work cannot matter, at a size that a test can take.
TEST_F(SimulateDevices, ManyDevicesTakeExactlyWhatTheirChainsTake) {
  Profile profile = Chains(false);
  Profile::Graph& graph = profile.graphs[0];
  profile.spans.clear();
  graph.nodes.clear();
  constexpr int kDevices = 128, kLength = 40;
  for (int n = 0; n < kDevices * kLength; ++n) {
    Profile::Node node = KernelNode("k", {});
    if (n >= kDevices) node.after = {n - kDevices};
    graph.nodes.push_back(std::move(node));
  }
  analysis::Machine machine = MachineOf(2, {{0, 100}, {100, 0}});
  machine.devices[0].memory = 100;  // three megabytes in 30 us
  const json over = Over(profile, {"--devices", "64,128", "--machine", Written(machine)});
  EXPECT_THAT(over.at("one_us").get<double>(), DoubleNear(30.0 * kDevices * kLength, 1e-3));
  EXPECT_THAT(Best(over.at("counts")[0]).at("run_us").get<double>(), DoubleNear(30.0 * 2 * kLength, 1e-3));
  EXPECT_THAT(Best(over.at("counts")[1]).at("run_us").get<double>(), DoubleNear(30.0 * kLength, 1e-3));
}

}  // namespace
}  // namespace penstock::cli::simulate_devices_test
