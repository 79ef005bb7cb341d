// penstock bench and penstock calibrate on host devices, with tiny copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "src/cli/machine_file.h"
#include "tests/cli/run_penstock.h"
#include "tests/support/environment.h"
#include "tests/support/status.h"

namespace penstock::cli::bench_command_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class MeasuringCommands : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "penstock_bench_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string At(const std::string& name) const { return folder_ / name; }
  std::string Content(const std::string& name) const {
    std::ifstream in(At(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(MeasuringCommands, BenchMeasuresEveryPartOfEveryDevice) {
  const Ran ran =
      RunPenstock({"bench", "--quick", "--devices", "host:2", "--sizes", "100,4K", "--json", "--csv", At("table.csv")});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("host_devices_only"), true);
  EXPECT_EQ(json.at("devices").size(), 2u);
  std::map<std::string, int> rows;
  for (const nlohmann::json& figure : json.at("figures")) {
    ++rows[figure.at("part")];
    const double least = figure.at("what") == "host node" ? 0 : 1e-9;  // a difference, which noise may make 0
    EXPECT_GE(figure.at("value"), least) << figure;
  }
  const std::map<std::string, int> wanted = {
      {"copies", 2 * 2 * 7}, {"peers", 2}, {"launches", 2 * 6}, {"memory", 2 * 2}};
  EXPECT_EQ(rows, wanted);
  std::istringstream table(Content("table.csv"));
  size_t lines = 0;
  for (std::string line; std::getline(table, line);) ++lines;
  EXPECT_EQ(lines, 1 + json.at("figures").size());
}

TEST_F(MeasuringCommands, BenchShowsTablesAndSaysThatTheyAreOfHostDevices) {
  const Ran ran = RunPenstock({"bench", "--quick", "--devices", "host:1", "--sizes", "4096,64KiB"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_THAT(ran.out, StartsWith("There is no CUDA device among these: the figures are of host devices"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("Copies on host:0"), HasSubstr("\n4 KiB "), HasSubstr("\n64 KiB "),
                             HasSubstr("there is only one device"), HasSubstr("Launches, in us"),
                             HasSubstr("Memory of a device")));
}

TEST_F(MeasuringCommands, BenchMeasuresOnlyWhatIsAsked) {
  const Ran ran =
      RunPenstock({"bench", "--quick", "--devices", "host:2", "--sizes", "64", "--only", "peers,memory", "--json"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  std::set<std::string> parts;
  for (const nlohmann::json& figure : json.at("figures")) parts.insert(figure.at("part"));
  EXPECT_EQ(parts, (std::set<std::string>{"memory", "peers"}));
}

TEST_F(MeasuringCommands, RefuseWrongOptionsWithTheReason) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"bench", "--sizes", "0"}, "'0' is no size of a copy"},
      {{"bench", "--sizes", "4K,-1"}, "'-1' is no size of a copy"},
      {{"bench", "--sizes", "4Q"}, "'4Q' is no size of a copy"},
      {{"bench", "--sizes", "99999999999G"}, "is no size of a copy"},
      {{"bench", "--sizes", ""}, "is no size of a copy"},
      {{"bench", "--only", "nonsense"}, "nonsense not in {copies,peers,launches,memory}"},
      {{"bench", "--devices", "nonsense"}, "there is no kind of device called 'nonsense'"},
      {{"bench", "--devices", "host:1", "--sizes", "1024G"}, "1099511627776"},
      {{"bench", "--quick", "--devices", "host:1", "--sizes", "8", "--only", "memory", "--csv", At("no/table.csv")},
       At("no/table.csv")},
      {{"calibrate", "--devices", "nonsense", "--out", At("m.json")}, "there is no kind of device called 'nonsense'"},
      // Before anything is measured, or a device is looked for.
      {{"bench", "--devices", "nonsense", "--csv", At("no/table.csv")}, At("no/table.csv") + "': cannot create it"},
      {{"bench", "--devices", "nonsense", "--csv", folder_}, folder_.string() + "': cannot write it: Is a directory"},
      {{"calibrate", "--devices", "nonsense", "--out", At("no/m.json")}, At("no/m.json") + "': cannot create it"},
      {{"calibrate", "--devices", "nonsense", "--out", folder_},
       folder_.string() + "': cannot write it: Is a directory"},
  };
  for (const auto& [arguments, reason] : cases) {
    const Ran ran = RunPenstock(arguments);
    EXPECT_EQ(ran.code, kFailed) << reason;
    EXPECT_THAT(ran.err, HasSubstr(reason));
  }
}

TEST_F(MeasuringCommands, CalibrateWritesAFileThatReadsBackAsItShowed) {
  const Ran ran = RunPenstock({"calibrate", "--quick", "--devices", "host:2", "--out", At("m.json"), "--json"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_EQ(Content("m.json"), ran.out);
  const auto machine = ReadMachine(At("m.json"));
  ASSERT_OK(machine.status());
  EXPECT_EQ(MachineText(*machine, std::string(nlohmann::json::parse(ran.out).at("date"))), ran.out);
  EXPECT_NE(machine->host, "");
  EXPECT_GE(machine->cores, 1);
  EXPECT_GT(machine->host_copy, 0);
  EXPECT_GT(machine->host_fp32, 0);
  ASSERT_EQ(machine->devices.size(), 2u);
  EXPECT_EQ(machine->devices[1].name, "host:1");
  for (const analysis::Machine::Device& device : machine->devices) {
    using Device = analysis::Machine::Device;
    for (double Device::* const figure :
         {&Device::upload, &Device::download, &Device::upload_both_ways, &Device::download_both_ways,
          &Device::staged_upload, &Device::staged_download, &Device::memory, &Device::fp32, &Device::copy_us,
          &Device::stream_node_us, &Device::graph_node_us, &Device::launch_us}) {
      EXPECT_GT(device.*figure, 0);
    }
  }
  EXPECT_EQ(machine->peers[0][0], 0);
  EXPECT_GT(machine->peers[0][1], 0);
  EXPECT_GT(machine->peers[1][0], 0);
}

TEST_F(MeasuringCommands, CalibrateShowsWhatItHasMeasuredAndWhereItIs) {
  const EnvironmentScope config("XDG_CONFIG_HOME", folder_);
  const Ran ran = RunPenstock({"calibrate", "--quick", "--devices", "host:2"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("There is no CUDA device"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("Copies and memory of devices"), HasSubstr("Launches, in us"),
                             HasSubstr("Copies from a row's device"), HasSubstr("\nhost:1 "),
                             HasSubstr("Written to " + At("penstock/machine.json"))));
  EXPECT_TRUE(ReadMachine(At("penstock/machine.json"))->quick);
  analysis::Machine better = *ReadMachine(At("penstock/machine.json"));
  better.quick = false;
  ASSERT_OK(WriteMachine(At("penstock/machine.json"), better, "2026-11-28"));
  const Ran again = RunPenstock({"calibrate", "--quick", "--devices", "host:2"});
  EXPECT_EQ(again.code, kFailed);
  EXPECT_THAT(again.err, HasSubstr("has better figures than a quick run's"));
}

TEST_F(MeasuringCommands, RefuseToMeasureLaunchesWhereAVariableChoosesTheirMode) {
  const EnvironmentScope mode("PENSTOCK_MODE", "stream");
  const Ran ran = RunPenstock({"bench", "--quick", "--devices", "host:1", "--only", "launches"});
  EXPECT_EQ(ran.code, kFailed);
  EXPECT_THAT(ran.err, HasSubstr("unset PENSTOCK_MODE"));
}

TEST_F(MeasuringCommands, AMachineFileSurvivesACalibrationThatFails) {
  std::ofstream(At("m.json")) << "what was there";
  EXPECT_EQ(RunPenstock({"calibrate", "--quick", "--devices", "cuda:999", "--out", At("m.json")}).code, kFailed);
  EXPECT_EQ(Content("m.json"), "what was there");
}

}  // namespace
}  // namespace penstock::cli::bench_command_test
